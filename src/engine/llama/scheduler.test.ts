import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { FakeDecoder, hashTokens } from "../../../test/fake-decoder.ts"
import type { ScoreJob } from "./scheduler.ts"
import { Scheduler } from "./scheduler.ts"
import { buildTrie } from "./trie.ts"

const CHUNK = 8
const shape = { cellsMax: 128, sequencesMax: 16, batchTokensMax: CHUNK }
const never = new AbortController().signal

interface Texts {
  readonly organizationId: string
  readonly prefix: readonly number[]
  readonly branches: readonly (readonly number[])[]
}

function jobOf({ organizationId, prefix, branches }: Texts): ScoreJob {
  return {
    organizationId,
    prefix: Int32Array.from(prefix),
    branches: buildTrie(branches.map((branch) => Int32Array.from(branch))),
  }
}

const expected = ({ prefix, branches }: Texts): number[] =>
  branches.map((branch) => hashTokens([...prefix, ...branch]))

const withCache = { cacheBytesMax: 4096 }
const withoutCache = { cacheBytesMax: 0 }
const withLastStaying = { cacheBytesMax: 160, retainsLast: true }

// Three letters make branches share stems, contain one another and repeat.
const tokens = (lengthMin: number, lengthMax: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 0, max: 2 }), { minLength: lengthMin, maxLength: lengthMax })

const someTexts: fc.Arbitrary<Texts> = fc.record({
  organizationId: fc.constantFrom("a", "b", "c"),
  prefix: tokens(0, 30),
  branches: fc.array(tokens(1, 25), { minLength: 0, maxLength: 24 }),
})

const one = (organizationId: string, seed: number): Texts => ({
  organizationId,
  prefix: [100 + seed, 1, 2],
  branches: [[200 + seed, 3]],
})

/** Many branches without a common stem. */
const large = (organizationId: string, seed: number, branchCount = 200): Texts => ({
  organizationId,
  prefix: [300 + seed],
  branches: Array.from({ length: branchCount }, (_, index) => [1000 + index, 1, 2]),
})

const withEvidence = (organizationId: string, seed: number, length: number): Texts => ({
  organizationId,
  prefix: Array.from({ length }, (_, index) => seed * 100 + index),
  branches: [[1], [2, 3]],
})

describe("every branch is answered from its own prefix and its own tokens", () => {
  test("whatever else runs, shares, repeats or was cached", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someTexts, { minLength: 1, maxLength: 12 }), async (all) => {
        const decoder = new FakeDecoder(shape)
        const scheduler = new Scheduler(decoder, withCache)
        const rounds = [all, all.toReversed()]
        for (const round of rounds) {
          const answers = await Promise.all(round.map((texts) => scheduler.submit(jobOf(texts), never)))
          expect(answers.map((answer) => [...answer])).toEqual(round.map(expected))
        }
        await scheduler.idle()
        expect(decoder.cellsUsed).toBe(0)
      }),
      { numRuns: 150 },
    )
  })

  test("when others are aborted at any decode", async () => {
    const aborting = fc.record({ texts: someTexts, abortAt: fc.option(fc.nat(20), { nil: undefined }) })
    await fc.assert(
      fc.asyncProperty(fc.array(aborting, { minLength: 1, maxLength: 10 }), async (all) => {
        const decoder = new FakeDecoder(shape)
        const scheduler = new Scheduler(decoder, withCache)
        const aborts = all.map(() => new AbortController())
        decoder.beforeDecode = (decode) => {
          for (const [index, { abortAt }] of all.entries())
            if (abortAt === decode) aborts[index]?.abort("enough")
        }
        const outcomes = await Promise.allSettled(
          all.map(({ texts }, index) => scheduler.submit(jobOf(texts), aborts[index]?.signal ?? never)),
        )
        for (const [index, outcome] of outcomes.entries()) {
          const { texts, abortAt } = all[index] ?? { texts: one("a", 0), abortAt: undefined }
          if (outcome.status === "fulfilled") expect([...outcome.value]).toEqual(expected(texts))
          else
            expect({ reason: outcome.reason, aborted: abortAt !== undefined }).toEqual({
              reason: "enough",
              aborted: true,
            })
        }
        await scheduler.idle()
        expect(decoder.cellsUsed).toBe(0)
        expect(scheduler.stats()).toMatchObject({ waiting: 0, running: 0, cellsReserved: 0 })
      }),
      { numRuns: 150 },
    )
  })
})

