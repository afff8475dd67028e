import { plainWork } from "../../../test/plain-work.ts"
import { predicate } from "../../engine/branch.ts"
import { describe, expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { silentLog } from "../../base/log.ts"
import type { Region } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import {
  admitAny,
  type GenerateCall,
  type GenerationEvent,
  measure,
  UnusableAnswer,
  unusableIn,
} from "../../engine/engine.ts"
import { type RouteRequest, RoutedRequest } from "./router.ts"
import { type RetryBudget, type WorkerEngines, type WorkerSettings, Worker, WorkerPool } from "./worker.ts"
import { RequestTrace } from "../telemetry.ts"

const clock = new ManualClock(0)
const never = new AbortController().signal
const work = { organizationId: "org_1", evidence: "evidence", branches: [predicate("Is it?")] }
const dead = (): Fault => new Fault("inference_failed", "Cannot answer: dead")

const region = (id: string): Region => ({ id, country: "XX", latitude: 0, longitude: 0 })

function worker(id: string, engines: WorkerEngines, changes: Partial<WorkerSettings> = {}): Worker {
  const regionId = id.split(".")[0] ?? id
  return new Worker(clock, {
    id,
    regionId,
    slotsMax: 2,
    waitingMax: 2,
    attemptTimeoutMs: null,
    engines,
    ...changes,
  })
}

type Run = (signal: AbortSignal) => Promise<Float64Array>

/** The scorer of a worker that is watched, which answers its own number unless told otherwise. */
function scorer(asked: string[], name: string, run: Run = async () => new Float64Array([1])): WorkerEngines {
  return {
    check: async () => undefined,
    scorer: {
      score: async (_, { admit, signal }) => {
        asked.push(name)
        await admit(7)
        return { margins: await run(signal), inputTokens: 7 }
      },
    },
  }
}

interface TestRoute {
  /** A request of its own. */
  readonly begin: () => RoutedRequest
  region: string | null
}

interface Changes extends Partial<Pick<RouteRequest, "trace">> {
  readonly queueWaitMs?: number
  readonly retries?: RetryBudget
}

function routeOver(
  workers: readonly Worker[],
  { trace = new RequestTrace(clock), queueWaitMs = 60_000, retries }: Changes = {},
): TestRoute {
  const pool = new WorkerPool(workers, retries)
  const begin = (): RoutedRequest =>
    new RoutedRequest({
      plan: [...new Set(workers.map(({ regionId }) => regionId))].map(region),
      pool,
      clock,
      log: silentLog,
      queueWaitMs,
      request: {
        model: "m",
        organizationId: "org_1",
        hint: null,
        trace,
        onPlaced: (placed) => (route.region = placed),
      },
    })
  const route: TestRoute = { begin, region: null }
  return route
}

async function score(route: TestRoute, signal: AbortSignal = never, admit = admitAny): Promise<Float64Array> {
  return (await route.begin().score(work, { signal, admit })).margins
}

const full = (id: string): Worker =>
  worker(id, {
    scorer: {
      score: async () =>
        Promise.reject(new Fault("overloaded", "Cannot: full", { retryAfterMs: id === "a.1" ? 9000 : 4000 })),
    },
  })
const failing = (id: string): Worker =>
  worker(
    id,
    scorer([], id, async () => Promise.reject(dead())),
  )

const text = (word: string): GenerationEvent => ({ kind: "text", text: word, logprobs: null })
const generator = (run: (signal: AbortSignal) => AsyncIterable<GenerationEvent>): WorkerEngines => ({
  generator: {
    async *generate(_, { admit, signal }) {
      await admit({ inputTokensMost: 3, outputTokensMost: 5 })
      yield* run(signal)
    },
  },
})
const freely: GenerateCall = { signal: never, admit: async () => 5, onUsage: () => undefined }

const generated = plainWork()

/** A worker that says another count with its answer, or fails. */
const counting = (tokens: number, counted: number, error?: Fault): WorkerEngines => ({
  scorer: {
    score: async (_, { admit }) => {
      await admit(tokens)
      if (error) throw error
      return { margins: new Float64Array([1]), inputTokens: counted }
    },
  },
})

async function read(route: TestRoute, take = Infinity): Promise<{ words: string[]; error: unknown }> {
  const words: string[] = []
  try {
    for await (const event of route.begin().generate(generated, freely)) {
      if (event.kind === "text") words.push(event.text)
      if (words.length >= take) break
    }
    return { words, error: null }
  } catch (error) {
    return { words, error }
  }
}

const busy = async (target: Worker, tokens: number): Promise<void> => {
  await target.queue.acquire({ organizationId: "other", tokens }, never)
}

async function* events(words: readonly string[], error?: Error): AsyncGenerator<GenerationEvent> {
  for (const word of words) yield text(word)
  if (error) throw error
}

/** An engine that takes its time. */
function slow(ms: number, error?: Error): Run {
  return async () => {
    clock.advance(ms)
    return error ? await Promise.reject(error) : new Float64Array([1])
  }
}

describe("the trace of a request", () => {
  test("has each try with its time in the engine, and not the time in which it is admitted", async () => {
    const trace = new RequestTrace(clock)
    const workers = [
      worker("a.1", scorer([], "a.1", slow(30, dead()))),
      worker("b.1", scorer([], "b.1", slow(4))),
    ]
    await score(routeOver(workers, { trace }), never, async () => clock.advance(1_000))
    expect(trace.attempts).toEqual([
      { region: "a", result: "inference_failed", ms: 30 },
      { region: "b", result: "success", ms: 4 },
    ])
    expect([trace.msIn("engine"), trace.msIn("queue"), trace.msIn("route")]).toEqual([34, 0, 0])
  })

  test("has the time in a queue apart from that in the engine", async () => {
    const trace = new RequestTrace(clock)
    const only = worker("a.1", scorer([], "a.1", slow(5)), { slotsMax: 1 })
    const other = await only.queue.acquire({ organizationId: "other", tokens: 1 }, never)
    const scored = score(routeOver([only], { trace }))
    clock.advance(70)
    other.release()
    await scored
    expect([trace.msIn("queue"), trace.msIn("engine")]).toEqual([70, 5])
  })

  test("has a worker that was full, and one where the work was not admitted", async () => {
    const trace = new RequestTrace(clock)
    const route = routeOver([full("a.1"), worker("b.1", scorer([], "b.1"))], { trace })
    await measure<number>(async (admit) => await route.begin().score(work, { signal: never, admit }))
    expect(trace.attempts).toEqual([
      { region: "a", result: "overloaded", ms: 0 },
      { region: "b", result: "abandoned", ms: 0 },
    ])
  })

  test("counts a stream's time in the engine and not that of its reader", async () => {
    const trace = new RequestTrace(clock)
    async function* ticking(): AsyncGenerator<GenerationEvent> {
      for (const word of ["a", "b"]) {
        clock.advance(10)
        yield text(word)
      }
    }
    const route = routeOver([worker("a.1", generator(ticking))], { trace })
    for await (const _ of route.begin().generate(generated, freely)) clock.advance(500)
    expect(trace.msIn("engine")).toBe(20)
    expect(trace.attempts).toEqual([{ region: "a", result: "success", ms: 20 }])
  })
})

describe("a request that is answered whole", () => {
  test("goes on elsewhere when its worker fails while it runs, and says where it ran", async () => {
    const asked: string[] = []
    const route = routeOver([
      worker(
        "a.1",
        scorer(asked, "a.1", async () => Promise.reject(dead())),
      ),
      worker("b.1", scorer(asked, "b.1")),
    ])
    expect(await score(route)).toEqual(new Float64Array([1]))
    expect({ asked, region: route.region }).toEqual({ asked: ["a.1", "b.1"], region: "b" })
  })

  test("tries another worker of its region before it leaves the region, but not a third", async () => {
    const asked: string[] = []
    const failing = (id: string): Worker =>
      worker(
        id,
        scorer(asked, id, async () => Promise.reject(dead())),
      )
    await score(
      routeOver([failing("a.1"), failing("a.2"), failing("a.3"), worker("b.1", scorer(asked, "b.1"))]),
    )
    expect(asked).toEqual(["a.1", "a.2", "b.1"])
  })

  test("is not tried again for a mistake of its own, which is not held against the worker", async () => {
    const asked: string[] = []
    const refusing = worker("a.1", {
      scorer: {
        score: async () => Promise.reject(new Fault("context_length_exceeded", "Cannot: too long")),
      },
    })
    const route = routeOver([refusing, worker("b.1", scorer(asked, "b.1"))])
    await expect(score(route)).rejects.toMatchObject({ code: "context_length_exceeded" })
    expect({ asked, failures: refusing.failures }).toEqual({ asked: [], failures: 0 })
  })

  test("ends when its caller goes away, even if the engine does not heed that", async () => {
    const gone = new AbortController()
    const deaf = worker(
      "a.1",
      scorer([], "a.1", async () => new Promise(() => undefined)),
    )
    const answer = score(routeOver([deaf]), gone.signal)
    setImmediate(() => gone.abort(new Error("gone")))
    await expect(answer).rejects.toThrow("gone")
    expect([deaf.queue.running, deaf.failures]).toEqual([0, 0])
  })

  test("ends when its caller goes away while the engine is still being loaded", async () => {
    const gone = new AbortController()
    const loading = worker("a.1", { scorer: { score: async () => await new Promise(() => undefined) } })
    const answer = score(routeOver([loading]), gone.signal)
    setImmediate(() => gone.abort(new Fault("client_closed", "gone")))
    await expect(answer).rejects.toMatchObject({ code: "client_closed" })
    expect(loading.queue.running).toBe(0)
  })

  test("leaves a worker that does not begin to answer in time", async () => {
    const frozen = worker(
      "a.1",
      scorer([], "a.1", async () => new Promise(() => undefined)),
      {
        attemptTimeoutMs: 1,
      },
    )
    const route = routeOver([frozen, worker("b.1", scorer([], "b.1"))])
    await score(route)
    expect({ region: route.region, failures: frozen.failures }).toEqual({ region: "b", failures: 1 })
  })

  test("leaves a worker that is found dead while it runs there", async () => {
    const frozen: Worker = worker(
      "a.1",
      scorer([], "a.1", async () => {
        setImmediate(() => frozen.markDown(new Error("no answer to health checks")))
        return await new Promise(() => undefined)
      }),
    )
    const route = routeOver([frozen, worker("b.1", scorer([], "b.1"))])
    await score(route)
    expect(route.region).toBe("b")
  })

  test("leaves the queue of a worker that is found dead", async () => {
    const busy = worker("a.1", scorer([], "a.1"), { slotsMax: 1 })
    await busy.queue.acquire({ organizationId: "other", tokens: 1 }, never)
    const route = routeOver([busy, worker("b.1", scorer([], "b.1"))])
    const answer = score(route)
    await new Promise((resolve) => setImmediate(resolve))
    expect(busy.queue.waiting).toBe(1)
    busy.markDown(new Error("dead"))
    await answer
    expect({ region: route.region, waiting: busy.queue.waiting }).toEqual({ region: "b", waiting: 0 })
  })

  test("skips a worker whose breaker is open without asking it", async () => {
    const asked: string[] = []
    const broken = worker("a.1", scorer(asked, "a.1"))
    for (let i = 0; i < 5; i++) broken.breaker.request()?.failed()
    await score(routeOver([broken, worker("b.1", scorer(asked, "b.1"))]))
    expect(asked).toEqual(["b.1"])
  })
})

describe("a request that is admitted", () => {
  test("is admitted anew where it goes on, and is charged what its last worker counted", async () => {
    const admitted: number[] = []
    const request = routeOver([
      worker("a.1", counting(7, 7, dead())),
      worker("b.1", counting(500, 42)),
    ]).begin()
    const admit = async (tokens: number): Promise<void> => void admitted.push(tokens)
    const { inputTokens } = await request.score(work, { signal: never, admit })
    expect([admitted, inputTokens]).toEqual([[7, 500], 42])
  })

  test("ends with a refusal as it is, which is not held against the worker and not tried elsewhere", async () => {
    for (const refusal of [new Fault("overloaded", "Cannot: limited"), dead(), new Error("no store")]) {
      const asked: string[] = []
      const first = worker("a.1", scorer(asked, "a.1"))
      const route = routeOver([first, worker("b.1", scorer(asked, "b.1"))])
      await expect(score(route, never, async () => await Promise.reject(refusal))).rejects.toBe(refusal)
      expect([asked, first.failures, first.queue.running]).toEqual([["a.1"], 0, 0])
    }
  })

  test("does not end, or go on elsewhere, before its caller has said whether it is admitted", async () => {
    const first = worker("a.1", scorer([], "a.1"))
    const happened: string[] = []
    const admission = Promise.withResolvers<void>()
    const route = routeOver([first, worker("b.1", scorer([], "b.1"))])
    const scored = score(route, never, async () => {
      happened.push("asked")
      await admission.promise
      happened.push("admitted")
    })
    await expect.poll(() => happened).toEqual(["asked"])
    first.markDown(new Error("dead"))
    await new Promise((resolve) => setImmediate(resolve))
    expect(happened).toEqual(["asked"])
    admission.resolve()
    await scored
    expect(happened).toEqual(["asked", "admitted", "asked", "admitted"])
  })
})

describe("a request that nobody serves", () => {
  test("is refused as overloaded when every worker is full, with the shortest time to come back", async () => {
    await expect(score(routeOver([full("a.1"), full("b.1")]))).rejects.toMatchObject({
      code: "overloaded",
      retryAfterMs: 4000,
    })
  })

  test("tells what a worker has answered and is paid for before it was full", async () => {
    const used = { inputTokens: 12, cachedInputTokens: 0, outputTokens: 3 }
    const unusable = new UnusableAnswer(new Fault("overloaded", "Cannot: full", { retryAfterMs: 9000 }), used)
    const paid = worker("a.1", { scorer: { score: async () => Promise.reject(unusable) } })
    const refused = await score(routeOver([paid, full("b.1")])).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: "overloaded", retryAfterMs: 4000 })
    expect(unusableIn(refused)?.used).toEqual(used)
  })

  test("fails when one was full and another failed", async () => {
    await expect(score(routeOver([full("a.1"), failing("b.1")]))).rejects.toMatchObject({
      code: "routing_failed",
    })
  })

  test("fails when no worker is healthy, without asking any", async () => {
    const asked: string[] = []
    const down = worker("a.1", scorer(asked, "a.1"))
    down.markDown(new Error("dead"))
    await expect(score(routeOver([down]))).rejects.toMatchObject({ code: "routing_failed" })
    expect(asked).toEqual([])
  })

  test("gets the only worker's own error where there was nothing to choose", async () => {
    await expect(score(routeOver([failing("a.1")]))).rejects.toMatchObject({ code: "inference_failed" })
  })

  test("waits for a place no longer than it may", async () => {
    const busy = worker("a.1", scorer([], "a.1"), { slotsMax: 1 })
    await busy.queue.acquire({ organizationId: "other", tokens: 1 }, never)
    await expect(score(routeOver([busy], { queueWaitMs: 1 }))).rejects.toMatchObject({ code: "overloaded" })
    expect(busy.queue.waiting).toBe(0)
  })

  test("makes no retry when the budget for retries is spent", async () => {
    const asked: string[] = []
    const retries = { ratio: 0, savedMax: 1 }
    const workers = ["a.1", "b.1", "c.1"].map((id) =>
      worker(
        id,
        scorer(asked, id, async () => Promise.reject(dead())),
      ),
    )
    await expect(score(routeOver(workers, { retries }))).rejects.toMatchObject({ code: "routing_failed" })
    expect(asked).toEqual(["a.1", "b.1"])
  })
})

