/** What passes a guardrail does not depend on how the answer comes, and nothing passes unseen. */
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { GenerationEvent } from "../../engine/engine.ts"
import { type OutputRule, guardOutput, windowsOf } from "./guard-output.ts"
import { recognizeAll } from "./recognizers.ts"

const secret = "the code is 4711-0815"
const windowCharacters = 64
const holdBackCharacters = 24
const chunkings = 1000

const rule = (changes: Partial<OutputRule> = {}): OutputRule => ({
  action: "block",
  release: "window",
  windowCharacters,
  holdBackCharacters,
  isFormatted: false,
  recognize: async () => [],
  ...changes,
})

const hasSecret = async (text: string): Promise<boolean> => text.includes(secret)

async function* said(
  pieces: readonly string[],
  kind: "text" | "arguments" = "text",
): AsyncGenerator<GenerationEvent> {
  for (const text of pieces) yield kind === "text" ? { kind, text, logprobs: null } : { kind, text }
  yield { kind: "end", reason: "stop" }
}

interface Passed {
  readonly text: string
  readonly end: string | undefined
}

async function passed(
  events: AsyncIterable<GenerationEvent>,
  given: OutputRule,
  check: (text: string) => Promise<boolean> = hasSecret,
): Promise<Passed> {
  let text = ""
  let end: string | undefined
  for await (const event of guardOutput(events, given, check)) {
    if (event.kind === "end") end = event.reason
    else text += event.kind === "call" ? event.name : event.text
  }
  return { text, end }
}

/** Sizes of pieces: single characters, a few, and more than a window, in turn. */
const sizes = fc.array(
  fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 9 }), fc.integer({ min: 50, max: 200 })),
  {
    minLength: 1,
    maxLength: 40,
  },
)
const filler = fc.string({ unit: fc.constantFrom("a", "b", " ", ". ", "é", "😀", "\n", "T"), maxLength: 200 })

function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

describe(`in ${chunkings} adversarial chunkings`, () => {
  const runs = { numRuns: chunkings, seed: 20_261_116 }

  test("nothing of what is blocked passes, and what passes is the same in each", async () => {
    const property = fc.asyncProperty(filler, filler, sizes, async (before, after, lengths) => {
      const answer = before + secret + after
      const whole = await passed(said([answer]), rule())
      const pieces = await passed(said(cut(answer, lengths)), rule())
      expect(pieces).toEqual(whole)
      expect(pieces.end).toBe("content_filter")
      expect(before.startsWith(pieces.text)).toBe(true)
    })
    await fc.assert(property, runs)
  })

  test("released at the end, nothing at all of a blocked answer passes", async () => {
    const property = fc.asyncProperty(filler, filler, sizes, async (before, after, lengths) => {
      const pieces = cut(before + secret + after, lengths)
      const none = { text: "", end: "content_filter" }
      expect(await passed(said(pieces), rule({ release: "end" }))).toEqual(none)
    })
    await fc.assert(property, runs)
  })

  test("an answer without it passes unchanged, and every character of it was checked before it passed", async () => {
    const property = fc.asyncProperty(filler, sizes, async (answer, lengths) => {
      const windows: string[] = []
      const check = async (text: string): Promise<boolean> => {
        windows.push(text)
        return false
      }
      expect(await passed(said(cut(answer, lengths)), rule(), check)).toEqual({ text: answer, end: "stop" })
      expect(windows).toEqual(windowsOf(answer, windowCharacters, holdBackCharacters))
    })
    await fc.assert(property, runs)
  })

  test("redacted, nothing of it passes, and what passes is the same in each", async () => {
    const property = fc.asyncProperty(filler, filler, sizes, async (before, after, lengths) => {
      const answer = before + secret + after
      const whole = await passed(said([answer]), rule({ action: "redact" }))
      const pieces = await passed(said(cut(answer, lengths)), rule({ action: "redact" }))
      expect(pieces).toEqual(whole)
      expect(pieces.end).toBe("stop")
      expect(pieces.text).toContain("[redacted]")
      expect(pieces.text).not.toMatch(/code|4711|0815/)
    })
    await fc.assert(property, runs)
  })
})