test("every token of a tree is evaluated once", async () => {
  await fc.assert(
    fc.asyncProperty(someTexts, async (texts) => {
      const decoder = new FakeDecoder(shape)
      await new Scheduler(decoder, withoutCache).submit(jobOf(texts), never)
      const paths = new Set(
        texts.branches.flatMap((branch) => branch.map((_, index) => branch.slice(0, index + 1).join())),
      )
      expect(decoder.tokensDecoded).toBe(texts.branches.length === 0 ? 0 : texts.prefix.length + paths.size)
    }),
  )
})

test("the decodes of a job do not depend on the order of its branches", async () => {
  const shuffled = fc
    .tuple(tokens(1, 10), fc.array(tokens(1, 12), { minLength: 1, maxLength: 16 }))
    .chain(([prefix, branches]) =>
      fc.record({
        given: fc.constant({ organizationId: "a", prefix, branches }),
        moved: fc
          .shuffledSubarray(branches, { minLength: branches.length })
          .map((order) => ({ organizationId: "a", prefix, branches: order })),
      }),
    )
  await fc.assert(
    fc.asyncProperty(shuffled, async ({ given, moved }) => {
      const decoders = [new FakeDecoder(shape), new FakeDecoder(shape)] as const
      await new Scheduler(decoders[0], withoutCache).submit(jobOf(given), never)
      await new Scheduler(decoders[1], withoutCache).submit(jobOf(moved), never)
      expect(decoders[1].batches).toEqual(decoders[0].batches)
    }),
  )
})

test("a prefix never shares a decode with its own branches, and its chunks end at multiples of the chunk", async () => {
  const decoder = new FakeDecoder(shape)
  const texts = {
    organizationId: "a",
    prefix: Array.from({ length: 2 * CHUNK + 3 }, (_, index) => index),
    branches: [[7]],
  }
  await new Scheduler(decoder, withoutCache).submit(jobOf(texts), never)
  expect(decoder.batches.map((batch) => batch.map(({ position }) => position))).toEqual([
    [0, 1, 2, 3, 4, 5, 6, 7],
    [8, 9, 10, 11, 12, 13, 14, 15],
    [16, 17, 18],
    [19],
  ])
})

