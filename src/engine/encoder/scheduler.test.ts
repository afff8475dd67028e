import fc from "fast-check"
import { expect, test } from "vitest"
import { FAKE_TOKEN_BYTES, FakeGraph, type FakeRun, digits } from "../../../test/fake-graph.ts"
import { type Cosines, type EncoderWork, cosine, recalledPart, tunedPart, unitParts } from "./job.ts"
import { Scheduler, type SchedulerOptions, blockEnd } from "./scheduler.ts"

const never = new AbortController().signal
const roomy = { cacheBytesMax: 100_000 * FAKE_TOKEN_BYTES, blockTokensMax: 1000, runTokensMax: 400 }

function setUp(options: Partial<SchedulerOptions> = {}): { graph: FakeGraph; scheduler: Scheduler } {
  const graph = new FakeGraph()
  return { graph, scheduler: new Scheduler(graph, { ...roomy, ...options }) }
}

const tokens = (count: number, value = 1): Int32Array => new Int32Array(count).fill(value)

/** Evidence of ones and branches whose tokens are their number plus one. */
const work = (evidence: number, branches: readonly number[], organizationId = "a"): EncoderWork => ({
  organizationId,
  evidence: tokens(evidence),
  questions: branches.map((length, index) => ({
    stem: new Int32Array(),
    branches: [tokens(length, index + 1)],
  })),
  options: [],
  pooling: branches.length === 0 ? ("whole" as const) : ("none" as const),
})

/** A choice: the options are told apart by their tokens. */
const choice = (
  evidence: number,
  options: readonly (readonly number[])[],
  organizationId = "a",
  stem = 20,
): EncoderWork => ({
  ...work(evidence, [], organizationId),
  questions: [{ stem: tokens(stem, 7), branches: options.map((_, index) => tokens(10, index + 1)) }],
  pooling: "none",
  options: options.map((option) => Int32Array.from(option)),
})

const expectedCosines = ({ evidence, options }: EncoderWork): Cosines[] =>
  options.map((option = new Int32Array()) => ({
    tuned: cosine(tunedPart(digits(evidence)), tunedPart(digits(option))),
    recalled: cosine(recalledPart(digits(evidence)), recalledPart(digits(option))),
  }))

const expected = ({ evidence, questions }: EncoderWork): number[] =>
  questions.flatMap(({ stem, branches }) =>
    branches.map((branch) => [...evidence, ...stem, ...branch].reduce((sum, token) => sum + token, 0)),
  )

test("every branch is answered in its place and sees all of the evidence and of itself, whatever the sizes", async () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 1500 }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 2, max: 3000 }), lengths), { minLength: 1, maxLength: 5 }),
      async (requests) => {
        const { scheduler } = setUp()
        const works = requests.map(([evidence, branches], index) => work(evidence, branches, `o${index % 2}`))
        const margins = await Promise.all(works.map((one) => scheduler.submit(one, never)))
        expect(margins.map((one) => [...one.margins])).toEqual(works.map(expected))
      },
    ),
    { numRuns: 30 },
  )
})

test("small requests of many organizations share a run", async () => {
  const { graph, scheduler } = setUp()
  await Promise.all(["a", "b", "c", "d"].map((id) => scheduler.submit(work(60, [20, 20], id), never)))
  expect(graph.runs).toEqual([{ kind: "rows", rows: 4 }])
})

test("rows share a run up to the tokens that are set for them, and one more begins the next", async () => {
  for (const [sharedTokensMax, rows] of [
    [200, [2]],
    [199, [1, 1]],
  ] as const) {
    const { graph, scheduler } = setUp({ runTokensMax: 150, sharedTokensMax })
    await Promise.all(["a", "b"].map((id) => scheduler.submit(work(60, [20, 20], id), never)))
    expect(graph.runs).toEqual(rows.map((count) => ({ kind: "rows", rows: count })))
  }
})

test("a request of 256 tokens is one row; one more token and its evidence is read apart", async () => {
  const { graph, scheduler } = setUp()
  await scheduler.submit(work(200, [56]), never)
  expect(graph.runs.map(({ kind }) => kind)).toEqual(["rows"])
  await scheduler.submit(work(201, [56]), never)
  expect(graph.runs.map(({ kind }) => kind)).toEqual(["rows", "evidence", "branches"])
})

