import { afterEach, beforeEach, expect, test, vi } from "vitest"
import type { GenerationEvent } from "./generate.ts"
import { GATHER_MS, Outbox } from "./outbox.ts"

const text = (words: string): GenerationEvent => ({ kind: "text", text: words, logprobs: null })
const given = (words: string): GenerationEvent => ({ kind: "arguments", text: words })
const thought = (words: string): GenerationEvent => ({ kind: "reasoning", text: words })
const one = (token: string): GenerationEvent => ({
  kind: "text",
  text: token,
  logprobs: [{ token, logprob: -1, top: [] }],
})
const end: GenerationEvent = { kind: "end", reason: "stop" }

let sent: (readonly GenerationEvent[])[]
let outbox: Outbox
beforeEach(() => {
  vi.useFakeTimers()
  sent = []
  outbox = new Outbox((events) => sent.push(events))
})
afterEach(() => {
  vi.useRealTimers()
})

test("the first event leaves at once, those soon after it together", () => {
  outbox.add(text("a"))
  expect(sent).toEqual([[text("a")]])
  outbox.add(text("b"))
  outbox.add(text("c"))
  vi.advanceTimersByTime(GATHER_MS - 1)
  expect(sent).toHaveLength(1)
  vi.advanceTimersByTime(1)
  expect(sent.slice(1)).toEqual([[text("bc")]])
})

test("events that come slowly leave one by one", () => {
  for (const words of ["a", "b", "c"]) {
    outbox.add(text(words))
    expect(sent.at(-1)).toEqual([text(words)])
    vi.advanceTimersByTime(GATHER_MS)
  }
  expect(sent).toHaveLength(3)
})

test("the end takes along what waits, in order, and nothing comes after it", () => {
  const call: GenerationEvent = { kind: "call", name: "f" }
  for (const event of [
    text("a"),
    thought("b"),
    thought("c"),
    call,
    given("{"),
    given("}"),
    call,
    given("{}"),
    end,
  ])
    outbox.add(event)
  expect(sent).toEqual([[text("a")], [thought("bc"), call, given("{}"), call, given("{}"), end]])
  vi.advanceTimersByTime(10 * GATHER_MS)
  expect(sent).toHaveLength(2)
})

test("log-probabilities of joined texts stay beside their tokens", () => {
  for (const event of [one("a"), one("b"), one("c"), end]) outbox.add(event)
  const joined = sent[1]?.[0]
  expect(joined?.kind === "text" && joined.logprobs?.map(({ token }) => token)).toEqual(["b", "c"])
})

test("what is discarded never leaves", () => {
  outbox.add(text("a"))
  outbox.add(text("b"))
  outbox.discard()
  vi.advanceTimersByTime(10 * GATHER_MS)
  outbox.flush()
  expect(sent).toEqual([[text("a")]])
})
