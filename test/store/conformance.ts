/** What every implementation of the SQL port must do; each implementation's tests register these. */
import { beforeEach, describe, expect, test } from "vitest"
import {
  migrate,
  migrationStatus,
  readMigrations,
  SchemaMismatch,
  toMigration,
} from "../../src/store/migrate.ts"
import { isUniqueViolation, SqlError, type Database, type SqlValue } from "../../src/store/sql.ts"
import { column, part, row } from "../../src/store/rows.ts"

export interface Target {
  readonly name: string
  /** An empty database. */
  open(): Promise<OpenTarget>
}

export interface OpenTarget {
  readonly database: Database
  /** The same database through another connection where the implementation has several, else `database` itself. */
  readonly peer: Database
  close(): Promise<void>
}

/** Opening takes seconds on PGlite, so what is open is opened once and emptied in between. */
export type Get = () => OpenTarget

export function testSqlPort(get: Get): void {
  describe("values", () => testValues(get))
  describe("transactions", () => testTransactions(get))
  describe("notifications", () => testNotifications(get))
  describe("migrations", () => testMigrations(get))
}

export async function empty({ database }: OpenTarget): Promise<void> {
  await database.script("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
}

function testValues(get: Get): void {
  const roundTrips: readonly [type: string, sent: SqlValue, expected?: unknown][] = [
    ["int8", 9_223_372_036_854_775_807n],
    ["int8", -9_223_372_036_854_775_808n],
    ["int4", 7],
    ["float8", 0.1],
    ["numeric", "12345678901234567890.12345678901234567890"],
    ["text", "naïve 🦉 'quoted' \\ {braces}"],
    ["text", ""],
    ["bool", false],
    ["timestamptz", new Date("2026-02-28T23:59:59.123Z")],
    ["timestamptz", new Date("1970-01-01T00:00:00.000Z")],
    ["date", "2026-02-28"],
    ["bytea", new Uint8Array([0, 1, 127, 128, 255])],
    ["bytea", new Uint8Array(0)],
    ["jsonb", { nested: { list: [1, "two", null], yes: true } }],
    ["jsonb", '[1,{"a":[]}]', [1, { a: [] }]],
    ["text[]", ["plain", "with,comma", 'with"quote', "", "null", "{}"]],
    ["text[]", []],
    ["int8[]", ["1", "9223372036854775807"], [1n, 9_223_372_036_854_775_807n]],
    ["numeric[]", ["1.50", "-2"], ["1.50", "-2"]],
    ["text", null],
    ["jsonb", null],
  ]
  test.for(roundTrips)(
    "a parameter of type %s comes back as it was sent: %s",
    async ([type, sent, expected]) => {
      const [found] = await get().database.query(`SELECT $1::${type} AS value`, [sent])
      expect(found?.["value"]).toStrictEqual(expected === undefined ? sent : expected)
    },
  )

  test("a value is never read as part of the statement", async () => {
    const hostile = "'; DROP TABLE users; --"
    expect(await get().database.query("SELECT $1::text AS value", [hostile])).toEqual([{ value: hostile }])
  })

  test("a query takes one statement only", async () => {
    await expect(get().database.query("SELECT 1; SELECT 2")).rejects.toBeInstanceOf(SqlError)
  })

  test("times are those of UTC whatever the machine's zone", async () => {
    expect(await get().database.query("SELECT current_setting('TimeZone') AS zone")).toEqual([
      { zone: "UTC" },
    ])
  })

  test("a refused statement says its state, and a unique violation its constraint", async () => {
    const { database } = get()
    await database.script("CREATE TABLE unique_numbers (n int CONSTRAINT only_once UNIQUE)")
    await database.query("INSERT INTO unique_numbers VALUES (1)")
    const error: unknown = await database
      .query("INSERT INTO unique_numbers VALUES (1)")
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: "SqlError", state: "23505", constraint: "only_once" })
    expect(isUniqueViolation(error, "only_once")).toBe(true)
    expect(isUniqueViolation(error, "another")).toBe(false)
    await expect(database.query("SELECT * FROM nowhere")).rejects.toMatchObject({ state: "42P01" })
  })
}

