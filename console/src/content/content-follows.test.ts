import { expect, test } from "vitest"
import { contentFollowsMsMax, contentMayFollow, isContentKept } from "./content-follows.ts"

const sequence = { content: "none", result: "success", timestamp: 1_000, seq_duration_ms: 500 } as const
const endMs = 1_500

test("content may follow for a minute after the request, and no longer", () => {
  expect(contentMayFollow(sequence, endMs)).toBe(true)
  expect(contentMayFollow(sequence, endMs + contentFollowsMsMax - 1)).toBe(true)
  expect(contentMayFollow(sequence, endMs + contentFollowsMsMax)).toBe(false)
  // A browser whose clock is behind does not wait for hours either.
  expect(contentMayFollow(sequence, endMs - contentFollowsMsMax)).toBe(false)
})

test("content does not follow a request that was not answered", () => {
  expect(contentMayFollow({ ...sequence, result: "error" }, endMs)).toBe(false)
})

test.each(["redacting", "answers", "evidence_and_answers", "deleted", "expired"] as const)(
  "content does not follow where it is %s already",
  (content) => {
    expect(contentMayFollow({ ...sequence, content }, endMs)).toBe(false)
  },
)

test("the setting of its key decides whether the content of a request is kept, else that of the organization", () => {
  const own = { api_key_id: "key_1", keep: "answers" as const, sample_rate: 1, retention_days: 30 }
  const settings = { keep: "nothing" as const, sample_rate: 1, keys: [own], available: true }
  expect(isContentKept({ api_key_id: "key_1" }, settings)).toBe(true)
  expect(isContentKept({ api_key_id: "key_2" }, settings)).toBe(false)
  expect(isContentKept({ api_key_id: null }, { ...settings, keep: "answers" })).toBe(true)
  expect(isContentKept({ api_key_id: "key_1" }, { ...settings, keys: [{ ...own, sample_rate: 0 }] })).toBe(
    false,
  )
  expect(isContentKept({ api_key_id: "key_1" }, { ...settings, available: false })).toBe(false)
})