describe("a stream", () => {
  test("of several answers takes one place, however many it asks for", async () => {
    const one = worker(
      "a.1",
      generator(() => events(["x"])),
      { slotsMax: 1 },
    )
    const request = routeOver([one]).begin()
    const answers = [request.generate(generated, freely), request.generate(generated, freely)]
    for (const answer of answers) expect((await answer.next()).value?.kind).toBe("text")
    expect(one.queue.running).toBe(1)
    for (const answer of answers) expect((await answer.next()).done).toBe(true)
    expect([one.queue.running, one.queue.outstandingTokens]).toEqual([0, 0])
  })

  test("that fails before its first event begins anew elsewhere", async () => {
    const route = routeOver([
      worker(
        "a.1",
        generator(() => events([], dead())),
      ),
      worker(
        "b.1",
        generator(() => events(["x", "y"])),
      ),
    ])
    expect(await read(route)).toEqual({ words: ["x", "y"], error: null })
    expect(route.region).toBe("b")
  })

  test("that fails after its first event ends in the error and is not begun anew", async () => {
    let begun = 0
    const second = generator(() => {
      begun++
      return events(["never"])
    })
    const route = routeOver([
      worker(
        "a.1",
        generator(() => events(["x"], dead())),
      ),
      worker("b.1", second),
    ])
    expect(await read(route)).toMatchObject({ words: ["x"], error: { code: "inference_failed" } })
    expect({ begun, region: route.region }).toEqual({ begun: 0, region: "a" })
  })

  test("whose worker is found dead in the middle ends in an error", async () => {
    const frozen: Worker = worker(
      "a.1",
      generator(async function* () {
        yield text("x")
        setImmediate(() => frozen.markDown(new Error("dead")))
        await new Promise(() => undefined)
      }),
    )
    expect(await read(routeOver([frozen]))).toMatchObject({
      words: ["x"],
      error: { code: "inference_failed" },
    })
    expect(frozen.queue.running).toBe(0)
  })

  test("whose reader leaves is stopped, gives its place back, and is not held against the worker", async () => {
    let stopped = false
    let ended = false
    const endless = worker(
      "a.1",
      generator(async function* (signal) {
        signal.addEventListener("abort", () => (stopped = true))
        try {
          for (;;) yield text("x")
        } finally {
          ended = true
        }
      }),
    )
    expect(await read(routeOver([endless]), 3)).toEqual({ words: ["x", "x", "x"], error: null })
    expect({ stopped, ended, running: endless.queue.running, failures: endless.failures }).toEqual({
      stopped: true,
      ended: true,
      running: 0,
      failures: 0,
    })
  })
})

