/**
 * `npm run abuse [-- --every] [part of a name]`: attacks by one organization's key, and what another organization sees of each.
 * For every endpoint of the table the hostile bodies of its schema, and clients that behave badly (`--every`: each body at every
 * place where it fits); then requests that once held up or ended a gateway.
 *
 * The stall is the longest that /healthz took, with the body that it took it for; beside it, the processor time of the gateway's
 * longest turn of its event loop, which tells a stall of its own from one of a busy machine. Wanted on two quiet cores: a stall
 * of at most 250 ms, the other's p99 at most three times what it is alone, at most 256 MB more memory, and no 500.
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
import { type HostileBody, hostileBodies } from "./bodies.ts"
import type { Observed } from "./observer.ts"
import { type Target, attacked, manners, misbehave, openTarget, send } from "./target.ts"

const stallMsMax = 250
const ratioMax = 3
const mebibyte = 1024 * 1024
const growthMibMax = 256
/** As long alone as under attack: a percentile of few samples is their largest. */
const aloneMs = 10_000
const settleMs = 500
/** An attack that is refused at once is repeated for this long; each hostile body of an endpoint for its share of it. */
const attackMsMin = 3_000

const every = process.argv.includes("--every")
const chosen = process.argv.slice(2).filter((word) => word !== "--every")
const isChosen = (name: string): boolean =>
  chosen.length === 0 || chosen.some((part) => name.toLowerCase().includes(part.toLowerCase()))

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
  readonly growthMib: number
}

async function observe(act: () => Promise<string>): Promise<Seen> {
  await wait(settleMs)
  await Promise.all([take(), takeLongestTurn()])
  const before = memoryMib()
  let most = before
  const watching = setInterval(() => (most = Math.max(most, memoryMib())), 50)
  const outcome = await act()
  clearInterval(watching)
  const [observed, longestTurnMs] = await Promise.all([take(), takeLongestTurn()])
  return { ...observed, outcome, longestTurnMs, growthMib: most - before }
}

/** Of the gateway's own process, with its threads; engines are others. Zero where the system does not say. */
function memoryMib(): number {
  const status = `/proc/${server.process.pid}/status`
  const [, kib = "0"] = existsSync(status) ? (/VmRSS:\s+(\d+)/.exec(readFileSync(status, "utf8")) ?? []) : []
  return Number(kib) / 1024
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

interface Attack {
  readonly name: string
  /** Returns what became of it, in a few words. */
  run(): Promise<string>
}

/** Counted over everything: what answered 500 or another failure that is not 503 or 507. */
const failures: string[] = []

/** Sends each of the endpoint's hostile bodies, and says for which the server stood still longest. */
function endpointAttacks(target: Target): Attack[] {
  return attacked
    .filter(([name]) => isChosen(name))
    .map(([name, endpoint]) => ({
      name,
      run: async () => {
        const statuses = new Map<number, number>()
        const note = (kind: string, status: number | null): void => {
          if (status === null) return
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status >= 500 && status !== 503 && status !== 507) failures.push(`${name}, ${kind}: ${status}`)
        }
        const bodies = hostileBodies(endpoint, Math.min(8 * mebibyte, endpoint.bodyBytesMax), every)
        const largest = bodies.reduce<HostileBody | null>(
          (found, body) => (found && found.text.length >= body.text.length ? found : body),
          null,
        )
        let worst = { kind: "", ms: 0 }
        const watch = async (kind: string, act: () => Promise<number | null>): Promise<void> => {
          const startedMs = performance.now()
          const health = fetch(`${server.url}/healthz`).then(() => performance.now() - startedMs)
          note(kind, await act().catch(() => null))
          const ms = await health
          if (ms > worst.ms) worst = { kind, ms }
        }
        for (const body of bodies) await watch(body.kind, async () => await send(target, endpoint, body))
        if (largest)
          for (const manner of manners)
            await watch(manner, async () => await misbehave(target, endpoint, largest, manner))
        const counts = [...statuses].map(([status, count]) => `${count} x ${status}`).join(", ")
        return `${counts}; slowest: ${worst.kind}`
      },
    }))
}

const fixedAttacks = (): Attack[] =>
  attacks
    .filter(({ name }) => isChosen(name))
    .map((attack) => ({
      name: attack.name,
      run: async () => {
        const body = attack.body?.() ?? ""
        const endMs = performance.now() + attackMsMin
        let last = ""
        do last = await attack.run(server, body).catch(String)
        while (performance.now() < endMs)
        return last
      },
    }))

try {
  const target = await openTarget(server)
  const idle = async (ms: number): Promise<Seen> =>
    await observe(async () => {
      await wait(ms)
      return ""
    })
  // Models are loaded and code is compiled before anything is measured.
  await idle(aloneMs / 2)
  const alone = await idle(aloneMs)
  const aloneP99 = percentile(alone.decisionMs, 0.99)
  console.log(
    `alone: /healthz at most ${Math.max(...alone.healthMs).toFixed(0)} ms, decisions p99 ${aloneP99.toFixed(0)} ms\n`,
  )
  console.log(
    "| attack | outcome | stall ms | longest turn ms | the other's p99 ms | times alone | growth MiB | |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
  )
  let over = 0
  const running = [...endpointAttacks(target), ...fixedAttacks()]
  for (const attack of running) {
    const seen = await observe(async () => await attack.run())
    const stall = Math.max(...seen.healthMs)
    const p99 = percentile(seen.decisionMs, 0.99)
    const isOver =
      stall > stallMsMax ||
      !(p99 <= aloneP99 * ratioMax) ||
      seen.growthMib > growthMibMax ||
      seen.failures.length > 0
    if (isOver) over++
    const notes = [...(isOver ? ["OVER"] : []), ...new Set(seen.failures)].join("; ")
    const figures = [stall, seen.longestTurnMs, p99].map((ms) => ms.toFixed(0)).join(" | ")
    console.log(
      `| ${attack.name} | ${seen.outcome} | ${figures} | ${(p99 / aloneP99).toFixed(1)} | ${seen.growthMib.toFixed(0)} | ${notes} |`,
    )
  }
  console.log(`\n${running.length - over} of ${running.length} within bounds; failures: ${failures.length}`)
  for (const failure of failures) console.log(failure)
} finally {
  await observer.terminate()
  await server.stop()
  rmSync(directory, { recursive: true })
}
