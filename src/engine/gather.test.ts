import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { gather } from "./engine-service.ts"
import type { GenerationEvent } from "./engine.ts"

const waitMs = 20
const text = (words: string): GenerationEvent => ({ kind: "text", text: words, logprobs: null })
const given = (words: string): GenerationEvent => ({ kind: "arguments", text: words })
const thought = (words: string): GenerationEvent => ({ kind: "reasoning", text: words })
const one = (token: string): GenerationEvent => ({
  kind: "text",
  text: token,
  logprobs: [{ token, logprob: -1, top: [] }],
})
const end: GenerationEvent = { kind: "end", reason: "stop" }

/** Each step of the source, with the time that passes before it. */
type Step = readonly [delayMs: number, event: GenerationEvent | Error]

let sent: (readonly [atMs: number, events: readonly GenerationEvent[]])[]
beforeEach(() => {
  vi.useFakeTimers()
  sent = []
})
afterEach(() => {
  vi.useRealTimers()
})

async function* source(steps: readonly Step[]): AsyncGenerator<GenerationEvent> {
  for (const [delayMs, event] of steps) {
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
    if (event instanceof Error) throw event
    yield event
  }
}

async function run(steps: readonly Step[]): Promise<unknown> {
  const startMs = performance.now()
  const reading = (async () => {
    for await (const events of gather(source(steps), waitMs)) sent.push([performance.now() - startMs, events])
  })().catch((error: unknown) => error)
  await vi.runAllTimersAsync()
  return await reading
}

test("the first event leaves at once, those soon after it together, whether or not others follow", async () => {
  await run([
    [0, text("a")],
    [5, text("b")],
    [5, text("c")],
    [100, text("d")],
  ])
  expect(sent).toEqual([
    [0, [text("a")]],
    [waitMs, [text("bc")]],
    [110, [text("d")]],
  ])
})

test("the end takes along what waits, in order", async () => {
  const call: GenerationEvent = { kind: "call", name: "f" }
  const events = [text("a"), thought("b"), thought("c"), call, given("{"), given("}"), call, given("{}"), end]
  await run(events.map((event) => [0, event]))
  expect(sent).toEqual([
    [0, [text("a")]],
    [0, [thought("bc"), call, given("{}"), call, given("{}"), end]],
  ])
})

test("log-probabilities of joined texts stay beside their tokens", async () => {
  await run([one("a"), one("b"), one("c"), end].map((event) => [0, event]))
  const joined = sent[1]?.[1][0]
  expect(joined?.kind === "text" && joined.logprobs?.map(({ token }) => token)).toEqual(["b", "c"])
})

test("a failure comes after what was written before it", async () => {
  const failure = new Error("broken")
  expect(
    await run([
      [0, text("a")],
      [5, text("b")],
      [5, failure],
    ]),
  ).toBe(failure)
  expect(sent.map(([, events]) => events)).toEqual([[text("a")], [text("b")]])
})