describe("among the workers of a region", () => {
  test("the one with the fewest outstanding tokens is taken", async () => {
    const asked: string[] = []
    const first = worker("a.1", scorer(asked, "a.1"))
    await busy(first, 100)
    await score(routeOver([first, worker("a.2", scorer(asked, "a.2"))]))
    expect(asked).toEqual(["a.2"])
  })

  test("the one that has the prefix is taken while its extra load is less than the prefix", async () => {
    const first = worker("a.1", {})
    const second = worker("a.2", {})
    const pool = new WorkerPool([first, second])
    pool.rememberPrefix("prefix", second)
    await busy(second, 50)
    expect(pool.choose([first, second], "prefix", 50)).toBe(second)
    expect(pool.choose([first, second], "prefix", 49)).toBe(first)
    expect(pool.choose([first, second], "another", 1000)).toBe(first)
    expect(pool.choose([first], "prefix", 1000)).toBe(first)
  })

  test("the same evidence comes to the same worker again", async () => {
    const asked: string[] = []
    const first = worker("a.1", scorer(asked, "a.1"))
    const second = worker("a.2", scorer(asked, "a.2"))
    const route = routeOver([first, second])
    await busy(first, 1)
    await score(route)
    await busy(second, 2)
    await score(route)
    expect(asked).toEqual(["a.2", "a.2"])
  })
})
