/**
 * Data of version 0.1.0 under this version: nothing is lost, in the embedded database and in PostgreSQL. The fixture was
 * made by scripts/upgrade-fixture.ts with that version and chDB, whose events are in its export alone; it was killed while its
 * journal was ahead of its ledger.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { openDatabase } from "../src/store/open.ts"
import { emptyDatabase } from "./postgres.ts"
import { startServer } from "./server.ts"

const fixture = join(import.meta.dirname, "fixtures", "umpire-0.1.0")
const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const testTimeoutMs = 300_000
/** Answered after the old version said how things stood, and before it was killed. */
const answeredLater = 2

interface Facts {
  readonly organization: string
  readonly account: string
  readonly response: string
  readonly organizations: readonly object[]
  readonly keys: readonly object[]
  readonly users: readonly object[]
  readonly ledger: { readonly entries?: readonly object[] } | readonly object[]
  /** Of the export, which has those too that cost nothing. */
  readonly exported_events: number
  readonly charged_events: number
}
const facts = JSON.parse(readFileSync(`${fixture}.json`, "utf8")) as Facts

const postgres = await emptyDatabase()
afterAll(async () => await postgres.drop())

const run = (args: readonly string[], env: Record<string, string>) =>
  spawnSync(process.execPath, [umpire, ...args], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ...env },
  })

const told = (args: readonly string[], env: Record<string, string>): unknown => {
  const { status, stdout, stderr } = run([...args, "--json"], env)
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}

describe.each([
  ["the embedded database", {}],
  ["PostgreSQL", { UMPIRE_DATABASE_URL: postgres.url }],
])("version 0.1.0 in %s", (_name, place) => {
  const dataDirectory = join(mkdtempSync(join(tmpdir(), "umpire-upgrade-")), "data")
  // The events of the fixture grow older than the 90 days that are kept without it.
  const env = { UMPIRE_DATA_DIR: dataDirectory, UMPIRE_ANALYTICS_RETENTION_DAYS: "36500", ...place }
  const url = "UMPIRE_DATABASE_URL" in place ? place.UMPIRE_DATABASE_URL : undefined

  test(
    "keeps every organization, user, key, credit, stored response and, with the export of its events, every request",
    async () => {
      told(["restore", `${fixture}.backup`], env)
      // Looked up before the start, which removes what is older than the organization keeps.
      const restored = await openDatabase({ data_dir: dataDirectory, database: { url, pool_max: 1 } })
      expect(await restored.query("SELECT id FROM stored_responses")).toEqual([{ id: facts.response }])
      await restored.close()
      mkdirSync(join(dataDirectory, "analytics", "chdb"), { recursive: true })
      const server = await startServer({ dataDirectory, env })
      expect(server.stderr()).toContain("events of version 0.1 are left behind")
      expect(told(["orgs", "list"], env)).toMatchObject(facts.organizations)
      expect(told(["users", "list"], env)).toMatchObject(facts.users)
      // Keys have limits since, which these are without.
      expect(withoutUse(told(["keys", "list", "-o", facts.organization], env))).toMatchObject(
        withoutUse(facts.keys),
      )
      expect(told(["audit", "verify"], env)).toEqual(
        facts.organizations.map(() => expect.objectContaining({ intact: true })),
      )
      // The journal has only what was answered after the export.
      expect(JSON.parse(run(["analytics", "verify", "--json"], env).stdout)).toMatchObject({
        ok: false,
        events: answeredLater,
        ledger: facts.charged_events + answeredLater,
      })
      // The second time counts nothing.
      for (let time = 0; time < 2; time++)
        expect(told(["analytics", "import", `${fixture}.parquet`], env)).toEqual({
          events: facts.exported_events,
        })
      expect(told(["analytics", "verify"], env)).toMatchObject({
        ok: true,
        events: facts.charged_events + answeredLater,
      })
      const path = `/v1/organizations/${facts.organization}/sequences?limit=1`
      const listed = await fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } })
      expect(await listed.json()).toMatchObject({ data: [{ tags: {}, attempts: [], engine_ms: null }] })
      expect(run(["billing", "verify"], env).status).toBe(0)
      const entries = entriesOf(told(["billing", "ledger", "--account", facts.account], env))
      const before = entriesOf(facts.ledger)
      expect(before.length).toBeGreaterThan(2)
      expect(entries).toEqual(expect.arrayContaining(before.map((entry) => expect.objectContaining(entry))))

      const decided = await server.post("/v1/decisions", { model: "umpire-nano", input: "a", questions: [] })
      expect(decided.status).toBe(200)
      expect(await server.stop()).toBe(0)
    },
    testTimeoutMs,
  )

  test(
    "a database that a newer version has changed is refused with a sentence",
    async () => {
      const database = await openDatabase({
        data_dir: dataDirectory,
        database: {
          url: "UMPIRE_DATABASE_URL" in place ? place.UMPIRE_DATABASE_URL : undefined,
          pool_max: 1,
        },
      })
      await database.query(
        "INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, '9999-of-tomorrow', '0')",
      )
      await database.close()
      const { status, stderr } = run(["serve", "--port", "0"], env)
      expect([status, stderr]).toEqual([
        1,
        "umpire serve: Cannot use this database: 9999-of-tomorrow was applied by a newer version; run that version or later\n",
      ])
    },
    testTimeoutMs,
  )
})

/** The request above and those of the old version were made with a key, whose last use moves. */
function withoutUse(keys: unknown): object[] {
  // What `umpire keys list` prints.
  return (keys as object[]).map((key) => ({ ...key, last_used_at: null }))
}

const entriesOf = (ledger: unknown): readonly object[] =>
  Array.isArray(ledger) ? (ledger as object[]) : ((ledger as { entries?: object[] }).entries ?? [])