/** As a guardrail has it: the check answers yes to what is recognized, and to what the set finds. */
const found = /4711-0815/g
const recognizing = rule({
  action: "redact",
  recognize: async (text) =>
    [...text.matchAll(found)].map(({ 0: { length }, index }) => ({ start: index, end: index + length })),
})

const isRecognized = async (text: string): Promise<boolean> => text.search(found) >= 0
const isAnyFound = async (text: string): Promise<boolean> => text.search(found) >= 0 || text.includes("Anna")

test("what is recognized is redacted alone, however the answer comes", async () => {
  const property = fc.asyncProperty(filler, filler, sizes, async (before, after, lengths) => {
    const pieces = cut(before + secret + after, lengths)
    const { text, end } = await passed(said(pieces), recognizing, isRecognized)
    expect({ text, end }).toEqual({ text: `${before}the code is [redacted]${after}`, end: "stop" })
  })
  await fc.assert(property, { numRuns: 200, seed: 20_261_116 })
})

test("beside what is recognized, a sentence that the set finds is redacted", async () => {
  const answer = `Hello there. Listen, ${secret}. Anna lives here. Good night to you.`
  const { text } = await passed(said([answer]), { ...recognizing, windowCharacters: 200 }, isAnyFound)
  expect(text).toBe("Hello there. Listen, the code is [redacted]. [redacted]Good night to you.")
})

test("a sentence is redacted, and those around it pass", async () => {
  const answer = `Hello there. Listen, ${secret}. Good night to you.`
  const { text } = await passed(said([answer]), rule({ action: "redact", windowCharacters: 200 }))
  expect(text).toBe("Hello there. [redacted]Good night to you.")
})

test("a call cannot be redacted: it is blocked", async () => {
  const given = `{"note":"${secret}"}`
  const redacted = rule({ action: "redact" })
  expect(await passed(said([given], "arguments"), redacted)).toEqual({ text: "", end: "content_filter" })
  const formatted = rule({ action: "redact", isFormatted: true })
  expect(await passed(said([given]), formatted)).toEqual({ text: "", end: "content_filter" })
})

const escaped = (text: string): string =>
  text.replaceAll(/[^]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`)

test(`escapes do not make the hold-back shorter, in ${chunkings} chunkings`, async () => {
  const property = fc.asyncProperty(filler, filler, sizes, async (before, after, lengths) => {
    const given = `{"note":"${escaped(before)}${escaped(secret)}${escaped(after)}"}`
    for (const [kind, isFormatted] of [["arguments", false] as const, ["text", true] as const]) {
      const pieces = await passed(said(cut(given, lengths), kind), rule({ isFormatted }))
      expect(pieces).toEqual(await passed(said([given], kind), rule({ isFormatted })))
      expect(pieces.end).toBe("content_filter")
      expect(`{"note":"${escaped(before)}`.startsWith(pieces.text)).toBe(true)
    }
  })
  await fc.assert(property, { numRuns: chunkings, seed: 20_261_116 })
})

test("an escape that is cut off at the end stands for itself, and one after an escaped backslash is none", async () => {
  const windows: string[] = []
  const check = async (text: string): Promise<boolean> => {
    windows.push(text)
    return false
  }
  const given = `{"a":"${String.raw`\\u0041\u00e9\"\n\ud83d`}`
  for (const lengths of [[200], [1], [2], [3]]) {
    const { text } = await passed(said(cut(given, lengths), "arguments"), rule(), check)
    expect(text).toBe(given)
  }
  expect(new Set(windows)).toEqual(new Set(['{"a":"\\u0041é"\n\ufffd']))
})

