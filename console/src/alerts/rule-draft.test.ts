import { expect, test } from "vitest"
import type { AlertRule } from "../../../src/contract/alerts/rules.ts"
import { channelsOf, draftOf, isComplete, newDraft, thresholdOf, withKind } from "./rule-draft.ts"
import { ruleSentence } from "./rule-words.ts"

const names = { key: (id: string) => `name of ${id}`, set: (id: string) => `name of ${id}` }

test.each([
  ["balance_below", "25.10", 2510],
  ["error_rate", "7", 0.07],
  ["latency", "1,500", null],
  ["latency", "1500", 1500],
  ["drift", "0.1", 0.1],
  ["key_expiring", "365", 365],
  ["key_expiring", "366", null],
  ["error_rate", "100", 1],
  ["error_rate", "100.1", null],
  ["balance_below", "", null],
  ["balance_below", "12,50", 1250],
  ["refill_failed", "", null],
] as const)("the threshold of %s as typed, %j, is %j in the API's unit", (kind, threshold, expected) => {
  const draft = { ...newDraft(kind, null), threshold }
  expect(thresholdOf(draft)).toBe(expected)
})

test("a rule goes through its form unchanged", () => {
  const rule = {
    kind: "low_confidence",
    name: "unsure",
    threshold: 0.55,
    window_minutes: 120,
    target: { question_set_id: "qs_1", question: "urgent" },
    channels: [
      { type: "webhook", webhook_id: "wh_1" },
      { type: "email", address: "ada@example.com" },
    ],
    enabled: false,
    // The rest is the server's.
  } as unknown as AlertRule
  const draft = draftOf(rule)
  expect(draft.threshold).toBe("55")
  expect(thresholdOf(draft)).toBe(rule.threshold)
  expect(channelsOf(draft)).toEqual(rule.channels)
  expect(isComplete(draft)).toBe(true)
})

test("another kind keeps the targets that it has too, and has its own threshold", () => {
  const target = { question_set_id: "qs_1", question: "urgent" }
  const draft = { ...newDraft("drift", "ada@example.com"), target }
  expect(withKind(draft, "low_confidence")).toMatchObject({ target, threshold: "70", emails: draft.emails })
  expect(withKind(draft, "latency")).toMatchObject({ target: {}, threshold: "1000", windowMinutes: 15 })
  expect(isComplete(newDraft("drift", null))).toBe(false)
})

test.each([
  [{ kind: "balance_below", threshold: 1000 }, "the balance is below $10.00"],
  [
    { kind: "error_rate", threshold: 0.05, window_minutes: 15, target: { model: "m", api_key_id: "k" } },
    "more than 5.0% of the requests for m with the key name of k fail within 15 minutes",
  ],
  [
    {
      kind: "low_confidence",
      threshold: 0.7,
      window_minutes: 1440,
      target: { question_set_id: "s", question: "q" },
    },
    "the mean confidence of the answers to q in name of s is below 70.0% within 1 day",
  ],
  [{ kind: "key_expiring", threshold: 1 }, "an API key expires within 1 day"],
] as const)("%j is said in a sentence", (terms, sentence) => {
  expect(ruleSentence({ window_minutes: null, target: {}, ...terms }, names)).toBe(`Fires when ${sentence}.`)
})