test("evidence is read once for all requests of an organization about it, at work or later, and never for another", async () => {
  const { graph, scheduler } = setUp()
  const read = (): number => graph.runs.filter(({ kind }) => kind === "evidence").length
  await Promise.all([1, 2, 3].map(() => scheduler.submit(work(500, [30]), never)))
  await scheduler.submit(work(500, [40]), never)
  expect(read()).toBe(1)
  expect(scheduler.stats()).toMatchObject({ cacheMisses: 1, cacheHits: 3, tokensReused: 1500 })
  await scheduler.submit(work(500, [30], "b"), never)
  expect(read()).toBe(2)
})

test("branches of several requests about one evidence share a run", async () => {
  const { graph, scheduler } = setUp()
  await Promise.all([1, 2, 3].map(() => scheduler.submit(work(500, [30]), never)))
  expect(graph.runs).toEqual([
    { kind: "evidence", tokens: 500, start: 0 },
    { kind: "branches", branches: 3, rows: [30, 30, 30], pastTokens: 500 },
  ])
})

test("what the options of a choice have in common is read once in a row", async () => {
  const { graph, scheduler } = setUp()
  const options = Array.from({ length: 50 }, (_, index) => [index])
  const many = choice(500, options)
  const { margins } = await scheduler.submit({ ...many, options: [] }, never)
  expect([...margins]).toEqual(expected(many))
  const runs = graph.runs.filter((run) => run.kind === "branches")
  // Rows of a stem of 20 and four options of 10; six of them in a run of at most 400 tokens.
  expect(runs.map(({ branches, rows }) => [branches, rows])).toEqual([
    [24, [60, 60, 60, 60, 60, 60]],
    [24, [60, 60, 60, 60, 60, 60]],
    [2, [40]],
  ])
})

test("a request is cut into the same rows whoever else asks", async () => {
  const many = work(2000, [70, ...Array.from({ length: 100 }, (_, index) => 5 + (index % 30))])
  const rowsOf = async (others: readonly EncoderWork[]): Promise<number[]> => {
    const { graph, scheduler } = setUp()
    const first = scheduler.submit(many, never)
    await Promise.all([first, ...others.map((one) => scheduler.submit(one, never))])
    return graph.runs.flatMap((run) => (run.kind === "branches" && run.pastTokens === 2000 ? run.rows : []))
  }
  const alone = await rowsOf([])
  expect(Math.max(...alone)).toBe(70)
  expect(await rowsOf([work(5, [10], "b"), work(1000, [40, 40], "c")])).toEqual(alone)
})

test("a stem that is too long for a run is read in parts of its own, and its options after it", async () => {
  const { graph, scheduler } = setUp()
  const long = choice(500, [[1], [2]], "a", 600)
  const { margins } = await scheduler.submit({ ...long, options: [] }, never)
  expect([...margins]).toEqual(expected(long))
  const parts = graph.runs.flatMap((run) => (run.kind === "branch part" ? [run.tokens] : []))
  expect(parts).toEqual([512, 88, 512, 88])
  const ends = graph.runs.flatMap((run) => (run.kind === "branches" ? run.rows : []))
  expect(ends).toEqual([10, 10])
})

test("one long branch is read at a time: each has a copy of what the evidence was read into", async () => {
  const { graph, scheduler } = setUp()
  const all = Array.from({ length: 5 }, () => scheduler.submit(work(500, [600]), never))
  await Promise.all(all)
  const kinds = graph.runs.map(({ kind }) => kind)
  expect(kinds).toEqual(["evidence", ...all.flatMap(() => ["branch part", "branches"])])
  // That of the evidence is kept for later requests.
  expect(graph.pasts.size).toBe(1)
})

test("a long branch whose request is aborted makes room for the next", async () => {
  const { graph, scheduler } = setUp()
  const abort = new AbortController()
  graph.onRun = ({ kind }) => {
    if (kind === "branch part" && !abort.signal.aborted) abort.abort(new Error("enough"))
  }
  const left = scheduler.submit(work(500, [600]), abort.signal)
  const other = work(500, [700], "b")
  const answered = scheduler.submit(other, never)
  await expect(left).rejects.toThrow("enough")
  expect([...(await answered).margins]).toEqual(expected(other))
})

