/** Ten times the load that a worker can do, on a simulated worker and simulated time: what is admitted, and for whom. */
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { type Clock } from "../src/base/clock.ts"
import { ManualClock } from "./manual-clock.ts"
import { silentLog } from "../src/base/log.ts"
import { Fault } from "../src/contract/errors.ts"
import { admitAny, type ScoreWork } from "../src/engine/engine.ts"
import { createRouter, type Router } from "../src/gateway/routing/router.ts"
import { RequestTrace } from "../src/gateway/telemetry.ts"

const tickMs = 10
const capacityTokensPerSecond = 10_000
const slotsMax = 16
const waitingMax = 64
const queueWaitMs = 5_000
const bytesPerToken = 4

interface Job {
  readonly organizationId: string
  left: number
  done(): void
}

/** Works at a constant rate, shared evenly by organizations and then by their requests, as the real engine does. */
class SimulatedWorker {
  readonly jobs = new Set<Job>()
  doneTokens = 0

  tick(): void {
    let tokens = (capacityTokensPerSecond * tickMs) / 1000
    while (tokens > 1e-9 && this.jobs.size > 0) {
      const organizations = Map.groupBy(this.jobs, ({ organizationId }) => organizationId)
      const share = tokens / organizations.size
      for (const jobs of organizations.values())
        for (const job of jobs) {
          const given = Math.min(job.left, share / jobs.length)
          job.left -= given
          tokens -= given
          this.doneTokens += given
          if (job.left > 1e-9) continue
          this.jobs.delete(job)
          job.done()
        }
    }
  }

  async run({ organizationId, evidence }: ScoreWork): Promise<Float64Array> {
    await new Promise<void>((done) => {
      this.jobs.add({ organizationId, left: evidence.length / bytesPerToken, done })
    })
    return new Float64Array([0])
  }
}

interface Source {
  readonly organizationId: string
  readonly tokens: number
  readonly everyMs: number
}

interface Outcome {
  readonly admitted: number
  readonly refused: number
  readonly latencyMsMax: number
}

interface Result {
  readonly tokensPerSecond: number
  readonly waitingSeenMax: number
  readonly bySource: readonly Outcome[]
}

class Simulation {
  readonly clock: ManualClock = new ManualClock(0)
  readonly worker = new SimulatedWorker()
  readonly router: Router
  waitingSeenMax = 0

  constructor() {
    const clock: Clock = this.clock
    const { worker } = this
    this.router = createRouter({
      regions: [{ id: "here", country: "XX", latitude: 0, longitude: 0 }],
      from: null,
      workers: new Map([
        [
          "m",
          [
            {
              id: "w",
              regionId: "here",
              slotsMax,
              waitingMax,
              attemptTimeoutMs: null,
              engines: {
                scorer: {
                  score: async (work, { admit }) => {
                    const inputTokens = work.evidence.length / bytesPerToken
                    await admit(inputTokens)
                    return { margins: await worker.run(work), inputTokens }
                  },
                },
              },
            },
          ],
        ],
      ]),
      policies: {
        of: async () => ({ policy: { mode: "nearest", fallback: "disabled", regions: [] }, visible: null }),
      },
      clock,
      log: silentLog,
      health: { intervalMs: 1000, timeoutMs: 1000, failuresMax: 1 },
      queueWaitMs,
    })
  }

  /** Requests come at their times whatever becomes of the earlier ones. */
  async run(sources: readonly Source[], forMs: number): Promise<Result> {
    const outcomes = sources.map(() => ({ admitted: 0, refused: 0, latencyMsMax: 0 }))
    const open = new Set<Promise<void>>()
    let doneAtEnd = 0
    for (let nowMs = 0; nowMs < forMs || open.size > 0; nowMs += tickMs) {
      if (nowMs < forMs)
        for (const [index, source] of sources.entries())
          for (let due = arrivals(source, nowMs); due > 0; due--) {
            const outcome = outcomes[index] ?? { admitted: 0, refused: 0, latencyMsMax: 0 }
            const request = this.#request(source, outcome).finally(() => open.delete(request))
            open.add(request)
          }
      else doneAtEnd ||= this.worker.doneTokens
      await vi.advanceTimersByTimeAsync(tickMs)
      this.clock.advance(tickMs)
      this.worker.tick()
      await vi.advanceTimersByTimeAsync(0)
      const { waiting } = this.router.report()[0]?.workers[0] ?? { waiting: 0 }
      this.waitingSeenMax = Math.max(this.waitingSeenMax, waiting)
    }
    return {
      tokensPerSecond: ((doneAtEnd || this.worker.doneTokens) * 1000) / forMs,
      waitingSeenMax: this.waitingSeenMax,
      bySource: outcomes,
    }
  }