describe("evaluated prefixes", () => {
  const texts: Texts = {
    organizationId: "a",
    prefix: Array.from({ length: 2 * CHUNK + 3 }, (_, index) => index),
    branches: [[7, 8]],
  }
  const decodedBy = async (second: Texts): Promise<number> => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, withCache)
    await scheduler.submit(jobOf(texts), never)
    await scheduler.idle()
    const before = decoder.tokensDecoded
    expect([...(await scheduler.submit(jobOf(second), never))]).toEqual(expected(second))
    return decoder.tokensDecoded - before
  }

  test("serve the same prefix whole, in the same decodes as before", async () => {
    expect(await decodedBy({ ...texts, branches: [[7, 8], [9]] })).toBe(3)
  })

  test("serve a prefix that starts alike in whole chunks only", async () => {
    expect(await decodedBy({ ...texts, prefix: [...texts.prefix, 50] })).toBe(4 + 2)
    expect(await decodedBy({ ...texts, prefix: texts.prefix.slice(0, CHUNK + 1) })).toBe(1 + 2)
    expect(await decodedBy({ ...texts, prefix: texts.prefix.slice(0, CHUNK) })).toBe(0 + 2)
    expect(await decodedBy({ ...texts, prefix: texts.prefix.slice(0, CHUNK - 1) })).toBe(CHUNK - 1 + 2)
  })

  test("are never shared between organizations", async () => {
    expect(await decodedBy({ ...texts, organizationId: "b" })).toBe(texts.prefix.length + 2)
  })

  test("are shared by requests of one organization that run at one time", async () => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, withoutCache)
    const all = [4, 5, 6].map((token) => ({ ...texts, branches: [[token]] }))
    const foreign = { ...texts, organizationId: "b" }
    const answers = await Promise.all([...all, foreign].map((each) => scheduler.submit(jobOf(each), never)))
    expect(answers.map(([answer]) => answer)).toEqual([...all, foreign].map((each) => expected(each)[0]))
    expect(decoder.tokensDecoded).toBe(2 * texts.prefix.length + 3 + 2)
  })

  test("pass to the next request when the one that was evaluating is aborted", async () => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, withoutCache)
    const abort = new AbortController()
    decoder.beforeDecode = (decode) => {
      if (decode === 1) abort.abort("enough")
    }
    const first = scheduler.submit(jobOf(texts), abort.signal)
    const rest = [4, 5].map((token) => ({ ...texts, branches: [[token]] }))
    const others = rest.map((each) => scheduler.submit(jobOf(each), never))
    await expect(first).rejects.toBe("enough")
    expect((await Promise.all(others)).map(([answer]) => answer)).toEqual(
      rest.map((each) => expected(each)[0]),
    )
    expect(decoder.tokensDecoded).toBe(2 * CHUNK + texts.prefix.length + 2)
  })

  test("are dropped, least recently used first, when their memory is full", async () => {
    const decoder = new FakeDecoder(shape)
    // Room for two prefixes of 4 tokens of 4 bytes.
    const scheduler = new Scheduler(decoder, { cacheBytesMax: 2 * 4 * 4 })
    const ask = async (seed: number): Promise<number> => {
      const before = decoder.tokensDecoded
      await scheduler.submit(jobOf({ organizationId: "a", prefix: [seed, 1, 2, 3], branches: [[9]] }), never)
      await scheduler.idle()
      return decoder.tokensDecoded - before
    }
    expect([await ask(1), await ask(2), await ask(1), await ask(3), await ask(1), await ask(2)]).toEqual([
      5, 5, 1, 5, 1, 5,
    ])
    expect(scheduler.stats().cacheBytes).toBe(2 * 4 * 4)
    expect(decoder.states.bytesPeak).toBeLessThanOrEqual(2 * 4 * 4)
  })

  test("are dropped, least recently used first, when no more of them can be kept", async () => {
    const decoder = new FakeDecoder({ ...shape, statesMax: 2 })
    const scheduler = new Scheduler(decoder, withCache)
    const ask = async (seed: number, organizationId: string): Promise<number> => {
      const before = decoder.tokensDecoded
      await scheduler.submit(jobOf({ organizationId, prefix: [seed, 1, 2, 3], branches: [[9]] }), never)
      await scheduler.idle()
      return decoder.tokensDecoded - before
    }
    const asked = [
      [1, "a"],
      [2, "b"],
      [1, "a"],
      [3, "b"],
      [1, "a"],
      [2, "b"],
    ] as const
    const decoded: number[] = []
    for (const [seed, organizationId] of asked) decoded.push(await ask(seed, organizationId))
    expect(decoded).toEqual([5, 5, 1, 5, 1, 5])
    expect(decoder.states.held.size).toBe(2)
  })

  test("are kept from the length on that is worth it", async () => {
    const decoder = new FakeDecoder({ ...shape, stateTokensMin: 4 })
    const scheduler = new Scheduler(decoder, withCache)
    for (const prefix of [[1, 2, 3], [1, 2, 3, 4], []]) {
      await scheduler.submit(jobOf({ organizationId: "a", prefix, branches: [[9]] }), never)
    }
    await scheduler.idle()
    expect(scheduler.stats().cacheBytes).toBe(4 * 4)
  })

  test("answer rightly when few of them can be kept and the last one stays in its cells", async () => {
    const rounds = fc.array(fc.array(someTexts, { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 6,
    })
    await fc.assert(
      fc.asyncProperty(rounds, async (all) => {
        const decoder = new FakeDecoder({ ...shape, statesMax: 2, stateTokensMin: 3 })
        const scheduler = new Scheduler(decoder, withLastStaying)
        const longest = Math.max(...all.flat().map(({ prefix }) => prefix.length))
        for (const round of all.flatMap((texts) => [texts, texts])) {
          const answers = await Promise.all(round.map((texts) => scheduler.submit(jobOf(texts), never)))
          await scheduler.idle()
          expect(answers.map((answer) => [...answer])).toEqual(round.map(expected))
          expect(decoder.cellsUsed).toBeLessThanOrEqual(longest)
        }
        expect(decoder.cellsPeak).toBeLessThanOrEqual(shape.cellsMax)
        expect(decoder.states.bytesPeak).toBeLessThanOrEqual(160)
      }),
      { numRuns: 100 },
    )
  })

  test("stay in their cells for the next request about them, of the same organization only", async () => {
    const decoder = new FakeDecoder({ ...shape, statesMax: 0 })
    const scheduler = new Scheduler(decoder, withLastStaying)
    const many = { ...texts, branches: Array.from({ length: 20 }, (_, index) => [60 + index]) }
    const decoded: number[] = []
    for (const organizationId of ["a", "a", "b", "a"]) {
      const before = decoder.tokensDecoded
      const answers = await scheduler.submit(jobOf({ ...many, organizationId }), never)
      await scheduler.idle()
      expect([...answers]).toEqual(expected(many))
      decoded.push(decoder.tokensDecoded - before)
    }
    expect(decoded).toEqual([39, 20, 39, 39])
  })

  test("are kept, when they stayed in their cells, before another takes those", async () => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, withLastStaying)
    const decoded: number[] = []
    // Each asks as soon as the one before is answered.
    for (const seed of [1, 2, 1, 2]) {
      const before = decoder.tokensDecoded
      await scheduler.submit(jobOf(one("a", seed)), never)
      decoded.push(decoder.tokensDecoded - before)
    }
    expect(decoded).toEqual([5, 5, 2, 2])
  })

  test("do not stay in cells where an idle engine would not have put them", async () => {
    const decoder = new FakeDecoder({ ...shape, statesMax: 0 })
    const scheduler = new Scheduler(decoder, withLastStaying)
    const second = { ...large("a", 5, 30), prefix: [90, 91, 92] }
    await Promise.all([one("a", 1), second].map((each) => scheduler.submit(jobOf(each), never)))
    await scheduler.idle()
    expect(decoder.cellsUsed).toBe(0)
  })
})