test.each(["block", "redact", "flag"] as const)(
  "escapes of JSON do not hide anything in arguments and formatted answers (%s)",
  async (action) => {
    const given = cut(`{"note":"${escaped(secret)}"}`, [7])
    const found: boolean[] = []
    const check = async (text: string): Promise<boolean> => {
      const isFound = text.includes(secret)
      found.push(isFound)
      return isFound
    }
    const wide = { action, windowCharacters: 200 }
    const inCall = await passed(said(given, "arguments"), rule(wide), check)
    const inAnswer = await passed(said(given), rule({ ...wide, isFormatted: true }), check)
    expect(found).toEqual([true, true])
    const end = action === "flag" ? "stop" : "content_filter"
    expect([inCall.end, inAnswer.end]).toEqual([end, end])
    // In plain text they are what they look like.
    found.length = 0
    expect(await passed(said(given), rule(wide), check)).toEqual({ text: given.join(""), end: "stop" })
  },
)

test("the sentences of a window that was found are checked as suspects", async () => {
  const suspects: boolean[] = []
  const check = async (text: string, isSuspect = false): Promise<boolean> => {
    suspects.push(isSuspect)
    return text.includes(secret)
  }
  await passed(said([`Hello there! ${secret}.`]), rule({ action: "redact" }), check)
  expect(suspects).toEqual([false, true, true])
})

async function* everyKind(): AsyncGenerator<GenerationEvent> {
  yield { kind: "reasoning", text: "think" }
  yield { kind: "text", text: "say", logprobs: null }
  yield { kind: "call", name: "send" }
  yield { kind: "arguments", text: "{}" }
  yield { kind: "end", reason: "tool_calls" }
}

test("what begins in the text and ends in a call's arguments is seen together", async () => {
  const seen: string[] = []
  const kinds: string[] = []
  const check = async (text: string): Promise<boolean> => {
    seen.push(text)
    return false
  }
  for await (const event of guardOutput(everyKind(), rule(), check)) kinds.push(event.kind)
  expect(seen).toEqual(["think\nsay\nsend\n{}"])
  expect(kinds).toEqual(["reasoning", "text", "call", "arguments", "end"])
})

test("log-probabilities leave with the last character that they are of, and none are lost", async () => {
  const logprobs = [{ token: "a", logprob: -1, top: [] }]
  const text = "a".repeat(windowCharacters * 2)
  const events = async function* (): AsyncGenerator<GenerationEvent> {
    yield { kind: "text", text, logprobs }
    yield { kind: "end", reason: "stop" }
  }
  const given: (typeof logprobs | null)[] = []
  for await (const event of guardOutput(events(), rule(), hasSecret))
    if (event.kind === "text") given.push(event.logprobs as typeof logprobs | null)
  expect(given.length).toBeGreaterThan(1)
  expect(given.filter((one) => one !== null)).toEqual([logprobs])
  expect(given.at(-1)).toEqual(logprobs)
})

test("log-probabilities of a piece that is redacted in part do not leave", async () => {
  const text = `${secret}. ${"Good night to you. ".repeat(8)}`
  const events = async function* (): AsyncGenerator<GenerationEvent> {
    yield { kind: "text", text, logprobs: [{ token: secret, logprob: -1, top: [] }] }
    yield { kind: "text", text: "Bye.", logprobs: [{ token: "Bye.", logprob: -1, top: [] }] }
    yield { kind: "end", reason: "stop" }
  }
  const given: GenerationEvent[] = []
  for await (const event of guardOutput(events(), rule({ action: "redact" }), hasSecret)) given.push(event)
  expect(JSON.stringify(given)).toContain("[redacted]")
  expect(JSON.stringify(given)).not.toContain(secret)
  expect(JSON.stringify(given)).toContain('"token":"Bye."')
})

