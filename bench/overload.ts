/**
 * Ten times the load that the machine can do: throughput, latency of what is admitted, memory, and who gets served.
 *
 * node bench/overload.ts [--seconds=10]
 */
import { readFileSync, readdirSync } from "node:fs"
import { setTimeout as wait } from "node:timers/promises"
import { Agent, request } from "undici"
import { type TestServer, startServer } from "../test/server.ts"
import { secondKey } from "./second-key.ts"

const seconds = Number(/--seconds=(\d+)/.exec(process.argv.join(" "))?.[1] ?? 10)
const millisecondsPerSecond = 1_000
const mebibyte = 1024 * 1024
const clientsAtPeak = 8
const overloadFactor = 10
/** What this script itself may have open; beyond it the load is not offered. */
const openMax = 2_000
const branchesMax = 4096
const smallEveryMs = 250
/** For the last of the flood to leave the engine. */
const settleMs = 2_000

/** Whatever is measured beside the load of this script itself: it has half of a small machine. */
const agent = new Agent({ connections: openMax })

interface Phase {
  readonly name: string
  readonly offeredPerSecond: number
  readonly donePerSecond: number
  readonly done: number
  readonly refused: number
  readonly failures: string
  readonly p50Ms: number
  readonly p99Ms: number
  readonly mostMs: number
  readonly memoryMiB: number
}

const small = JSON.stringify({
  model: "umpire-decide",
  input: "The parcel is two weeks late.",
  questions: [{ type: "predicate", instructions: "Is something late?" }],
})
const large = JSON.stringify({
  model: "umpire-decide",
  input: "The parcel is two weeks late.",
  questions: Array.from({ length: branchesMax }, (_, at) => ({
    type: "predicate",
    instructions: `Is it ${at} days late?`,
  })),
})

class Meter {
  readonly latencies: number[] = []
  readonly failures = new Map<string, number>()
  /** What is answered later does not count as throughput. */
  endMs = Infinity
  doneInTime = 0
  refused = 0
  offered = 0
  memoryBytes = 0
  open = 0
  readonly #server: TestServer
  readonly #key: string

  constructor(server: TestServer, key: string) {
    this.#server = server
    this.#key = key
  }

  async send(body: string): Promise<void> {
    const startedMs = performance.now()
    this.offered++
    this.open++
    try {
      const response = await request(`${this.#server.url}/v1/decisions`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#key}`, "content-type": "application/json" },
        body,
        dispatcher: agent,
      })
      const text = await response.body.text()
      if (response.statusCode === 200) this.#done(performance.now() - startedMs)
      else if (response.statusCode === 429 && response.headers["retry-after"] !== undefined) this.refused++
      else this.#fail(`${response.statusCode} ${/"code":"(\w+)"/.exec(text)?.[1]}`)
    } catch (error) {
      this.#fail(String(error))
    } finally {
      this.open--
    }
  }

  /** The gateway's memory; the engine's is its own and fixed. */
  watch(): void {
    this.memoryBytes = Math.max(this.memoryBytes, residentBytes(this.#server.process.pid ?? 0))
  }

  #done(latencyMs: number): void {
    this.latencies.push(latencyMs)
    if (performance.now() <= this.endMs) this.doneInTime++
  }

  #fail(why: string): void {
    this.failures.set(why, (this.failures.get(why) ?? 0) + 1)
  }

  result(name: string, forMs: number): Phase {
    const sorted = this.latencies.toSorted((a, b) => a - b)
    const at = (share: number): number =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
    const perSecond = (count: number): number => (count * millisecondsPerSecond) / forMs
    return {
      name,
      offeredPerSecond: perSecond(this.offered),
      donePerSecond: perSecond(this.doneInTime),
      done: sorted.length,
      refused: this.refused,
      failures: [...this.failures].map(([why, count]) => `${count} x ${why}`).join(", "),
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      mostMs: at(1),
      memoryMiB: this.memoryBytes / mebibyte,
    }
  }
}

function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))
  return Number(line?.[1] ?? 0) * 1024
}

/** Seconds of the processor so far: of the gateway, of its engines, and of this script, which is a part of the load. */
function processorSeconds(pid: number): readonly [gateway: number, engines: number, script: number] {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => statOf(Number(name))[parentField] === String(pid))
  return [spent(pid), children.reduce((sum, child) => sum + spent(Number(child)), 0), spent(process.pid)]
}

function spent(pid: number): number {
  const stat = statOf(pid)
  return (Number(stat[userField] ?? 0) + Number(stat[systemField] ?? 0)) / clockTicksPerSecond
}

const clockTicksPerSecond = 100
/** After the name, which may hold blanks. */
const parentField = 1
const userField = 11
const systemField = 12

function statOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
  } catch {
    // It has ended meanwhile.
    return []
  }
}