test("every option is compared with the whole evidence, whatever the sizes", async () => {
  const option = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 50 })
  const options = fc.array(option, { minLength: 1, maxLength: 80 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 2, max: 3000 }), options), { minLength: 1, maxLength: 5 }),
      async (requests) => {
        const { scheduler } = setUp()
        const works = requests.map(([evidence, some], index) => choice(evidence, some, `o${index % 2}`))
        const scored = await Promise.all(works.map((one) => scheduler.submit(one, never)))
        expect(scored.map(({ cosines }) => cosines)).toEqual(works.map(expectedCosines))
        for (const { similarityWeights } of scored) expect(new Set(similarityWeights)).toEqual(new Set([10]))
        expect(scored.map(({ margins }) => [...margins])).toEqual(works.map(expected))
        expect(scheduler.stats().jobs).toBe(0)
      },
    ),
    { numRuns: 30 },
  )
})

test("an option is read once for all requests of an organization, and never for another", async () => {
  const { graph, scheduler } = setUp()
  const colours = [[3], [4], [3]]
  await scheduler.submit(choice(50, colours), never)
  expect(graph.runs).toEqual([
    { kind: "rows", rows: 2 },
    { kind: "rows", rows: 1 },
  ])
  await scheduler.submit(choice(60, colours), never)
  expect(graph.runs).toHaveLength(3)
  await scheduler.submit(choice(50, colours, "b"), never)
  expect(graph.runs).toHaveLength(5)
})

test("work without branches has the vector of its evidence, read or found", async () => {
  const { graph, scheduler } = setUp()
  for (const size of [20, 2500, 2500]) {
    const { vector } = await scheduler.submit(work(size, []), never)
    expect(vector).toEqual(unitParts(digits(tokens(size))))
  }
  expect(graph.runs.map(({ kind }) => kind)).toEqual(["rows", "evidence", "evidence", "evidence"])
})

test("a wanted vector comes out of the runs that score", async () => {
  const { graph, scheduler } = setUp()
  for (const size of [20, 2500]) {
    const plain = await scheduler.submit(work(size, [10], "plain"), never)
    const runs = graph.runs.length
    const wanting = { ...work(size, [10], "wanting"), pooling: "whole" as const }
    const { margins, vector } = await scheduler.submit(wanting, never)
    expect(vector).toEqual(unitParts(digits(tokens(size))))
    expect(margins).toEqual(plain.margins)
    expect(graph.runs.slice(runs)).toEqual(graph.runs.splice(0, runs))
    graph.runs.length = 0
  }
})

test("of a row whose middle layer alone is wanted the other parts are zero", async () => {
  const { scheduler } = setUp()
  const { vector } = await scheduler.submit({ ...work(20, [10]), pooling: "middle" }, never)
  const whole = unitParts(digits(tokens(20)))
  expect(vector).toEqual(whole.map((value, at) => (at < (2 * whole.length) / 3 ? 0 : value)))
})

test("long evidence is read in equal blocks", async () => {
  const { graph, scheduler } = setUp()
  await scheduler.submit(work(2500, [10]), never)
  expect(graph.runs.slice(0, 3)).toEqual([
    { kind: "evidence", tokens: 834, start: 0 },
    { kind: "evidence", tokens: 834, start: 834 },
    { kind: "evidence", tokens: 832, start: 1668 },
  ])
  expect(blockEnd(1000, 0, 1000)).toBe(1000)
  expect(blockEnd(1001, 0, 1000)).toBe(501)
})

test("an organization with one request does not wait for another's hundred", async () => {
  const { scheduler } = setUp()
  const done: string[] = []
  const ask = async (id: string, evidence: number): Promise<void> => {
    await scheduler.submit(work(evidence, [200, 200], id), never)
    done.push(id)
  }
  await Promise.all([...Array.from({ length: 100 }, (_, i) => ask("a", 600 + i)), ask("b", 600)])
  expect(done.indexOf("b")).toBeLessThan(3)
})

