import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
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

/** Actions that are put together of parts: every one of them. */
const composed: Readonly<Record<string, readonly string[]>> = {
  "alert.${state}": ["alert.firing", "alert.resolved"],
  "billing.${kind}": ["billing.credit", "billing.adjustment"],
  "billing.purchase_${status}": ["processing", "succeeded", "failed", "action_required", "timed_out"].map(
    (status) => `billing.purchase_${status}`,
  ),
  "model_access.${state}": ["model_access.grant", "model_access.deny"],
  "question_set.${kind}": ["teach", "check", "compare", "next"].map((kind) => `question_set.${kind}`),
  "workload_identity_provider.${verb}": ["create", "update", "delete"].map(
    (verb) => `workload_identity_provider.${verb}`,
  ),
}

/** Where a source writes an action: in a field of that name, or as an argument of what appends to the log. */
const written =
  /\baction: [^\n]*|\b(?:audit(?:Key|Resource)?|eventOf|tellOrganizations|changeAccount)\([^"`]*["`][^"`]*["`]/g
/** A field that another caller may name otherwise has its action as its default. */
const defaulted = /\baction = "([a-z_.]+)"/g
const dotted = /["`]([a-z_]+\.[a-z_.${}]+)["`]/g

function actionsOfSources(): string[] {
  const source = join(import.meta.dirname, "..", "..", "..", "src")
  const files = ["control", "gateway"].flatMap((layer) =>
    readdirSync(join(source, layer), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .map((file) => join(source, layer, file)),
  )
  const found = files.flatMap((file) => {
    const text = readFileSync(file, "utf8")
    const named = [...text.matchAll(written)].flatMap(([part]) => [...part.matchAll(dotted)])
    return [...named, ...text.matchAll(defaulted)].map(([, action = ""]) => action)
  })
  // What is described as a resource is created, updated and deleted, and may have verbs of its own beside them.
  const described = files
    .map((file) => readFileSync(file, "utf8"))
    .flatMap((text) => {
      const [, type] = /\bresource\(\{\s*type: "(\w+)"/.exec(text) ?? []
      const verbs = [...text.matchAll(/\bverb: "(\w+)"/g)].map(([, verb]) => verb)
      return type === undefined
        ? []
        : ["create", "update", "delete", ...verbs].map((verb) => `${type}.${verb}`)
    })
  return [...new Set(found)].flatMap((action) => composed[action] ?? [action]).concat(described)
}

test("every action that is written to the log reads in the past tense", () => {
  const actions = actionsOfSources()
  expect(actions).toEqual(
    expect.arrayContaining(["api_key.rotate", "user.create_link", "member.join", "organization.update"]),
  )
  const unworded = actions.filter(
    (action) => !/\b(?:\w+ed|(?:re)?set|read|resent|undone|again|in|out|on|off)$/.test(actionWords(action)),
  )
  expect(unworded).toEqual([])
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