/** Runs a phase and says what it took of the processor. */
async function watched(server: TestServer, phase: () => Promise<unknown>): Promise<void> {
  const before = processorSeconds(server.process.pid ?? 0)
  const startedMs = performance.now()
  await phase()
  const [gateway = 0, engines = 0, script = 0] = processorSeconds(server.process.pid ?? 0).map(
    (seconds, at) => seconds - (before[at] ?? 0),
  )
  const shares = [gateway, engines, script].map((used) =>
    ((used * millisecondsPerSecond) / (performance.now() - startedMs)).toFixed(2),
  )
  console.log(`  processors used: gateway ${shares[0]}, engine ${shares[1]}, this script ${shares[2]}`)
}

/** As many as answer: each client sends its next request when it has its answer. */
async function closedLoop(meter: Meter, clients: number, forMs: number): Promise<void> {
  const endMs = performance.now() + forMs
  meter.endMs = endMs
  const client = async (): Promise<void> => {
    while (performance.now() < endMs) await meter.send(small)
    meter.watch()
  }
  await Promise.all(Array.from({ length: clients }, client))
}

/** At a rate, whatever becomes of the earlier ones. */
async function openLoop(meter: Meter, body: string, everyMs: number, forMs: number): Promise<void> {
  const startedMs = performance.now()
  meter.endMs = startedMs + forMs
  const sent: Promise<void>[] = []
  for (let count = 0; performance.now() - startedMs < forMs;) {
    const due = Math.floor((performance.now() - startedMs) / everyMs)
    for (; count < due && meter.open < openMax; count++) sent.push(meter.send(body))
    meter.watch()
    await wait(10)
  }
  await Promise.all(sent)
  meter.watch()
}

function print(phase: Phase): void {
  const cells = [
    phase.name.padEnd(42),
    `${phase.offeredPerSecond.toFixed(1)}/s offered`.padStart(18),
    `${phase.donePerSecond.toFixed(1)}/s done`.padStart(14),
    `${phase.done} x 200`.padStart(11),
    `${phase.refused} x 429`.padStart(12),
    `p50 ${phase.p50Ms.toFixed(0)} ms`.padStart(13),
    `p99 ${phase.p99Ms.toFixed(0)} ms`.padStart(13),
    `most ${phase.mostMs.toFixed(0)} ms`.padStart(14),
    `${phase.memoryMiB.toFixed(0)} MiB`.padStart(9),
    phase.failures === "" ? "" : `  FAILED ${phase.failures}`,
  ]
  console.log(cells.join(" "))
}

const server = await startServer({
  env: {
    UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000",
    UMPIRE_LIMITS_BURST: "10000000",
    // One of the flood takes more than a minute on a small machine; it must not go on for ever either.
    UMPIRE_SERVER_REQUEST_TIMEOUT_MS: "150000",
    UMPIRE_ROUTING_CONCURRENCY_MAX: "16",
    UMPIRE_ROUTING_QUEUE_MAX: "64",
    UMPIRE_ROUTING_QUEUE_WAIT_MS: "5000",
  },
})
try {
  const other = await secondKey(server)
  const forMs = seconds * millisecondsPerSecond
  await closedLoop(new Meter(server, server.key), clientsAtPeak, forMs / 4)

  const peakMeter = new Meter(server, server.key)
  await watched(server, async () => await closedLoop(peakMeter, clientsAtPeak, forMs))
  const peak = peakMeter.result("peak: as many as answer", forMs)
  print(peak)

  const overMeter = new Meter(server, server.key)
  const smallMeter = new Meter(server, other)
  const everyMs = millisecondsPerSecond / (peak.donePerSecond * overloadFactor)
  await watched(
    server,
    async () =>
      await Promise.all([
        openLoop(overMeter, small, everyMs, forMs),
        openLoop(smallMeter, small, smallEveryMs, forMs),
      ]),
  )
  const over = overMeter.result("ten times as many, one organization", forMs)
  print(over)
  const others = smallMeter.result("beside it, a few of another organization", forMs)
  print(others)

  const floodMeter = new Meter(server, server.key)
  const besideMeter = new Meter(server, other)
  await watched(
    server,
    async () =>
      await Promise.all([
        openLoop(floodMeter, large, millisecondsPerSecond, forMs),
        openLoop(besideMeter, small, smallEveryMs, forMs),
      ]),
  )
  print(floodMeter.result(`a request of ${branchesMax} branches every second`, forMs))
  print(besideMeter.result("beside it, a few of another organization", forMs))
  await wait(settleMs)
  const after = new Meter(server, other)
  await closedLoop(after, 1, millisecondsPerSecond)
  print(after.result("afterwards, one after the other", millisecondsPerSecond))
  const overPerSecond = over.donePerSecond + others.donePerSecond
  console.log(
    `throughput at ten times the load is ${((100 * overPerSecond) / peak.donePerSecond).toFixed(0)} % of the peak`,
  )
} finally {
  await agent.close()
  await server.stop()
}
