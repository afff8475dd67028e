/**
 * `npm run abuse [-- part of a name]`: attacks by one organization's key, and what another organization sees of each.
 *
 * The stall is the longest that /healthz took; beside it, the processor time of the gateway's longest turn of its event loop,
 * which tells a stall of its own from one of a busy machine. Wanted on two cores: a stall of at most 250 ms, and the other's
 * p99 at most three times what it is alone.
 */
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { availableParallelism, constants, setPriority, tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { pathToFileURL } from "node:url"
import { Worker } from "node:worker_threads"
import { secondKey } from "../second-key.ts"
import { startServer } from "../../test/server.ts"
import { attacks } from "./attacks.ts"
import type { Observed } from "./observer.ts"

const stallMsMax = 250
const ratioMax = 3
/** As long alone as under attack: a percentile of few samples is their largest. */
const aloneMs = 10_000
const settleMs = 500
/** An attack that is refused at once is repeated for this long. */
const attackMsMin = aloneMs

const chosen = process.argv.slice(2)
const running = attacks.filter(
  ({ name }) => chosen.length === 0 || chosen.some((part) => name.includes(part)),
)

const directory = mkdtempSync(join(tmpdir(), "umpire-abuse-"))
const loopFile = join(directory, "loop")
const server = await startServer({
  env: {
    LOOP_MONITOR_FILE: loopFile,
    NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, "loop-monitor.ts")).href}`,
    UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1000000",
    UMPIRE_LIMITS_BURST: "1000000",
    // As it is shipped; tests run it with one.
    UMPIRE_ENGINE_THREADS: String(availableParallelism()),
  },
})
const observer = new Worker(join(import.meta.dirname, "observer.ts"), {
  workerData: { url: server.url, key: await secondKey(server) },
})

// The attacker is on the server's machine here and elsewhere in life: its own work yields to the server and the observer. On
// Linux this is the priority of this thread alone.
setPriority(constants.priority.PRIORITY_LOW)

interface Seen extends Observed {
  readonly outcome: string
  readonly longestTurnMs: number
}

async function observe(act: () => Promise<string>): Promise<Seen> {
  await wait(settleMs)
  await Promise.all([take(), takeLongestTurn()])
  const outcome = await act()
  const [observed, longestTurnMs] = await Promise.all([take(), takeLongestTurn()])
  return { ...observed, outcome, longestTurnMs }
}

async function takeLongestTurn(): Promise<number> {
  rmSync(loopFile, { force: true })
  server.process.kill("SIGUSR2")
  for (;;) {
    const text = existsSync(loopFile) ? readFileSync(loopFile, "utf8") : ""
    if (text.endsWith("\n")) return Number(text)
    await wait(10)
  }
}

async function take(): Promise<Observed> {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  observer.postMessage(null)
  const [observed] = (await once(observer, "message")) as [Observed]
  return observed
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

try {
  // Models are loaded and code is compiled before anything is measured.
  await observe(async () => {
    await wait(aloneMs / 2)
    return ""
  })
  const alone = await observe(async () => {
    await wait(aloneMs)
    return ""
  })
  const aloneP99 = percentile(alone.decisionMs, 0.99)
  console.log(
    `alone: /healthz at most ${Math.max(...alone.healthMs).toFixed(0)} ms, decisions p99 ${aloneP99.toFixed(0)} ms\n`,
  )
  console.log(
    "| attack | outcome | stall ms | longest turn ms | the other's p99 ms | times alone | |\n| --- | --- | --- | --- | --- | --- | --- |",
  )
  let over = 0
  for (const attack of running) {
    const body = attack.body?.() ?? ""
    const { outcome, healthMs, decisionMs, failures, longestTurnMs } = await observe(async () => {
      const endMs = performance.now() + attackMsMin
      let last = ""
      do last = await attack.run(server, body).catch(String)
      while (performance.now() < endMs)
      return last
    })
    const stall = Math.max(...healthMs)
    const p99 = percentile(decisionMs, 0.99)
    const isOver = stall > stallMsMax || !(p99 <= aloneP99 * ratioMax) || failures.length > 0
    if (isOver) over++
    const notes = [...(isOver ? ["OVER"] : []), ...new Set(failures)].join("; ")
    console.log(
      `| ${attack.name} | ${outcome} | ${stall.toFixed(0)} | ${longestTurnMs.toFixed(0)} | ${p99.toFixed(0)} | ${(p99 / aloneP99).toFixed(1)} | ${notes} |`,
    )
  }
  console.log(`\n${running.length - over} of ${running.length} within bounds`)
} finally {
  await observer.terminate()
  await server.stop()
  rmSync(directory, { recursive: true })
}
