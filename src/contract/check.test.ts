import { expect, test } from "vitest"
import { z } from "zod"
import { check, recordOf, schemasIn, sizeMax, thoroughBytesMax } from "./check.ts"
import type { Endpoint } from "./endpoint.ts"
import { table } from "./table.ts"

const large = thoroughBytesMax + 1
const Row = z.strictObject({ name: z.string(), tags: recordOf(z.string(), z.string(), 2).optional() })
const Rows = z.strictObject({ rows: z.array(Row).max(3) })

/** Counts how often a schema is asked. */
function counting(): { schema: z.ZodType; asked: () => number } {
  let asked = 0
  const schema = z.string().refine(() => {
    asked++
    return false
  })
  return { schema, asked: () => asked }
}

test("a small value's problems are all found, a large one's first", () => {
  const wrong = { rows: [{}, {}] }
  expect(check(Rows, wrong, 10).error?.issues).toHaveLength(2)
  expect(check(Rows, wrong, large).error?.issues).toHaveLength(1)
})

test("what is right is the same, whatever its size", () => {
  const right = { rows: [{ name: "a", tags: { b: "c", d: "e" } }] }
  expect(check(Rows, right, 10).data).toEqual(right)
  expect(check(Rows, right, large).data).toEqual(right)
})

test("a list that is too long is refused before its items are looked at", () => {
  const { schema, asked } = counting()
  expect(check(z.array(schema).max(2), ["a", "b", "c"], 10).success).toBe(false)
  expect(asked()).toBe(0)
})

test("a record with too many keys is refused before they are looked at", () => {
  const { schema, asked } = counting()
  const Held = z.object({ pairs: recordOf(z.string(), schema, 2).nullish() })
  const { error } = check(Held, { pairs: { a: "1", b: "2", c: "3" } }, 10)
  expect(error?.issues).toMatchObject([{ path: ["pairs"], message: "has more than 2 keys" }])
  expect(asked()).toBe(0)
})

test("a million wrong items are one problem", () => {
  const wrong = { rows: Array.from({ length: 1_000_000 }, () => ({})) }
  const Many = z.strictObject({ rows: z.array(z.union([Row, z.string()])) })
  expect(check(Many, wrong, large).error?.issues).toHaveLength(1)
})

/** Read by a decoder of their own, with limits of its own (src/gateway/classification). */
const decoded = new Set<Endpoint>([table.createDecision, table.createSystemOne])
/** Evidence, which has a limit in bytes of all its texts together; and an event whose signature is checked first. */
const bounded = new Set([
  "decideQuestionSet .input",
  "decideQuestionSet .input[].content",
  "receiveStripeEvent ",
])

test("every list and record of every request has a most", () => {
  const unbounded = Object.entries<Endpoint>(table).flatMap(([name, endpoint]) =>
    decoded.has(endpoint)
      ? []
      : [...schemasIn(endpoint.body)]
          .filter(({ schema }) => schema instanceof z.ZodArray || schema instanceof z.ZodRecord)
          .filter(({ schema }) => sizeMax(schema) === null)
          .map(({ path }) => `${name} ${path}`),
  )
  expect(new Set(unbounded)).toEqual(bounded)
})
