/** Load on a running server while its engine process is killed, and what is left in memory afterwards. */
import { spawnSync } from "node:child_process"
import { expect } from "vitest"
import type { TestServer } from "./server.ts"

interface Outcome {
  readonly status: number
  readonly code: string | null
}

const concurrency = 8

/** Every process below the server's, by their parents. */
function childrenOf(pid: number): number[] {
  const listed = spawnSync("ps", ["-e", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).stdout
  return listed
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .flatMap((match) =>
      match && Number(match[2]) === pid && match[3]?.includes("engine") ? [Number(match[1])] : [],
    )
}

const residentKib = (pid: number): number =>
  Number(spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }).stdout)

async function ask(server: TestServer, index: number): Promise<Outcome> {
  const response = await server.post("/v1/decisions", {
    model: "umpire-decide",
    input: `Ticket ${index}: the parcel arrived late and the box was crushed. I want my money back.`,
    questions: [
      { type: "predicate", instructions: "Does the customer ask for a refund?" },
      {
        type: "choice",
        instructions: "What is it about?",
        choices: [{ value: "delivery" }, { value: `topic ${index}` }],
      },
    ],
  })
  const body = (await response.json()) as { error?: { code: string } }
  return { status: response.status, code: body.error?.code ?? null }
}

async function askMany(
  server: TestServer,
  count: number,
  onDone: (done: number) => void = () => undefined,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  let next = 0
  const work = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) onDone(outcomes.push(await ask(server, index)))
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return outcomes
}

/** Kills the engine at even distances through the load; every request ends in an answer or a clean 500. */
export async function killUnderLoad(server: TestServer, requests: number, kills: number): Promise<void> {
  const pid = server.process.pid ?? 0
  expect(await ask(server, 0)).toEqual({ status: 200, code: null })
  let killed = 0
  const outcomes = await askMany(server, requests, (done) => {
    if (killed >= kills || done < ((killed + 1) * requests) / (kills + 1)) return
    killed++
    // By a command, which takes it that one has ended meanwhile.
    spawnSync("kill", ["-KILL", ...childrenOf(pid).map(String)])
  })
  expect(killed).toBe(kills)
  const others = outcomes.filter(
    ({ status, code }) => status !== 200 && !(status === 500 && code === "inference_failed"),
  )
  expect(others).toEqual([])
  const answered = outcomes.filter(({ status }) => status === 200).length
  console.log(
    `${requests} requests, ${kills} kills: ${answered} answered, ${requests - answered} clean errors`,
  )
  // A killed engine is retried once, so errors are the exception.
  expect(answered).toBeGreaterThan(requests / 2)
  expect(await ask(server, 1)).toEqual({ status: 200, code: null })
}

/** After a first half that fills caches and heaps, a second half of the load adds next to nothing. */
export async function memoryStaysLevel(
  server: TestServer,
  requests: number,
  growthMax: number,
): Promise<void> {
  const processes = [server.process.pid ?? 0, ...childrenOf(server.process.pid ?? 0)]
  expect(processes.length).toBeGreaterThan(1)
  const total = (): number => processes.reduce((sum, pid) => sum + residentKib(pid), 0)
  await askMany(server, requests)
  const before = total()
  await askMany(server, requests)
  const after = total()
  console.log(
    `memory after ${requests} requests ${(before / 1024).toFixed(0)} MiB, after ${2 * requests} ${(after / 1024).toFixed(0)} MiB`,
  )
  expect(after / before).toBeLessThan(growthMax)
}
