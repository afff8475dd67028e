/**
 * `npm run abuse [-- --every] [part of a name]`: attacks by one organization, and what another organization sees of each. For every
 * endpoint of the table the hostile bodies of its schema, by a caller who may send them and once by each who lacks something that it
 * needs (credentials, allowance, permission, organization, role, resource), and clients that behave badly (`--every`: each body at every place where it fits); then requests that once held up or ended a gateway.
 *
 * The stall is the longest that /healthz took; beside it, the processor time of the gateway's longest turn of its event loop, which
 * tells a stall of its own from one of a busy machine. Wanted on two quiet cores: a stall of at most 250 ms, the other's p99 at most
 * three times what it is alone at that time, at most 256 MB more memory, and no 500. An attack over a bound is made again, at most twice, and the
 * least of each figure counts: a machine that does other work adds to them, and never takes away. Exits 1 where a bound is passed.
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
import type { Endpoint } from "../../src/contract/endpoint.ts"
import { attacks } from "./attacks.ts"
import { type HostileBody, hostileBodies } from "./bodies.ts"
import type { Observed } from "./observer.ts"
import {
  type Target,
  allowed,
  attacked,
  bodiless,
  manners,
  misbehave,
  openTarget,
  refusalsOf,
  send,
  statusOf,
} from "./target.ts"

const stallMsMax = 250
const ratioMax = 3
const mebibyte = 1024 * 1024
const growthMibMax = 256
/** Before the first attack; a percentile of few samples is their largest. */
const aloneMs = 20_000
/** Before each attempt: a machine that is shared is not as fast at the end as it was at the start. */
const aloneAgainMs = 2_000
/** Decisions that were alone, the newest. */
const aloneSamples = 600
const settleMs = 500
/** An attack that ends sooner is repeated for this long, so that a hundred decisions see it. */
const attackMsMin = 6_000
/** How often one that is over a bound is made. */
const attemptsMax = 3

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
    UMPIRE_ENGINE_DECISION_MODEL: "umpire-decide",
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

/** What was answered, and for what the server stood still longest. */
class Log {
  readonly #statuses = new Map<number, number>()
  #slowest = { kind: "", ms: 0 }

