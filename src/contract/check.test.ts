import { expect, test } from "vitest"
import { z } from "zod"
/* oxlint-disable no-underscore-dangle -- `_zod` is where zod shows a schema to libraries */
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

/** Whether a size is limited: by a most, by values that are listed, or by a pattern that repeats nothing without end. */
function isBounded(schema: z.core.$ZodType): boolean {
  if (!(schema instanceof z.ZodString || schema instanceof z.ZodArray || schema instanceof z.ZodRecord))
    return true
  if (schema instanceof z.ZodRecord && schema.keyType instanceof z.ZodEnum) return true
  return sizeMax(schema) !== null || patternsOf(schema).some((pattern) => !repeatsWithoutEnd(pattern))
}

const patternsOf = (schema: z.core.$ZodType): RegExp[] =>
  (schema._zod.def.checks ?? []).flatMap(({ _zod: { def } }) =>
    "pattern" in def && def.pattern instanceof RegExp ? [def.pattern] : [],
  )

/** Leaves out what is escaped and what stands in brackets. */
const repeatsWithoutEnd = ({ source }: RegExp): boolean =>
  /[*+]|\{\d+,\}/.test(source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/g, "_")) || !/^\^.*\$$/.test(source)

test("every text, list and record of every request has a most", () => {
  const unbounded = Object.entries<Endpoint>(table).flatMap(([name, endpoint]) =>
    (["params", "query", "body"] as const).flatMap((part) =>
      [...schemasIn(endpoint[part])]
        .filter(({ schema }) => !isBounded(schema))
        .map(({ path }) => `${name} ${part}${path}`),
    ),
  )
  expect(unbounded).toEqual([])
})
