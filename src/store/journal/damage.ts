/** What of the journal could not be read: named, set aside in a file of its own, and told to the operator. */
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { segmentName } from "./journal.ts"

export interface Damage {
  /**
   * `line`: bytes that are no longer what was written. `tail`: the end of a write that a crash or a power cut ended, so
   * that no client got an answer. `segment`: a file that is gone.
   */
  readonly kind: "line" | "tail" | "segment"
  readonly segment: number
  readonly offset: number
  readonly bytes: number
  /** The bytes in base64, as far as they are kept. */
  readonly content: string
}

const fileName = "damaged.jsonl"

/** Adds what is not there yet, and returns that: a stretch of the journal may be read more than once. */
export async function setAside(directory: string, damages: readonly Damage[]): Promise<readonly Damage[]> {
  if (damages.length === 0) return []
  const known = new Set((await readSetAside(directory)).map(keyOf))
  const fresh = damages.filter((damage) => !known.has(keyOf(damage)))
  const lines = fresh.map((damage) => `${JSON.stringify(damage)}\n`).join("")
  await writeFile(join(directory, fileName), lines, { flag: "a", mode: 0o600, flush: true })
  return fresh
}

export async function readSetAside(directory: string): Promise<Damage[]> {
  const text = await readFile(join(directory, fileName), "utf8").catch(() => "")
  // Only `setAside` writes the file; a line that a crash cut off has no end.
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Damage)
}

const keyOf = ({ kind, segment, offset }: Damage): string => `${kind} ${segment} ${offset}`

/** One sentence for the operator. */
export function describeDamage({ kind, segment, offset, bytes }: Damage): string {
  const name = segmentName(segment)
  switch (kind) {
    case "segment":
      return `the journal's segment ${name} is missing; usage that was only there is not charged`
    case "line":
      return `the journal's segment ${name} has ${bytes} damaged bytes at ${offset}; they are set aside in ${fileName} and their usage is not charged`
    case "tail":
      return `the journal's segment ${name} ends in an unfinished write of ${bytes} bytes at ${offset}, set aside in ${fileName}; it was never acknowledged`
  }
}