/** How many decodes a request waits that is sent while others are at work. */
const decodesUntilAnswered = async (busy: readonly Texts[], late: Texts): Promise<number> => {
  const decoder = new FakeDecoder(shape)
  const scheduler = new Scheduler(decoder, withoutCache)
  const running = busy.map((texts) => scheduler.submit(jobOf(texts), never))
  let answeredAt = Number.POSITIVE_INFINITY
  let sentAt = 0
  decoder.beforeDecode = (decode) => {
    if (decode !== 10) return
    sentAt = decode
    void scheduler.submit(jobOf(late), never).then(() => {
      answeredAt = decoder.batches.length
    })
  }
  await Promise.all(running)
  return answeredAt - sentAt
}

describe("fairness", () => {
  test("a short request of the same organization is not held up by a large one", async () => {
    expect(await decodesUntilAnswered([large("a", 1)], one("a", 1))).toBeLessThanOrEqual(4)
  })

  test("a short request of another organization is not held up by many large ones", async () => {
    const busy = Array.from({ length: 30 }, (_, seed) => large("a", seed, 40))
    expect(await decodesUntilAnswered(busy, one("b", 1))).toBeLessThanOrEqual(4)
  })

  test("two organizations get equal shares of the tokens, however many requests each sends", async () => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, withoutCache)
    const many = Array.from({ length: 4 }, (_, seed) => scheduler.submit(jobOf(large("a", seed, 100)), never))
    const few = scheduler.submit(jobOf(large("b", 9, 100)), never)
    await few
    const share = scheduler.stats().tokensRun
    // The one request of b has 301 tokens; a can have had about as many by the time it is answered.
    expect(share).toBeLessThanOrEqual(2 * 301 + 2 * CHUNK)
    await Promise.all(many)
  })
})