function testTransactions(get: Get): void {
  const countOf = async (table: string): Promise<number> => {
    const [found] = await row({ count: column.integer }).all(
      get().database,
    )`SELECT count(*)::int AS count FROM ${part(table)}`
    return found?.count ?? -1
  }

  test("a transaction that resolves is kept, one that throws leaves nothing", async () => {
    const { database } = get()
    await database.script("CREATE TABLE kept (n int)")
    await expect(
      database.transaction((sql) => sql.query("INSERT INTO kept VALUES (1) RETURNING n")),
    ).resolves.toEqual([{ n: 1 }])
    const failing = database.transaction(async (sql) => {
      await sql.query("INSERT INTO kept VALUES (2)")
      throw new Error("on purpose")
    })
    await expect(failing).rejects.toThrow("on purpose")
    expect(await countOf("kept")).toBe(1)
  })

  test("a transaction that ignored a failed statement is reported, not silently rolled back", async () => {
    const { database } = get()
    await database.script("CREATE TABLE ignored (n int)")
    const careless = database.transaction(async (sql) => {
      await sql.query("INSERT INTO ignored VALUES (1)")
      await sql.query("SELECT * FROM nowhere").catch(() => undefined)
    })
    await expect(careless).rejects.toThrow("Cannot commit")
    expect(await countOf("ignored")).toBe(0)
  })

  test("what a transaction has not committed is invisible outside it, and inside it is not", async () => {
    const { database, peer } = get()
    await database.script("CREATE TABLE hidden (n int)")
    const started = Promise.withResolvers<void>()
    const looked = Promise.withResolvers<void>()
    const writing = database.transaction(async (sql) => {
      await sql.query("INSERT INTO hidden VALUES (1)")
      expect(await sql.query("SELECT n FROM hidden")).toEqual([{ n: 1 }])
      started.resolve()
      // Where there is one connection the reader waits for the end of the transaction, so it must not be waited for.
      if (peer !== database) await looked.promise
    })
    await started.promise
    const seen = peer.query("SELECT n FROM hidden").finally(() => looked.resolve())
    expect(await seen).toHaveLength(peer === database ? 1 : 0)
    await writing
    expect(await peer.query("SELECT n FROM hidden")).toHaveLength(1)
  })

  test("fifty transactions at once that read, lock and add to one row lose nothing", async () => {
    const { database, peer } = get()
    await database.script("CREATE TABLE counter (n int); INSERT INTO counter VALUES (0)")
    await Promise.all(Array.from({ length: 50 }, (_, index) => increment(index % 2 === 0 ? database : peer)))
    expect(await database.query("SELECT n FROM counter")).toEqual([{ n: 50 }])
  })

  test("statements of two transactions never mix", async () => {
    const { database } = get()
    await database.script("CREATE TABLE pairs (owner text, n int)")
    const writePair = async (owner: string): Promise<number> =>
      database.transaction(async (sql) => {
        await sql.query("INSERT INTO pairs VALUES ($1, 1)", [owner])
        const [found] = await row({ others: column.integer }).all(
          sql,
        )`SELECT count(*)::int AS others FROM pairs
          WHERE owner <> ${owner} AND xmin = pg_current_xact_id()::xid`
        await sql.query("INSERT INTO pairs VALUES ($1, 2)", [owner])
        return found?.others ?? -1
      })
    const strangers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => writePair(`writer ${index}`)),
    )
    expect(strangers).toEqual(Array.from({ length: 10 }, () => 0))
    expect(await countOf("pairs")).toBe(20)
  })

  test("the database refuses to be used inside its own transaction, and can be used after it", async () => {
    const { database } = get()
    const wrong = database.transaction(() => database.query("SELECT 1"))
    await expect(wrong).rejects.toThrow("use the handle")
    await expect(database.transaction(() => database.transaction(async () => 1))).rejects.toThrow(
      "use the handle",
    )
    expect(await database.query("SELECT 1 AS one")).toEqual([{ one: 1 }])
  })

  test("the handle of a transaction is of no use after its end", async () => {
    const leaked = await get().database.transaction(async (sql) => ({ sql }))
    await expect(leaked.sql.query("SELECT 1")).rejects.toThrow("it has ended")
  })

  test("a serialization failure is retried until the work succeeds, and not for ever", async () => {
    const { database } = get()
    const fail = "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = 'serialization_failure'; END $$"
    let attempts = 0
    const succeedAtLast = database.transaction(async (sql) => {
      if (++attempts < 3) await sql.query(fail)
      return attempts
    })
    await expect(succeedAtLast).resolves.toBe(3)
    let endless = 0
    const neverSucceeds = database.transaction(async (sql) => {
      endless++
      await sql.query(fail)
    })
    await expect(neverSucceeds).rejects.toMatchObject({ state: "40001" })
    expect(endless).toBe(10)
  })

  test("another failure is not retried", async () => {
    let attempts = 0
    const failing = get().database.transaction(async (sql) => {
      attempts++
      await sql.query("SELECT * FROM nowhere")
    })
    await expect(failing).rejects.toBeInstanceOf(SqlError)
    expect(attempts).toBe(1)
  })

  test("a script is done wholly or not at all", async () => {
    const { database } = get()
    await expect(database.script("CREATE TABLE half (n int); SELECT * FROM nowhere")).rejects.toBeInstanceOf(
      SqlError,
    )
    await expect(database.query("SELECT * FROM half")).rejects.toMatchObject({ state: "42P01" })
  })
}