test("a newcomer goes before an organization or request that has run", async () => {
  const { graph, scheduler } = setUp()
  const runsUntil = async (id: string): Promise<number> => {
    const before = graph.runs.length
    await scheduler.submit(work(20, [5], id), never)
    return graph.runs.length - before
  }
  const newcomers: Promise<number>[] = []
  // After the run: messages are read when it has ended.
  const comeAfter = (id: string) => setImmediate(() => newcomers.push(runsUntil(id)))
  graph.onRun = () => {
    if (graph.runs.length === 4) comeAfter("b")
    if (graph.runs.length === 8) comeAfter("a")
  }
  const branches = Array.from({ length: 100 }, () => 40)
  await scheduler.submit(work(500, branches), never)
  expect(await Promise.all(newcomers)).toEqual([1, 1])
})

test("an organization that asks one thing after the other takes turns by tokens with one whose texts are long", async () => {
  // It stands still: however slow the machine is, one that asks again does so at once.
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs }
  const { graph, scheduler } = setUp({ runTokensMax: 100, clock })
  const long = Array.from({ length: 30 }, (_, at) => scheduler.submit(work(200 + at, [20], "long"), never))
  const longRuns: number[] = []
  for (let asked = 0; asked < 50; asked++) {
    const before = graph.runs.length
    // A request over a network comes a few turns of the event loop after the answer to the one before.
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    await scheduler.submit(work(20, [5], "small"), never)
    longRuns.push(graph.runs.length - before - 1)
  }
  // The first is a newcomer. All others together have 1,225 tokens, as many as five or six of the long ones.
  const [first, ...others] = longRuns
  expect(first).toBeGreaterThan(0)
  expect(Math.max(...others)).toBe(1)
  const total = others.reduce((sum, runs) => sum + runs, 0)
  expect(total).toBeGreaterThan(3)
  expect(total).toBeLessThan(8)
  clock.nowMs += 1_000
  await Promise.all(long)
})

test("runs of a request of many branches are shorter while another organization asks too", async () => {
  const many = work(
    2000,
    Array.from({ length: 200 }, () => 10),
  )
  const longest = async (others: readonly EncoderWork[]): Promise<number> => {
    const { graph, scheduler } = setUp()
    await Promise.all([many, ...others].map((one) => scheduler.submit(one, never)))
    return Math.max(...graph.runs.map((run) => (run.kind === "branches" ? run.branches : 0)))
  }
  // Rows of three branches; beside another organization a token about 2,000 others counts 3.6 times.
  expect(await longest([])).toBe(39)
  expect(await longest([work(5, [10])])).toBe(39)
  expect(await longest([work(5, [10], "b")])).toBe(3)
})

test("requests that have not run yet are taken in their order", async () => {
  const { scheduler } = setUp({ runTokensMax: 30 })
  const done: number[] = []
  const ask = async (number: number): Promise<void> => {
    await scheduler.submit(work(20, [10]), never)
    done.push(number)
  }
  await Promise.all([1, 2, 3, 4, 5].map(ask))
  expect(done).toEqual([1, 2, 3, 4, 5])
})

test("a cancelled request ends before the next run, and its evidence is not kept half read", async () => {
  const { graph, scheduler } = setUp()
  const abort = new AbortController()
  graph.onRun = () => abort.abort(new Error("enough"))
  await expect(scheduler.submit(work(5000, [10]), abort.signal)).rejects.toThrow("enough")
  await scheduler.idle()
  expect(graph.runs).toHaveLength(1)
  expect(scheduler.stats()).toMatchObject({ jobs: 0, cacheBytes: 0 })
})

test("requests whose evidence exceeds the memory together run one after the other", async () => {
  const { graph, scheduler } = setUp({ cacheBytesMax: 1500 * FAKE_TOKEN_BYTES })
  let most = 0
  graph.onRun = () => (most = Math.max(most, scheduler.stats().cacheBytes))
  const works = [900, 901, 902].map((size) => work(size, [10, 10]))
  const margins = await Promise.all(works.map((one) => scheduler.submit(one, never)))
  expect(margins.map((one) => [...one.margins])).toEqual(works.map(expected))
  expect(most).toBeLessThanOrEqual(1500 * FAKE_TOKEN_BYTES)
})