describe("bounds", () => {
  test("one request more than may wait is refused as overloaded, and the others are answered", async () => {
    const scheduler = new Scheduler(new FakeDecoder(shape), { ...withoutCache, waitingMax: 3 })
    const accepted = [1, 2, 3].map((seed) => scheduler.submit(jobOf(one("a", seed)), never))
    await expect(scheduler.submit(jobOf(one("a", 4)), never)).rejects.toMatchObject({ code: "overloaded" })
    expect((await Promise.all(accepted)).map(([answer]) => answer)).toEqual(
      [1, 2, 3].map((seed) => expected(one("a", seed))[0]),
    )
  })

  test("requests that do not fit together wait for cells, and none is used beyond the budget", async () => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, withoutCache)
    const all = Array.from({ length: 12 }, (_, seed) => withEvidence(`organization-${seed % 3}`, seed, 70))
    const answers = await Promise.all(all.map((texts) => scheduler.submit(jobOf(texts), never)))
    expect(answers.map((answer) => [...answer])).toEqual(all.map(expected))
    expect(decoder.cellsPeak).toBeLessThanOrEqual(shape.cellsMax)
  })

  test("of many requests of one organization no more run together than are worth it", async () => {
    const decoder = new FakeDecoder({ ...shape, cellsUseful: 30 })
    const scheduler = new Scheduler(decoder, withoutCache)
    const small = Array.from({ length: 12 }, (_, seed) => withEvidence("a", seed + 1, 4))
    const answers = await Promise.all(small.map((texts) => scheduler.submit(jobOf(texts), never)))
    expect(answers.map((answer) => [...answer])).toEqual(small.map(expected))
    // Beyond its evidence and its longest branch a request holds the tokens of one decode at most.
    expect(decoder.cellsPeak).toBeLessThanOrEqual(30 + CHUNK)
  })

  test("a small request does not wait for a huge one of its organization", async () => {
    const scheduler = new Scheduler(new FakeDecoder({ ...shape, cellsUseful: 1 }), withoutCache)
    const ended: string[] = []
    const huge = scheduler.submit(jobOf(large("a", 1)), never).then(() => ended.push("huge"))
    const small = scheduler.submit(jobOf(one("a", 2)), never).then(() => ended.push("small"))
    await Promise.all([huge, small])
    expect(ended).toEqual(["small", "huge"])
  })
})

test("a job that is aborted before it starts is never decoded", async () => {
  const decoder = new FakeDecoder(shape)
  const scheduler = new Scheduler(decoder, withoutCache)
  await expect(scheduler.submit(jobOf(one("a", 1)), AbortSignal.abort("enough"))).rejects.toBe("enough")
  await scheduler.idle()
  expect(decoder.batches).toEqual([])
})

test("a failed decode fails every job, and no other is taken", async () => {
  const decoder = new FakeDecoder(shape)
  const scheduler = new Scheduler(decoder, withoutCache)
  decoder.beforeDecode = (decode) => {
    if (decode === 1) throw new Error("broken")
  }
  const all = [1, 2].map((seed) => scheduler.submit(jobOf(large("a", seed)), never))
  const outcomes = await Promise.allSettled(all)
  expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason.code)).toEqual([
    "inference_failed",
    "inference_failed",
  ])
  await expect(scheduler.submit(jobOf(one("a", 3)), never)).rejects.toMatchObject({
    code: "inference_failed",
  })
})

test("without room in the cache no state is read out of the context", async () => {
  const saves = async (options: typeof withCache): Promise<number> => {
    const decoder = new FakeDecoder(shape)
    const scheduler = new Scheduler(decoder, options)
    await scheduler.submit(jobOf(one("a", 1)), never)
    await scheduler.idle()
    return decoder.states.saves
  }
  expect([await saves(withCache), await saves(withoutCache)]).toEqual([1, 0])
})
