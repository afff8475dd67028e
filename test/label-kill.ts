/** `umpire label`, killed while it asks: every text is asked and charged once, and the output has every row in its order. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createReadStream, existsSync, readFileSync, statSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { expect } from "vitest"
import { readBooks } from "./gateways.ts"
import type { LabelGate } from "./label-gate.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")

export interface LabelServer {
  readonly url: string
  readonly key: string
  readonly model: string
  /** Of PostgreSQL, where the ledger is. */
  readonly databaseUrl: string
}

export interface LabelKills {
  readonly folder: string
  readonly rows: number
  readonly kills: number
  readonly timeoutMs: number
  /** Before the server, where the run would else end before a busy machine comes to kill it. */
  readonly gate?: LabelGate
}

export const labelEnv = ({ url, key }: Pick<LabelServer, "url" | "key">): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  UMPIRE_URL: url,
  UMPIRE_API_KEY: key,
})

export interface LabelRun {
  readonly rowsPerSecond: number
  /** Of the process, in MiB, at each tenth of the last start. */
  readonly memoryMib: readonly number[]
}

/** The ledger must be empty before it. Returns how the last start ran, which no kill ends. */
export async function labelUnderKills(server: LabelServer, run: LabelKills): Promise<LabelRun> {
  const { folder, rows, kills, timeoutMs, gate } = run
  const input = join(folder, "rows.csv")
  const lines = Array.from({ length: rows }, (_, n) => `${n},"Order ${n}: the parcel has not arrived"`)
  await writeFile(input, `id,text\n${lines.join("\n")}\n`)
  const state = join(folder, "rows.labelled.csv.label-state")
  const start = (): ChildProcess =>
    spawn(
      process.execPath,
      [umpire, "label", "rows.csv", "--yes-no", "Is it late?", "--model", server.model],
      { cwd: folder, env: labelEnv(server), stdio: ["ignore", "pipe", "pipe"] },
    )
  const answered: number[] = []
  for (let kill = 1; kill <= kills; kill++) {
    const count = Math.floor((rows * kill) / (2 * (kills + 1)))
    // Some more, which are under way when it is killed, but never all.
    gate?.allow(count - Math.max(0, countLines(state)) + Math.floor(rows / (4 * (kills + 1))))
    const child = start()
    const isReached = (): boolean => child.exitCode !== null || countLines(state) >= count
    await expect.poll(isReached, { timeout: timeoutMs, interval: 10 }).toBe(true)
    expect(child.exitCode, "it ended before it was killed").toBeNull()
    child.kill("SIGKILL")
    await once(child, "exit")
    answered.push(countLines(state))
  }
  gate?.allow(Infinity)
  const before = countLines(state)
  const startedMs = performance.now()
  const child = start()
  const memoryMib = await watchMemory(child, state, rows)
  const seconds = (performance.now() - startedMs) / 1000
  expect(child.exitCode).toBe(0)
  expect(existsSync(state)).toBe(false)
  await checkOutput(join(folder, "rows.labelled.csv"), rows)
  const result = { rowsPerSecond: (rows - before) / seconds, memoryMib }
  console.log(
    `${rows} rows, killed at ${answered.join(", ")} answers; the rest at ${result.rowsPerSecond.toFixed(0)} rows a second, memory ${memoryMib.join(", ")} MiB`,
  )
  return result
}

/** Once the server has written its books. */
export async function checkEachChargedOnce({ databaseUrl }: LabelServer, rows: number): Promise<void> {
  const { charges } = await readBooks(databaseUrl)
  expect(charges.size).toBe(rows)
}

const newline = 10

function countLines(state: string): number {
  if (!existsSync(state)) return 0
  const bytes = readFileSync(state)
  // The first line is about the run.
  let count = -1
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) count++
  return count
}

/** In MiB at each tenth of what is left, until the process ends. */
async function watchMemory(child: ChildProcess, state: string, rows: number): Promise<number[]> {
  const ended = once(child, "exit")
  const bytesPerLine = statSync(state).size / Math.max(1, countLines(state))
  const firstBytes = statSync(state).size
  const lastBytes = rows * bytesPerLine
  const seen: number[] = []
  const timer = setInterval(() => {
    const found = statSync(state, { throwIfNoEntry: false })
    if (!found) return
    const share = (found.size - firstBytes) / (lastBytes - firstBytes)
    if (share * 10 >= seen.length + 1) seen.push(residentMib(child))
  }, 100)
  await ended
  clearInterval(timer)
  return seen
}

function residentMib({ pid }: ChildProcess): number {
  const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, "utf8") : ""
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
}

async function checkOutput(path: string, rows: number): Promise<void> {
  let count = -1
  let wrong = 0
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (
      count >= 0 &&
      !new RegExp(`^${count},"?Order ${count}: [^,]*,(yes|no),0\\.\\d+,[\\d.e-]+,(yes|no),$`).test(line)
    )
      wrong++
    count++
  }
  expect([count, wrong]).toEqual([rows, 0])
}
