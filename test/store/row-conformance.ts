/** What shapes of rows must read, and refuse, on every implementation of the SQL port. */
import { beforeAll, describe, expect, test } from "vitest"
import { z } from "zod"
import { type Column, column, fragment, joined, part, row, table } from "../../src/store/rows.ts"
import { type Get, empty } from "./conformance.ts"

const Point = column.json(z.object({ x: z.number() }))
const Mode = column.oneOf("prepaid", "postpaid")

export function testRows(get: Get): void {
  describe("rows", () => {
    const read: readonly [kind: string, column: Column<unknown>, value: string, expected: unknown][] = [
      ["text", column.text, "'a'::text", "a"],
      ["text", column.text, "'2026-02-28'::date", "2026-02-28"],
      ["boolean", column.boolean, "true", true],
      ["number", column.number, "0.5::float8", 0.5],
      ["integer", column.integer, "7::int4", 7],
      ["integer", column.integer, "7::int8", 7],
      ["integer", column.integer, "sum(n)", 3],
      ["bigint", column.bigint, "7::int8", 7n],
      ["bigint", column.bigint, "9223372036854775807::int8", 9_223_372_036_854_775_807n],
      ["bigint", column.bigint, "-sum(n)", -3n],
      [
        "timestamp",
        column.timestamp,
        "'2026-02-28T23:59:59.123Z'::timestamptz",
        new Date("2026-02-28T23:59:59.123Z"),
      ],
      ["bytes", column.bytes, "'\\x00ff'::bytea", new Uint8Array([0, 255])],
      ["any JSON", column.anyJson, `'[1, "a", null]'::jsonb`, [1, "a", null]],
      ["JSON", Point, `'{"x": 1}'::jsonb`, { x: 1 }],
      ["JSON as text", Point, `'{"x": 1}'::text`, { x: 1 }],
      ["one of some texts", Mode, "'prepaid'", "prepaid"],
      ["list of text", column.text.list(), "ARRAY['a', 'b,c']", ["a", "b,c"]],
      ["list of integers", column.integer.list(), "ARRAY[sum(n), 4]", [3, 4]],
      ["list of one of some texts", Mode.list(), "'{}'::text[]", []],
      ["null", column.text.nullable(), "NULL::text", null],
      ["null", Point.nullable(), "NULL::jsonb", null],
      ["what may be null", column.integer.nullable(), "7", 7],
    ]
    test.for(read)("a column of %s reads %2$s", async ([, column, value, expected]) => {
      const from = "FROM (VALUES (1::int8), (2::int8)) AS numbers(n)"
      const statement = part(`SELECT ${value} AS some_value, 1 AS more ${value.includes("sum") ? from : ""}`)
      expect(await row({ someValue: column }).all(get().database)`${statement}`).toStrictEqual([
        { someValue: expected },
      ])
      expect(await column.one(get().database)`${statement}`).toStrictEqual(expected)
    })

    const refused: readonly [column: Column<unknown>, value: string, problem: string][] = [
      [column.text, "7", "is number, which is not text"],
      [column.text, "NULL::text", "is null, which is not text"],
      [column.boolean, "'true'::text", "is string, which is not boolean"],
      [column.number, "7::int8", "is bigint, which is not number"],
      [column.number, "1.5::numeric", "is string, which is not number"],
      [column.integer, "0.5::float8", "is number, which is not integer"],
      [column.integer, "9223372036854775807::int8", "is bigint, which is not integer"],
      [column.integer, "NULL::int", "is null, which is not integer"],
      [column.bigint, "1.5::numeric", "is string, which is not bigint"],
      [column.timestamp, "'2026-02-28'::date", "is string, which is not timestamp"],
      [column.bytes, "'a'::text", "is string, which is not bytes"],
      [Mode, "'free'", "is string, which is not one of prepaid, postpaid"],
      [Point, `'{"x": "1"}'::jsonb`, "is Object, which is not JSON of its form"],
      [Point, "'{'::text", "is string, which is not JSON of its form"],
      [column.text.list(), "ARRAY[1, 2]", "is Array, which is not list of text"],
      [column.text.list(), "ARRAY['a', NULL]", "is Array, which is not list of text"],
      [column.text.nullable(), "7", "is number, which is not text or null"],
    ]
    test.for(refused)("%o is refused: %s", async ([holds, value, problem]) => {
      const reading = row({ id: column.text, someValue: holds }).all(
        get().database,
      )`SELECT 'a' AS id, ${part(value)} AS some_value`
      await expect(reading).rejects.toThrow(`Cannot read a row: the column some_value ${problem}`)
    })

    test("a column that the statement does not answer is refused by name", async () => {
      const shape = row({ id: column.text, createdAt: column.timestamp.nullable(), note: column.anyJson })
      const { database } = get()
      await expect(shape.first(database)`SELECT 'a' AS id, 1 AS note`).rejects.toThrow(
        "Cannot read a row: the column created_at is missing",
      )
      await expect(shape.first(database)`SELECT 'a' AS id, now() AS created_at`).rejects.toThrow(
        "Cannot read a row: the column note is missing",
      )
    })

    test("no row is null for `first` and an error for `one`", async () => {
      expect(await column.text.first(get().database)`SELECT 'a' WHERE false`).toBeNull()
      await expect(column.text.one(get().database)`SELECT 'a' WHERE false`).rejects.toThrow("answered none")
    })

    describe("of a table", () => {
      const Thing = table("things", {
        id: column.text,
        ownerIds: column.text.list(),
        points: column.json(z.array(z.object({ x: z.number() }))),
        note: column.anyJson.nullable(),
        limitCents: column.bigint.nullable(),
        version: column.bigint.withDefault(),
      })
      beforeAll(async () => {
        await empty(get())
        await get().database.script(`CREATE TABLE things (id text PRIMARY KEY, owner_ids text[] NOT NULL,
          points text NOT NULL, note jsonb, limit_cents bigint, version bigint NOT NULL DEFAULT 1)`)
      })

      test("what is inserted and updated is read back, lists as arrays and JSON as JSON", async () => {
        const { database } = get()
        const given = { id: "a", ownerIds: ["x"], points: [{ x: 1 }], note: ["n"] }
        const whole = { ...given, limitCents: null, version: 1n }
        expect(await Thing.insert(database, given)).toStrictEqual(whole)
        expect(await Thing.insertIfNew(database, given, "ON CONFLICT DO NOTHING")).toBeNull()
        const changes = { points: [], limitCents: 5n, note: undefined }
        const changed = { ...whole, points: [], limitCents: 5n, version: 2n }
        expect(await Thing.update(database, changes, "version = version + 1")`id = ${"a"}`).toStrictEqual(
          changed,
        )
        expect(await Thing.count(database)`version = ${2n}`).toBe(1)
        expect(await Thing.find(database)`id = ${"a"} FOR UPDATE`).toStrictEqual(changed)
        expect(await Thing.find(database)`id = ${"b"}`).toBeNull()
        expect(await Thing.list(database)`id >= ${"a"} ORDER BY id`).toStrictEqual([changed])
      })

      test("a fragment brings its values with it; what is not there is left out", async () => {
        const { database } = get()
        const first = fragment`id = ${"a"}`
        const more = joined([
          fragment`AND version >= ${1n}`,
          undefined,
          false,
          fragment`AND version <= ${9n}`,
        ])
        expect((await Thing.list(database)`${first} ${more} AND owner_ids = ${["x"]}`).length).toBe(1)
        expect(await Thing.count(database)`NOT (${first}) OR version > ${9n}`).toBe(0)
      })

      test("a field that the table does not have is refused", () => {
        const given = { id: "b", ownerIds: [], points: [], colour: "red" }
        expect(() => Thing.insertIfNew(get().database, given, "")).toThrow(
          "Cannot write to things: it has no colour",
        )
      })
    })
  })
}
