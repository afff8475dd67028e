/** Runs the lines of a part, some at a time, and keeps what came of each, in their order. */
import { mapConcurrent } from "../../base/map-concurrent.ts"
import type { Batch, BatchPart } from "../../store/batches/batches.ts"
import type { FileStorage } from "../../store/files/storage.ts"
import { type BatchLine, readLines } from "./lines.ts"
import {
  type BatchCaller,
  BatchRefused,
  type LineParts,
  type LineResult,
  type LineSignals,
  runLine,
} from "./run-line.ts"

export interface PartParts extends LineParts {
  readonly storage: FileStorage
}

export interface RanPart {
  readonly lines: readonly BatchLine[]
  /** By line; null for those that were not run to their end. */
  readonly results: readonly (LineResult | null)[]
  /** Why the batch must stop. */
  readonly refused: { readonly error: BatchRefused; readonly line: number } | null
}

export async function readPartLines(
  { storage }: Pick<PartParts, "storage">,
  batch: Batch,
  part: Pick<BatchPart, "firstLine" | "start" | "length">,
  signal: AbortSignal,
): Promise<readonly BatchLine[]> {
  const { organizationId, endpoint, inputSha256: sha256 } = batch
  const range = { start: Number(part.start), length: Number(part.length) }
  const pieces: Uint8Array[] = []
  for await (const piece of storage.read({ organizationId, sha256: sha256 ?? "" }, range)) pieces.push(piece)
  const job = { endpoint, bytes: Buffer.concat(pieces), firstLine: part.firstLine, withBodies: true }
  return (await readLines(organizationId, job, signal)).lines
}

export async function runPart(
  parts: PartParts,
  { batch, part }: { readonly batch: Batch; readonly part: BatchPart },
  concurrency: number,
  signals: LineSignals,
): Promise<RanPart> {
  const { stop, halt } = signals
  const lines = await readPartLines(parts, batch, part, stop)
  const caller = JSON.parse(batch.principal) as BatchCaller
  const startedMs = part.startedAt?.getTime() ?? 0
  const results: (LineResult | null)[] = lines.map(() => null)
  const refused: { of: RanPart["refused"] } = { of: null }
  const run = async (line: BatchLine, index: number): Promise<void> => {
    const { endpoint, id: batchId } = batch
    try {
      results[index] = await runLine(parts, { batchId, endpoint, caller, line, startedMs }, signals)
    } catch (error) {
      if (!(error instanceof BatchRefused)) throw error
      refused.of ??= { error, line: line.line }
    }
  }
  await mapConcurrent(lines, { concurrency }, async (line, index) => {
    if (!halt.aborted && !refused.of) await run(line, index)
  })
  // Lines that run side by side reserve more than they cost: one after the other, more can be paid for.
  for (const [index, line] of refused.of ? lines.entries() : []) {
    if (results[index]) continue
    if (halt.aborted) break
    refused.of = null
    await run(line, index)
    if (refused.of) break
  }
  return { lines, results, refused: refused.of }
}

/** What the parts' results begin with: where a line belongs. */
export const resultMark = { output: "+", error: "-", unrun: "?" } as const

export function encodeResults({ lines, results }: RanPart): string {
  return lines
    .map((line, index) => {
      const result = results[index]
      if (result) return `${result.isSuccess ? resultMark.output : resultMark.error}${result.text}\n`
      return `${resultMark.unrun}${JSON.stringify({ line: line.line, customId: line.customId, body: "" })}\n`
    })
    .join("")
}
