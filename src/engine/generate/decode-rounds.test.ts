import { expect, test } from "vitest"
import { DecodeRounds } from "./local-model.ts"

/** Hands out a value for each that was asked for, when the test says so. */
class Source implements AsyncIterable<number>, AsyncIterator<number> {
  asked = 0
  #answer: PromiseWithResolvers<IteratorResult<number>> | null = null

  async next(): Promise<IteratorResult<number>> {
    this.asked++
    this.#answer = Promise.withResolvers()
    return await this.#answer.promise
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async give(step: IteratorResult<number> = { done: false, value: this.asked }): Promise<void> {
    this.#answer?.resolve(step)
    await settled()
  }

  async fail(): Promise<void> {
    this.#answer?.reject(new Error("broken"))
    await settled()
  }
}

/** Everything that can go on has gone on. */
const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve))

/** Sources that all have their first value and were asked for the second. */
async function running(count: number): Promise<{ rounds: DecodeRounds; sources: Source[]; got: number[][] }> {
  const rounds = new DecodeRounds()
  const sources = Array.from({ length: count }, () => new Source())
  const got: number[][] = sources.map(() => [])
  for (const [index, source] of sources.entries()) {
    void read(rounds, source, got[index] ?? [])
    await settled()
    await source.give()
  }
  return { rounds, sources, got }
}

async function read(rounds: DecodeRounds, source: Source, into: number[]): Promise<void> {
  try {
    for await (const value of rounds.of(source)) into.push(value)
  } catch {
    into.push(-1)
  }
}

const askedOf = (sources: readonly Source[]): number[] => sources.map(({ asked }) => asked)

test("nobody asks again before all that asked have their token", async () => {
  const { sources } = await running(3)
  expect(askedOf(sources)).toEqual([2, 2, 2])
  await sources[1]?.give()
  await sources[2]?.give()
  expect(askedOf(sources)).toEqual([2, 2, 2])
  await sources[0]?.give()
  expect(askedOf(sources)).toEqual([3, 3, 3])
})

test("one alone waits for nobody", async () => {
  const { sources, got } = await running(1)
  for (let round = 0; round < 3; round++) await sources[0]?.give()
  expect(got[0]).toEqual([1, 2, 3, 4])
})

test("a prompt that is still read holds nobody back", async () => {
  const { rounds, sources } = await running(2)
  const prompt = new Source()
  void read(rounds, prompt, [])
  await settled()
  await sources[0]?.give()
  await sources[0]?.give()
  expect(askedOf(sources)).toEqual([4, 2])
})

test.each(["ends", "fails"] as const)("one that %s holds nobody back", async (how) => {
  const { sources, got } = await running(3)
  await sources[0]?.give()
  await sources[1]?.give()
  if (how === "ends") await sources[2]?.give({ done: true, value: undefined })
  else await sources[2]?.fail()
  expect(askedOf(sources)).toEqual([3, 3, 2])
  expect(got[2]).toEqual(how === "ends" ? [1] : [1, -1])
})