test("flagged, everything passes at once, and all of it is checked before the end", async () => {
  const order: string[] = []
  const answer = "x".repeat(windowCharacters * 2)
  const check = async (): Promise<boolean> => {
    order.push("check")
    return true
  }
  for await (const event of guardOutput(said(cut(answer, [10])), rule({ action: "flag" }), check))
    if (event.kind === "end") order.push("end")
    else order.push(event.kind)
  const pieces = cut(answer, [10]).map(() => "text")
  const checks = windowsOf(answer, windowCharacters, holdBackCharacters).map(() => "check")
  expect(order).toEqual([...pieces, ...checks, "end"])
})

const failing = async (): Promise<boolean> => {
  throw new Error("no check")
}

test("a check that fails ends the answer before anything of its window passes", async () => {
  const kinds: string[] = []
  const read = async (): Promise<void> => {
    for await (const event of guardOutput(said(["x".repeat(200)]), rule(), failing)) kinds.push(event.kind)
  }
  await expect(read()).rejects.toThrow("no check")
  expect(kinds).toEqual([])
})

const real = (changes: Partial<OutputRule>): OutputRule =>
  rule({
    windowCharacters: 600,
    holdBackCharacters: 200,
    action: "redact",
    recognize: async (text, context) => await recognizeAll(text, context, ["secret", "ip_address"]),
    ...changes,
  })
const nothing = async (): Promise<boolean> => false

describe("what is recognized by its form", () => {
  const before = "So it is. ".repeat(30)
  const token = `eyJ${"a".repeat(300)}.eyJ${"b".repeat(300)}.${"c".repeat(175)}`
  const key = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG\n".repeat(80)}-----END PRIVATE KEY-----`

  test.each([token, key])("is seen in the whole answer where it is longer than a window", async (secret) => {
    const events = (): AsyncGenerator<GenerationEvent> => said(cut(`${before}${secret} ${before}`, [7]))
    const redacted = await passed(events(), real({ release: "end" }), nothing)
    expect(redacted).toEqual({ text: `${before}[redacted] ${before}`, end: "stop" })
    const blocked = await passed(events(), real({ release: "end", action: "block" }), nothing)
    expect(blocked).toEqual({ text: "", end: "content_filter" })
    let seen = 0
    const recognize = async (text: string): Promise<{ start: number; end: number }[]> => {
      const spans = await recognizeAll(text, "", ["secret"])
      seen += spans.length
      return spans
    }
    expect((await passed(events(), real({ action: "flag", recognize }), nothing)).end).toBe("stop")
    expect(seen).toBe(1)
  })

  test("is blocked in a stream where a key is longer than the hold-back, wherever it begins", async () => {
    for (const length of [0, 150, 399, 400, 401, 590, 620]) {
      const filling = ". ".repeat(400).slice(0, length)
      const { text, end } = await passed(said([`${filling}${key} ${before}`]), real({}), nothing)
      expect(end, String(length)).toBe("content_filter")
      expect(filling.startsWith(text), String(length)).toBe(true)
    }
  })

  test("is excused by a word that left before", async () => {
    for (let length = 360; length <= 440; length++) {
      const answer = `${". ".repeat(300).slice(0, length)} version 81.2.69.142 of it. ${before}`
      expect(await passed(said([answer]), real({}), nothing)).toEqual({ text: answer, end: "stop" })
    }
  })

  test("is found once across the parts of a long text, and not in its context alone", async () => {
    const address = "81.2.69.142"
    for (let length = 49_980; length <= 50_010; length += 5) {
      const text = `${" ".repeat(length)}${address} `
      const span = { start: length, end: length + address.length }
      expect(await recognizeAll(text, "", ["ip_address"])).toEqual([span])
    }
    expect(await recognizeAll(" is it", address, ["ip_address"])).toEqual([])
    expect(await recognizeAll("69.142 is it", "81.2.", ["ip_address"])).toEqual([{ start: -5, end: 6 }])
  })
})
