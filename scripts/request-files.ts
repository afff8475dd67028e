/**
 * Prints the source files that one decision passes through, in the gateway and in its engine process: those in which a
 * function was called while one `POST /v1/decisions` was answered by a server that had answered others before, and those
 * that put it into the ledger and analytics after.
 *
 * node scripts/request-files.ts
 *
 * Every process of the server counts its calls (V8's precise coverage) and writes them down on SIGUSR2. Files that appear
 * only now and then belong to timers in the background, so a file counts when each of several requests passed it.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { fileURLToPath, pathToFileURL } from "node:url"
import { isMainThread } from "node:worker_threads"

const source = join(import.meta.dirname, "..", "src")
const rounds = 10
const warmUps = 3
/** The ledger and analytics work off what was asked before. */
const settleMs = 2_000
const pollIntervalMs = 20

const body = {
  model: "umpire-decide",
  input: "The invoice of 3 March was paid twice. Please send the second payment back.",
  questions: [
    { type: "predicate", instructions: "Does the writer ask for money back?" },
    {
      type: "choice",
      instructions: "What is it about?",
      choices: [{ value: "billing" }, { value: "delivery" }, { value: "other" }],
    },
  ],
}

/** Given by the address of this file where a process of the server loads it: what starts an engine passes few variables on. */
const directory = new URL(import.meta.url).searchParams.get("directory")
if (directory !== null) {
  if (isMainThread) await countCalls(directory)
} else await main()

/** In a process of the server, where this file is loaded before the program. */
async function countCalls(into: string): Promise<void> {
  const session = new Session()
  session.connect()
  await session.post("Profiler.enable")
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
  let round = 0
  process.on("SIGUSR2", () => {
    void session.post("Profiler.takePreciseCoverage").then(({ result }) => {
      const files = result
        .filter(({ url, functions }) => url.startsWith("file:") && functions.some(isCalled))
        .map(({ url }) => relative(source, fileURLToPath(url)))
        .filter((path) => !path.startsWith("..") && path.endsWith(".ts"))
      writeFileSync(join(into, `${process.pid}.${round++}.json`), JSON.stringify(files))
    })
  })
  writeFileSync(join(into, `${process.pid}.pid`), "")
}

/** The module itself is a function without a name that begins at 0; it runs when it is loaded, not for a request. */
function isCalled({
  functionName,
  ranges,
}: {
  readonly functionName: string
  readonly ranges: readonly { readonly startOffset: number; readonly count: number }[]
}): boolean {
  return ranges.some(({ startOffset, count }) => count > 0 && !(functionName === "" && startOffset === 0))
}

async function main(): Promise<void> {
  const into = mkdtempSync(join(tmpdir(), "request-files-"))
  const { startServer } = await import("../test/server.ts")
  const server = await startServer({
    env: {
      NODE_OPTIONS: `--import ${pathToFileURL(import.meta.filename).href}?directory=${encodeURIComponent(into)}`,
    },
  })
  try {
    for (let count = 0; count < warmUps; count++) await ask(server)
    await wait(settleMs)
    let taken = 0
    await take(into, taken++)
    const answered: Set<string>[] = []
    const billed: Set<string>[] = []
    for (let round = 0; round < rounds; round++) {
      await ask(server)
      answered.push(await take(into, taken++))
      await wait(settleMs)
      const after = await take(into, taken++)
      await wait(settleMs)
      // What runs without a request is no part of one.
      const idle = await take(into, taken++)
      billed.push(new Set([...after].filter((file) => !idle.has(file))))
    }
    const toAnswer = inAll(answered)
    const toBill = inAll(billed).filter((file) => !toAnswer.includes(file))
    process.stdout.write(`${toAnswer.join("\n")}\n${toAnswer.length} files to the answer\n\n`)
    process.stdout.write(`${toBill.join("\n")}\n${toAnswer.length + toBill.length} files to the bill\n`)
  } finally {
    await server.stop()
    rmSync(into, { recursive: true, force: true })
  }
}

function inAll([first = new Set(), ...others]: readonly Set<string>[]): string[] {
  return [...first].filter((file) => others.every((one) => one.has(file))).toSorted()
}

async function ask(server: { post(path: string, body: unknown): Promise<Response> }): Promise<void> {
  const response = await server.post("/v1/decisions", body)
  if (!response.ok) throw new Error(`The server answered ${response.status}: ${await response.text()}`)
  await response.text()
}

/** What all processes of the server were called for since the last time; `count` is how often they were asked before. */
async function take(into: string, count: number): Promise<Set<string>> {
  const ids = readdirSync(into)
    .filter((name) => name.endsWith(".pid"))
    .map((name) => Number(name.slice(0, -".pid".length)))
    .filter(isAlive)
  for (const id of ids) process.kill(id, "SIGUSR2")
  const files = new Set<string>()
  for (const id of ids)
    for (const file of await readTaken(join(into, `${id}.${count}.json`), id)) files.add(file)
  return files
}

async function readTaken(path: string, id: number): Promise<string[]> {
  for (;;) {
    try {
      return JSON.parse(readFileSync(path, "utf8")) as string[]
    } catch (error) {
      // Not written yet, or not to its end.
      if (!isAlive(id)) throw error
      await wait(pollIntervalMs)
    }
  }
}

function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0)
  } catch {
    return false
  }
}