function testNotifications(get: Get): void {
  test("a listener hears what is sent on its channel, when it is committed, until it stops", async () => {
    const { database, peer } = get()
    const heard: string[] = []
    const last = Promise.withResolvers<void>()
    const stop = await database.listen("news", (payload) => heard.push(payload))
    const stopLast = await database.listen("ending", () => last.resolve())
    await peer.query("SELECT pg_notify('news', 'one')")
    const undone = peer.transaction(async (sql) => {
      await sql.query("SELECT pg_notify('news', 'never committed')")
      throw new Error("on purpose")
    })
    await expect(undone).rejects.toThrow("on purpose")
    await peer.query("SELECT pg_notify('elsewhere', 'not ours')")
    await peer.query("SELECT pg_notify('news', 'two')")
    // Notifications arrive in order, so the ones before it are in when this one is.
    await peer.query("SELECT pg_notify('ending', '')")
    await last.promise
    expect(heard).toEqual(["one", "two"])

    await stop()
    const after = Promise.withResolvers<void>()
    const stopAfter = await database.listen("ending", () => after.resolve())
    await peer.query("SELECT pg_notify('news', 'three')")
    await peer.query("SELECT pg_notify('ending', '')")
    await after.promise
    expect(heard).toEqual(["one", "two"])
    await stopLast()
    await stopAfter()
  })

  test("a channel that is not a plain identifier is refused", async () => {
    await expect(get().database.listen('x"; DROP TABLE users; --', () => undefined)).rejects.toThrow(
      "Cannot listen",
    )
  })
}

function testMigrations(get: Get): void {
  beforeEach(() => empty(get()))
  const first = toMigration(1, "first", "CREATE TABLE one (n int); INSERT INTO one VALUES (1)")
  const second = toMigration(2, "second", "ALTER TABLE one ADD COLUMN m int")

  test("the migrations of this code apply once, in order, and their status says so", async () => {
    const { database } = get()
    const names = (await readMigrations()).map(({ name }) => name)
    expect((await migrationStatus(database)).map(({ state }) => state)).toEqual(names.map(() => "pending"))
    expect(await migrate(database)).toEqual(names)
    expect(await migrate(database)).toEqual([])
    expect((await migrationStatus(database)).map(({ state }) => state)).toEqual(names.map(() => "applied"))
  })

  test("several that migrate at once apply each migration once", async () => {
    const { database, peer } = get()
    const runs = [database, peer, database, peer].map((each) => migrate(each, [first, second]))
    expect((await Promise.all(runs)).flat().toSorted()).toEqual([first.name, second.name])
    expect(await database.query("SELECT n FROM one")).toEqual([{ n: 1 }])
  })

  test("a migration that fails leaves nothing behind, and those before it stay", async () => {
    const { database } = get()
    const broken = toMigration(2, "broken", "CREATE TABLE two (n int); SELECT * FROM nowhere")
    await expect(migrate(database, [first, broken])).rejects.toMatchObject({ state: "42P01" })
    await expect(database.query("SELECT * FROM two")).rejects.toMatchObject({ state: "42P01" })
    expect((await migrationStatus(database, [first, broken])).map(({ state }) => state)).toEqual([
      "applied",
      "pending",
    ])
  })

  test("a migration whose text was changed after it was applied is refused, and nothing more is applied", async () => {
    const { database } = get()
    await migrate(database, [first])
    const changed = toMigration(1, "first", `${first.text};`)
    const error: unknown = await migrate(database, [changed, second]).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SchemaMismatch)
    expect(String(error)).toContain("0001-first was applied with another text")
    const states = (await migrationStatus(database, [changed, second])).map(({ state }) => state)
    expect(states).toEqual(["changed", "pending"])
  })

  test("a database that newer code has migrated is refused", async () => {
    const { database } = get()
    await migrate(database, [first, second])
    await expect(migrate(database, [first])).rejects.toThrow("0002-second was applied by a newer version")
    expect((await migrationStatus(database, [first])).map(({ state }) => state)).toEqual([
      "applied",
      "unknown",
    ])
  })
}

function increment(on: Database): Promise<void> {
  return on.transaction(async (sql) => {
    const [found] = await row({ n: column.integer }).all(sql)`SELECT n FROM counter FOR UPDATE`
    await sql.query("UPDATE counter SET n = $1", [(found?.n ?? 0) + 1])
  })
}