test("evidence larger than the memory runs alone and is not kept; small requests go on meanwhile", async () => {
  const { graph, scheduler } = setUp({ cacheBytesMax: 1500 * FAKE_TOKEN_BYTES })
  const order: string[] = []
  const note = (name: string) => () => order.push(name)
  await Promise.all([
    scheduler.submit(work(5000, [10]), never).then(note("large")),
    scheduler.submit(work(4000, [10], "b"), never).then(note("waiting")),
    scheduler.submit(work(50, [10], "b"), never).then(note("small")),
  ])
  expect(order[0]).toBe("small")
  expect(scheduler.stats().cacheBytes).toBe(0)
  expect(graph.pasts.size).toBe(0)
  expect(graph.runs.length).toBeGreaterThan(9)
})

test("after a failed run every request fails and no other is taken", async () => {
  const { graph, scheduler } = setUp()
  graph.onRun = () => {
    throw new Error("broken")
  }
  const failed = { code: "inference_failed" }
  const outcomes = [1, 2].map((id) => scheduler.submit(work(500, [10], `o${id}`), never))
  for (const outcome of outcomes) await expect(outcome).rejects.toMatchObject(failed)
  await expect(scheduler.submit(work(5, [1]), never)).rejects.toMatchObject(failed)
})

/** Runs of this kind are held until they are let go. */
function hold(graph: FakeGraph, kind: FakeRun["kind"]): { begun: Promise<void>; letGo: () => void } {
  const [begun, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  graph.held = async (run) => {
    if (run.kind !== kind) return
    begun.resolve()
    await free.promise
  }
  return { begun: begun.promise, letGo: free.resolve }
}

test("short runs of others pass a long one that is under way; another long one waits for it", async () => {
  const { graph, scheduler } = setUp()
  const { begun, letGo } = hold(graph, "evidence")
  const long = scheduler.submit(work(900, [10]), never)
  await begun
  const second = scheduler.submit(work(900, [10], "b"), never)
  const short = await scheduler.submit(work(60, [10], "c"), never)
  expect([...short.margins]).toEqual(expected(work(60, [10], "c")))
  expect(graph.runs.map(({ kind }) => kind)).toEqual(["evidence", "rows"])
  expect(scheduler.runningMs()).toBeGreaterThan(0)
  letGo()
  for (const { margins } of await Promise.all([long, second])) expect([...margins]).toEqual([910])
  await scheduler.idle()
  expect(scheduler.runningMs()).toBe(0)
})

test("short runs of others pass one of branches about long evidence; others about that evidence are not answered by it", async () => {
  const { graph, scheduler } = setUp()
  const branchesHeld = hold(graph, "branches")
  const long = scheduler.submit(work(9000, [30]), never)
  const beside = scheduler.submit(work(9000, [20, 20]), never)
  await branchesHeld.begun
  const short = await scheduler.submit(work(60, [10], "b"), never)
  expect([...short.margins]).toEqual(expected(work(60, [10], "b")))
  expect(graph.runs.at(-1)).toEqual({ kind: "rows", rows: 1 })
  branchesHeld.letGo()
  expect([...(await long).margins]).toEqual(expected(work(9000, [30])))
  expect([...(await beside).margins]).toEqual(expected(work(9000, [20, 20])))
})

test("a request that is cancelled in a long run leaves when that has ended, and its evidence is not kept half read", async () => {
  const { graph, scheduler } = setUp()
  const { begun, letGo } = hold(graph, "evidence")
  const abort = new AbortController()
  const long = scheduler.submit(work(5000, [10]), abort.signal)
  await begun
  abort.abort(new Error("enough"))
  await scheduler.submit(work(60, [10], "b"), never)
  expect(scheduler.stats().jobs).toBe(1)
  letGo()
  await expect(long).rejects.toThrow("enough")
  await scheduler.idle()
  expect(scheduler.stats()).toMatchObject({ jobs: 0, cacheBytes: 0 })
  expect(graph.pasts.size).toBe(0)
})

test("one request more than may wait is refused as overloaded", async () => {
  const { scheduler } = setUp({ waitingMax: 2 })
  const two = [1, 2].map(() => scheduler.submit(work(5, [1]), never))
  await expect(scheduler.submit(work(5, [1]), never)).rejects.toMatchObject({ code: "overloaded" })
  expect(await Promise.all(two)).toHaveLength(2)
})