  /** Returns the status, where there is one. */
  async watch(name: string, kind: string, act: () => Promise<number | null>): Promise<number | null> {
    const startedMs = performance.now()
    const health = fetch(`${server.url}/healthz`).then(() => performance.now() - startedMs)
    const status = await act().catch(() => null)
    const ms = await health.catch(() => Infinity)
    if (ms > this.#slowest.ms) this.#slowest = { kind, ms }
    if (status === null) return null
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
    if (status >= 500 && status !== 503 && status !== 507) failures.push(`${name}, ${kind}: ${status}`)
    return status
  }

  toString(): string {
    const counts = [...this.#statuses].map(([status, count]) => `${count} x ${status}`).join(", ")
    return `${counts}; slowest: ${this.#slowest.kind}`
  }
}

async function attackEndpoint(
  target: Target,
  [name, endpoint]: readonly [string, Endpoint],
  bodies: readonly HostileBody[],
  log: Log,
): Promise<void> {
  const largest = bodies.reduce<HostileBody | undefined>(
    (found, body) => (found && found.text.length >= body.text.length ? found : body),
    undefined,
  )
  const sending = allowed(endpoint, target)
  for (const body of bodies) await log.watch(name, body.kind, async () => await send(sending, body))
  if (!largest) return
  // At once: held connections cost nothing more, and would only give the server time to rest.
  await Promise.all(
    manners.map(async (manner) => {
      await log.watch(name, manner, async () => await misbehave(sending, largest, manner))
    }),
  )
  await Promise.all(
    refusalsOf(endpoint, target).map(async (refusal) => {
      const { lacks, status } = refusal
      const act = async (): Promise<number> => await statusOf(refusal, async (by) => await send(by, largest))
      const answered = await log.watch(name, `without ${lacks}`, act)
      if (answered !== null && answered !== status) failures.push(`${name}, without ${lacks}: ${answered}`)
    }),
  )
}

const endpointAttacks = (target: Target): Attack[] =>
  attacked
    .filter(([name]) => isChosen(name))
    .map((named) => ({
      name: named[0],
      run: async () => {
        const log = new Log()
        const bodies = hostileBodies(named[1], 8 * mebibyte, every)
        await repeated(async () => await attackEndpoint(target, named, bodies, log))
        return String(log)
      },
    }))

/** Endpoints without a body, together by the permission that they need. */
function bodilessAttacks(target: Target): Attack[] {
  const body = { kind: "a body", contentType: "application/json", text: `"${"a".repeat(mebibyte)}"` }
  const groups = Map.groupBy(bodiless, ([, { access }]) => access.permission ?? access.principals.join())
  return [...groups]
    .map(([permission, group]) => ({ name: `no body, ${permission || "anyone"}`, group }))
    .filter(({ name }) => isChosen(name))
    .map(({ name, group }) => ({
      name,
      run: async () => {
        const log = new Log()
        for (const named of group) await attackEndpoint(target, named, [body], log)
        return String(log)
      },
    }))
}

async function repeated(act: () => Promise<unknown>): Promise<void> {
  const endMs = performance.now() + attackMsMin
  do await act()
  while (performance.now() < endMs)
}

const fixedAttacks = (target: Target): Attack[] =>
  attacks
    .filter(({ name }) => isChosen(name))
    .map((attack) => ({
      name: attack.name,
      run: async () => {
        // Encoded once, however often it is sent: that work is the attacker's, on the same processors.
        const body = Buffer.from(attack.body?.() ?? "")
        let last = ""
        await repeated(async () => {
          last = await attack.run({ url: target.url, key: target.keys.inference }, body).catch(String)
        })
        return last
      },
    }))

interface Figures {
  readonly stallMs: number
  readonly turnMs: number
  readonly p99Ms: number
  /** To what it was alone. */
  readonly ratio: number
  readonly growthMib: number
  readonly failures: readonly string[]
}

/** What a decision takes while nothing attacks, by the newest that were measured so. */
class Alone {
  readonly #decisionMs: number[] = []

  async measure(ms: number): Promise<Seen> {
    const seen = await observe(async () => {
      await wait(ms)
      return ""
    })
    this.#decisionMs.push(...seen.decisionMs)
    this.#decisionMs.splice(0, this.#decisionMs.length - aloneSamples)
    return seen
  }

  get p99Ms(): number {
    return percentile(this.#decisionMs, 0.99)
  }
}

/** Makes the attack until its figures are within the bounds, or often enough. */
async function measure(
  attack: Attack,
  alone: Alone,
): Promise<Figures & { outcome: string; isOver: boolean }> {
  let least: Figures | undefined
  for (let attempt = 1; ; attempt++) {
    await alone.measure(aloneAgainMs)
    const seen = await observe(async () => await attack.run())
    const p99Ms = percentile(seen.decisionMs, 0.99)
    const now = {
      stallMs: Math.max(...seen.healthMs),
      turnMs: seen.longestTurnMs,
      p99Ms,
      ratio: p99Ms / alone.p99Ms,
      growthMib: seen.growthMib,
      failures: seen.failures,
    }
    least = least ? leastOf(least, now) : now
    const isOver =
      least.stallMs > stallMsMax ||
      !(least.ratio <= ratioMax) ||
      least.growthMib > growthMibMax ||
      least.failures.length > 0
    if (!isOver || attempt === attemptsMax) return { ...least, outcome: seen.outcome, isOver }
  }
}

const leastOf = (a: Figures, b: Figures): Figures => ({
  stallMs: Math.min(a.stallMs, b.stallMs),
  turnMs: Math.min(a.turnMs, b.turnMs),
  p99Ms: Math.min(a.p99Ms, b.p99Ms),
  ratio: Math.min(a.ratio, b.ratio),
  growthMib: Math.min(a.growthMib, b.growthMib),
  failures: a.failures.length < b.failures.length ? a.failures : b.failures,
})

let target: Target | undefined
try {
  target = await openTarget(server)
  // Models are loaded and code is compiled before anything is measured.
  await new Alone().measure(aloneMs / 2)
  const alone = new Alone()
  const { healthMs } = await alone.measure(aloneMs)
  console.log(
    `alone: /healthz at most ${Math.max(...healthMs).toFixed(0)} ms, decisions p99 ${alone.p99Ms.toFixed(0)} ms\n`,
  )
  console.log(
    "| attack | outcome | stall ms | longest turn ms | the other's p99 ms | times alone | growth MiB | |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
  )
  let over = 0
  const running = [...endpointAttacks(target), ...bodilessAttacks(target), ...fixedAttacks(target)]
  for (const attack of running) {
    const { outcome, isOver, ...figures } = await measure(attack, alone)
    if (isOver) over++
    const notes = [...(isOver ? ["OVER"] : []), ...new Set(figures.failures)].join("; ")
    const times = [figures.stallMs, figures.turnMs, figures.p99Ms].map((ms) => ms.toFixed(0)).join(" | ")
    console.log(
      `| ${attack.name} | ${outcome} | ${times} | ${figures.ratio.toFixed(1)} | ${figures.growthMib.toFixed(0)} | ${notes} |`,
    )
  }
  console.log(`\nalone at the end: decisions p99 ${alone.p99Ms.toFixed(0)} ms`)
  console.log(`${running.length - over} of ${running.length} within bounds; failures: ${failures.length}`)
  for (const failure of failures) console.log(failure)
  if (over > 0 || failures.length > 0) process.exitCode = 1
} finally {
  await observer.terminate()
  await server.stop()
  await target?.close()
  rmSync(directory, { recursive: true })
}