  async #request(
    { organizationId, tokens }: Source,
    outcome: { admitted: number; refused: number; latencyMsMax: number },
  ): Promise<void> {
    const startedMs = this.clock.monotonicMs()
    const { signal } = new AbortController()
    const routed = await this.router.open({
      model: "m",
      organizationId,
      hint: null,
      trace: new RequestTrace(this.clock),
    })
    try {
      const work = { organizationId, evidence: "x".repeat(tokens * bytesPerToken), branches: [] }
      await routed.score(work, { signal, admit: admitAny })
      outcome.admitted++
      outcome.latencyMsMax = Math.max(outcome.latencyMsMax, this.clock.monotonicMs() - startedMs)
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "overloaded") throw error
      expect(error.retryAfterMs).toBeGreaterThanOrEqual(1000)
      outcome.refused++
    } finally {
      routed.close()
    }
  }
}

/** How many requests of a source are due in the tick that begins now. */
const arrivals = ({ everyMs }: Source, nowMs: number): number =>
  Math.floor((nowMs + tickMs) / everyMs) - Math.floor(nowMs / everyMs)

const steady = (organizationId: string, tokens: number, tokensPerSecond: number): Source => ({
  organizationId,
  tokens,
  everyMs: (tokens * 1000) / tokensPerSecond,
})

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
afterEach(() => void vi.useRealTimers())

test("at ten times the capacity as much is done as at capacity, and nobody waits longer than allowed", async () => {
  const peak = await new Simulation().run(
    ["a", "b"].map((id) => steady(id, 100, capacityTokensPerSecond / 2)),
    20_000,
  )
  const simulation = new Simulation()
  const over = await simulation.run(
    ["a", "b"].map((id) => steady(id, 100, capacityTokensPerSecond * 5)),
    20_000,
  )
  expect(over.tokensPerSecond).toBeGreaterThanOrEqual(peak.tokensPerSecond * 0.9)
  expect(over.waitingSeenMax).toBeLessThanOrEqual(waitingMax)
  // The longest wait, and then the whole worker shared by everyone who has a place.
  const runMsMax = (slotsMax * 100 * 1000) / capacityTokensPerSecond
  for (const { refused, latencyMsMax } of over.bySource) {
    expect(refused).toBeGreaterThan(0)
    expect(latencyMsMax).toBeLessThanOrEqual(queueWaitMs + runMsMax + 2 * tickMs)
  }
  expect(simulation.router.report()[0]?.workers[0]).toMatchObject({
    running: 0,
    waiting: 0,
    outstanding_tokens: 0,
  })
})

test("small requests go on while another organization floods the worker with the largest ones", async () => {
  const result = await new Simulation().run(
    [
      steady("flood", 50_000, capacityTokensPerSecond * 10),
      steady("small", 50, capacityTokensPerSecond / 20),
    ],
    20_000,
  )
  const [flood, small] = result.bySource
  expect(flood?.refused).toBeGreaterThan(0)
  expect(small).toMatchObject({ admitted: 200, refused: 0 })
  expect(small?.latencyMsMax).toBeLessThanOrEqual(1_000)
})

test("small requests go on beside the largest ones of their own organization", async () => {
  const result = await new Simulation().run(
    [steady("both", 50_000, capacityTokensPerSecond * 10), steady("both", 20, capacityTokensPerSecond / 100)],
    10_000,
  )
  expect(result.bySource[1]).toMatchObject({ admitted: 50 })
})

test("an organization that asks for ten times as much leaves another its share", async () => {
  const result = await new Simulation().run(
    [
      steady("greedy", 100, capacityTokensPerSecond * 10),
      steady("modest", 100, capacityTokensPerSecond * 0.3),
    ],
    20_000,
  )
  const [greedy, modest] = result.bySource
  expect(greedy?.refused).toBeGreaterThan(0)
  expect(modest).toMatchObject({ refused: 0, admitted: 600 })
  // What the modest one leaves is not wasted.
  expect(result.tokensPerSecond).toBeGreaterThanOrEqual(capacityTokensPerSecond * 0.99)
})
