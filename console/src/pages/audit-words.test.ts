import { expect, test } from "vitest"
import { changedFields, isUnset } from "./audit-fields.ts"
import { actionWords } from "./audit-words.ts"

test.each([
  ["api_key.create", "API key created"],
  ["invitation.accept", "Invitation accepted"],
  ["user.set_password", "Password set"],
  ["billing.refill", "Credit purchased"],
  ["session.create", "Signed in"],
  ["content_settings.replace", "Kept content changed"],
  ["review.decide", "Answer reviewed"],
  ["review.read", "Review queue read"],
  ["webhook.disable", "Webhook disabled"],
  ["something_new.happen_now", "Something new happen now"],
])("%s reads %j", (action, words) => {
  expect(actionWords(action)).toBe(words)
})

test("a difference lists the fields of both views and marks those that differ", () => {
  expect(changedFields({ name: "a", scope: "user" }, { name: "b", scope: "user" })).toEqual([
    { field: "name", before: "a", after: "b", changed: true },
    { field: "scope", before: "user", after: "user", changed: false },
  ])
})

test("nested objects are compared field by field, lists as a whole", () => {
  const before = { limits: { low: 1, high: 2 }, permissions: ["inference"] }
  const after = { limits: { low: 1, high: 3 }, permissions: ["inference", "api-read"] }
  expect(changedFields(before, after).filter(({ changed }) => changed)).toEqual([
    { field: "limits.high", before: "2", after: "3", changed: true },
    { field: "permissions", before: '["inference"]', after: '["inference","api-read"]', changed: true },
  ])
})

const unset = (before: unknown, after: unknown) => changedFields(before, after).map(isUnset)

test("a field that was never set is told from one that is set, or was", () => {
  expect(unset(null, { expires_at: null, name: "a" })).toEqual([true, false])
  expect(unset({ expires_at: null }, null)).toEqual([true])
  expect(unset({ expires_at: "2026" }, { expires_at: null })).toEqual([false])
})

test("what is new or gone has one side only", () => {
  expect(changedFields(null, { name: "a" })).toEqual([
    { field: "name", before: null, after: "a", changed: true },
  ])
  expect(changedFields({ name: "a" }, null)).toEqual([
    { field: "name", before: "a", after: null, changed: true },
  ])
  expect(changedFields(null, null)).toEqual([])
})
