/** `umpire label` against a gateway with a ledger: formats, databases, refusals, kills, and one charge for each text. */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { DuckDBInstance } from "@duckdb/node-api"
import { afterAll, beforeAll, expect, test } from "vitest"
import { openPostgres } from "../src/store/postgres.ts"
import { TestGateway, prepareAccount, readBooks } from "./gateways.ts"
import { openLabelGate } from "./label-gate.ts"
import { checkEachChargedOnce, labelEnv, labelUnderKills } from "./label-kill.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { bootstrapKey } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const folder = mkdtempSync(join(tmpdir(), "umpire-label-"))
const killedRows = 900

let database: FreshDatabase
let gateway: TestGateway
/** Requests that `settledCharges` made itself. */
let marks = 0

beforeAll(async () => {
  database = await freshDatabase()
  // Slow enough that some answers are under way when a run is killed.
  const env = { TEST_WORK_MS: "30" }
  gateway = await TestGateway.start({
    databaseUrl: database.url,
    dataDirectory: join(folder, "gateway"),
    env,
  })
  await prepareAccount(database.url, 1_000_000_000_000n)
})
afterAll(async () => {
  await gateway.end("SIGKILL")
  await database.drop()
  rmSync(folder, { recursive: true })
})

interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

async function label(args: readonly string[], stdin = "", url = gateway.url): Promise<Ran> {
  const env = { ...labelEnv({ url, key: bootstrapKey }), DATABASE_URL: database.url }
  const run = promisify(execFile)(process.execPath, [umpire, "label", "--model", "test", ...args], {
    env,
    cwd: folder,
  })
  run.child.stdin?.end(stdin)
  return await run.then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({ ...error, status: error.code }),
  )
}

const chargesOf = async (): Promise<number> => (await readBooks(database.url)).charges.size

// First, while nothing is charged.
test("a run that is killed three times is finished with one charge for every row", async () => {
  const gate = await openLabelGate(gateway.url)
  const server = { url: gate.url, key: bootstrapKey, model: "test", databaseUrl: database.url }
  mkdirSync(join(folder, "killed"))
  await labelUnderKills(server, {
    folder: join(folder, "killed"),
    rows: killedRows,
    kills: 3,
    timeoutMs: 600_000,
    gate,
  })
  await gate.close()
  await expect.poll(chargesOf).toBeGreaterThanOrEqual(killedRows)
  await checkEachChargedOnce(server, killedRows)
})

test("a request repeated under its Idempotency-Key is answered again and charged once", async () => {
  const body = { model: "test", input: "once", questions: [{ type: "predicate", instructions: "?" }] }
  const ask = async (input: string): Promise<Response> =>
    await fetch(`${gateway.url}/v1/decisions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${bootstrapKey}`,
        "content-type": "application/json",
        "idempotency-key": "repeated",
      },
      body: JSON.stringify({ ...body, input }),
    })
  const first = await ask("once")
  const second = await ask("once")
  expect([first.headers.get("idempotent-replayed"), second.headers.get("idempotent-replayed")]).toEqual([
    null,
    "true",
  ])
  expect(first.headers.get("x-umpire-sequence")).toMatch(/^seq_/)
  expect(second.headers.get("x-umpire-sequence")).toBe(first.headers.get("x-umpire-sequence"))
  expect(await second.text()).toBe(await first.text())
  const other = await ask("something else")
  expect([other.status, await other.json()]).toMatchObject([
    422,
    { error: { code: "idempotency_key_reused" } },
  ])
  // Refused before it ran, and on record like any other refusal.
  expect(other.headers.get("x-umpire-sequence")).toMatch(/^seq_/)
  const seqId = first.headers.get("x-umpire-sequence") ?? ""
  await expect.poll(async () => (await readBooks(database.url)).charges.has(seqId)).toBe(true)
})

test("equal texts are asked once, a blank one is not asked, and columns and order stay", async () => {
  writeFileSync(
    join(folder, "in.csv"),
    'k,text,a\n1,"same, ""text""",x\n2,,y\n3,"same, ""text""",z\n4,"two\nlines",\n',
  )
  const ran = await label(["in.csv", "--yes-no", "Is it?", "--out", "out.jsonl", "--json"])
  expect(JSON.parse(ran.stdout)).toEqual({ rows: 4, blank: 1, distinct: 2, failed: 0, out: "out.jsonl" })
  const rows = linesOf("out.jsonl")
  expect(rows.map(({ k, text, a, answer }) => [k, text, a, answer])).toEqual([
    ["1", 'same, "text"', "x", "yes"],
    ["2", null, "y", null],
    ["3", 'same, "text"', "z", "yes"],
    ["4", "two\nlines", null, "yes"],
  ])
  expect(rows[1]?.["error"]).toBe("The text is blank, or not UTF-8")
})

test("a table in Latin-1 is read, and rows without anything in their cells are none", async () => {
  writeFileSync(
    join(folder, "latin.csv"),
    Buffer.from("text;team\nGrüße aus Köln;a\n;\n  ; \n;b\n", "latin1"),
  )
  const ran = await label(["latin.csv", "--yes-no", "Is it?", "--out", "latin.jsonl", "--json"])
  expect(JSON.parse(ran.stdout)).toEqual({ rows: 2, blank: 1, distinct: 1, failed: 0, out: "latin.jsonl" })
  expect(linesOf("latin.jsonl").map(({ text, team }) => [text, team])).toEqual([
    ["Grüße aus Köln", "a"],
    [null, "b"],
  ])
  // A broken character beside whole ones is a mistake and no other encoding.
  writeFileSync(
    join(folder, "broken.csv"),
    Buffer.concat([Buffer.from("text\nGrüße "), Buffer.from([0xe9, 0x0a])]),
  )
  const broken = await label(["broken.csv", "--yes-no", "Is it?", "--out", "broken.jsonl"])
  expect(broken.status).not.toBe(0)
})

test("questions with names make columns, below the threshold is abstain, and formats convert", async () => {
  writeFileSync(
    join(folder, "questions.yaml"),
    "name: q\nmodel: test\nquestions:\n" +
      "  - {type: predicate, name: late, instructions: Is it late?, threshold: 0.9}\n" +
      "  - {type: score, name: tone, instructions: How angry?, levels: [{label: calm}, {label: furious}]}\n",
  )
  writeFileSync(
    join(folder, "in.jsonl"),
    '{"id":1,"at":"2026-01-01T00:00:00Z","text":"a","n":{"x":[1],"DATE":"2026-01-01","UUID, DATE":["2026-01-01"]}}\n',
  )
  expect((await label(["in.jsonl", "-q", "questions.yaml", "--to", "parquet"])).status).toBe(0)
  expect((await label(["in.labelled.parquet", "-y", "?", "-o", "in.tsv", "--prefix", "b_"])).status).toBe(0)
  const [head = "", row = ""] = readFileSync(join(folder, "in.tsv"), "utf8").split("\n")
  const cells = Object.fromEntries(head.split("\t").map((name, at) => [name, row.split("\t")[at]]))
  expect(cells).toMatchObject({
    id: "1",
    at: "2026-01-01T00:00:00Z",
    n: "{'x': [1], 'DATE': 2026-01-01, 'UUID, DATE': [2026-01-01]}",
    late_answer: "yes",
    late_probability: "0.5",
    late_verdict: "abstain",
    tone_answer: "calm",
    tone_score: "0.5",
    tone_verdict: "calm",
    b_verdict: "yes",
  })
})

test("lines of standard input and a directory of texts are rows", async () => {
  const piped = await label(["-y", "?", "--out", "-"], "first\nsecond\n")
  expect(piped.stdout.split("\n").map((line) => line.split(",")[0])).toEqual(["text", "first", "second", ""])
  mkdirSync(join(folder, "letters"))
  writeFileSync(join(folder, "letters", "b.txt"), "B")
  writeFileSync(join(folder, "letters", "a.txt"), Buffer.from([0xff, 0xfe]))
  await label(["letters", "-y", "?", "--to", "jsonl"])
  const rows = linesOf("letters.labelled.jsonl")
  expect(rows.map(({ file, answer }) => [file, answer])).toEqual([
    ["a.txt", null],
    ["b.txt", "yes"],
  ])
})

test("a row that is refused has its error, does not stop the rest, and is asked again by the same command", async () => {
  writeFileSync(join(folder, "long.csv"), `text\nfirst\n${"x".repeat(4 * 1024 * 1024 + 1)}\nlast\n`)
  const args = ["long.csv", "-y", "?", "--to", "jsonl"]
  const before = await settledCharges()
  const ran = await label(args)
  expect([ran.status, ran.stdout]).toEqual([
    1,
    "3 rows, 3 different texts, 0 without a text, 1 failed: written to long.labelled.jsonl\n",
  ])
  const rows = linesOf("long.labelled.jsonl")
  expect(rows.map(({ answer }) => answer)).toEqual(["yes", null, "yes"])
  expect(rows[1]?.["error"]).toMatch(/4194305 bytes; at most 4194304/)
  const state = join(folder, "long.labelled.jsonl.label-state")
  const [about = "", ...answers] = readFileSync(state, "utf8").split("\n")
  writeFileSync(state, [about, '{"k":"torn","t":1,"a":[["y', ...answers].join("\n"))
  const again = await label(args)
  expect([again.status, again.stderr]).toEqual([1, expect.stringMatching(/^3\/3 texts/)])
  expect(await settledCharges()).toBe(before + 2)
  const other = await label(["long.csv", "-y", "another?", "--to", "jsonl"])
  expect([other.status, other.stderr]).toEqual([2, expect.stringContaining("begin again with --restart")])
  expect(existsSync(join(folder, "long.labelled.jsonl.label-rows"))).toBe(false)
})

test("what cannot be done is said in a sentence before anything is asked", async () => {
  writeFileSync(join(folder, "two.csv"), "a,b\n1,2\n")
  writeFileSync(join(folder, "open.csv"), 'text\n"never closed\n')
  writeFileSync(join(folder, "old.xls"), Buffer.from("d0cf11e0a1b11ae1", "hex"))
  const [noText, sheet, broken, into, none] = await Promise.all([
    label(["two.csv", "-y", "?", "-o", "1.csv"]),
    label(["old.xls", "-y", "?"]),
    label(["open.csv", "-y", "?"]),
    label(["two.csv", "-y", "?", "-t", "a", "--into", "t"]),
    label(["two.csv", "-t", "a"]),
  ])
  expect(noText.stderr).toMatch(/which column is the text\?.*a, b/)
  expect(sheet.stderr).toMatch(/old.xls is an Excel file. Save the sheet as CSV: in Excel, File, Save As/)
  expect(broken.stderr).toMatch(/cannot read line 2: Value with unterminated quote/)
  expect(into.stderr).toMatch(/--into names a table/)
  expect(none.stderr).toMatch(/no question/)
})

test("a run that is killed leaves no half of a file", async () => {
  const count = 400
  const texts = Array.from({ length: count }, (_, n) => `row ${n} of many`)
  writeFileSync(join(folder, "many.csv"), ["text", ...texts, ""].join("\n"))
  const out = join(folder, "many.labelled.csv")
  const before = await settledCharges()
  // It does not end before a busy machine comes to kill it.
  const gate = await openLabelGate(gateway.url)
  gate.allow(100)
  const child = spawn(process.execPath, [umpire, "label", "--model", "test", "many.csv", "-y", "?"], {
    env: labelEnv({ url: gate.url, key: bootstrapKey }),
    cwd: folder,
    stdio: "ignore",
  })
  const answered = (): number => {
    const state = `${out}.label-state`
    return existsSync(state) ? readFileSync(state, "utf8").split("\n").length - 2 : 0
  }
  await expect.poll(() => answered() > 20 || child.exitCode !== null, { interval: 10 }).toBe(true)
  child.kill("SIGKILL")
  await once(child, "exit")
  gate.allow(Infinity)
  expect([child.signalCode, existsSync(out)]).toEqual(["SIGKILL", false])
  // As if it had been killed while it wrote.
  writeFileSync(`${out}.part`, "half")
  const ran = await label(["many.csv", "-y", "?"], "", gate.url)
  await gate.close()
  expect([ran.status, existsSync(`${out}.part`)]).toEqual([0, false])
  const rows = readFileSync(out, "utf8").trim().split("\n").slice(1)
  expect(rows.map((row) => row.split(",").slice(0, 2))).toEqual(texts.map((text) => [text, "yes"]))
  expect(await settledCharges()).toBe(before + count)
})

test("rows of PostgreSQL become a table of it, with their types and the answers", async () => {
  const sql = await openPostgres({ url: database.url, connectionsMax: 1 })
  await sql.query(
    "CREATE TABLE tickets AS SELECT n AS id, 'ticket ' || n AS body, now() AS at, ARRAY[n] AS list, jsonb_build_object('n', n) AS doc FROM generate_series(1, 50) n",
  )
  const args = [
    "--postgres",
    "select * from tickets order by id -- all",
    "-t",
    "body",
    "-y",
    "?",
    "--into",
    "labels",
  ]
  const ran = await label(args)
  expect([ran.status, ran.stderr]).toEqual([0, expect.stringContaining("50/50")])
  const rows = await sql.query(
    `SELECT count(*)::int AS count, count(*) FILTER (WHERE l.at = t.at AND l.body = t.body AND l.list = t.list AND l.doc = t.doc AND l.verdict = 'yes'
       AND l.probability = 0.5 AND l.error IS NULL)::int AS equal FROM labels l JOIN tickets t USING (id)`,
  )
  expect(rows).toEqual([{ count: 50, equal: 50 }])
  const again = await label(args)
  expect([again.status, again.stderr]).toEqual([
    2,
    "umpire label: the table labels exists: name another by --into, or drop it\n",
  ])
  await sql.close()
})

test("a table that PostgreSQL would not take is refused before anything is asked, and names of 63 bytes are written", async () => {
  const sql = await openPostgres({ url: database.url, connectionsMax: 1 })
  const before = await settledCharges()
  expect((await intoPostgres("fits", "n".repeat(52))).stderr).toMatch(
    /n_probability has 64 bytes; PostgreSQL allows 63/,
  )
  expect((await intoPostgres("nowhere.labels", "n")).stderr).toBe(
    'umpire label: PostgreSQL: schema "nowhere" does not exist\n',
  )
  expect(await settledCharges()).toBe(before)
  const name = "n".repeat(51)
  expect((await intoPostgres("fits", name)).status).toBe(0)
  expect(await sql.query(`SELECT ${name}_probability AS p FROM fits`)).toEqual([{ p: 0.5 }])
  await sql.close()
})

/** One row, and one question of that name. */
async function intoPostgres(into: string, name: string): Promise<Ran> {
  writeFileSync(join(folder, "named.yaml"), `- {type: predicate, name: ${name}, instructions: Is it?}\n`)
  return await label(["--postgres", "select 'one' as body", "-q", "named.yaml", "--into", into])
}

test("rows of a DuckDB database become a table of it", async () => {
  const path = join(folder, "shop.duckdb")
  const run = async (statement: string): Promise<unknown[][]> => {
    const instance = await DuckDBInstance.create(path)
    const connection = await instance.connect()
    const rows = (await connection.runAndReadAll(statement)).getRowsJS()
    connection.closeSync()
    instance.closeSync()
    return rows
  }
  await run("CREATE TABLE tickets AS SELECT n AS id, 'ticket ' || n AS body FROM range(50) r(n)")
  const args = [
    "shop.duckdb",
    "--duckdb",
    "select * from tickets -- all",
    "-t",
    "body",
    "-y",
    "?",
    "--into",
    "labels",
  ]
  expect((await label(args)).stderr).toMatch(/50\/50/)
  expect(
    await run(
      "SELECT count(*)::int, count(*) FILTER (verdict = 'yes')::int FROM labels JOIN tickets USING (id, body)",
    ),
  ).toEqual([[50, 50]])
  await run("CREATE VIEW seen AS SELECT 1")
  for (const taken of ["Labels", "seen"])
    expect((await label([...args, "--into", taken])).stderr).toContain(`the table ${taken} exists`)
  await run("CREATE SCHEMA reports")
  expect((await label([...args, "--into", "reports.labels"])).status).toBe(0)
  expect(await run("SELECT count(*)::int FROM reports.labels")).toEqual([[50]])
  expect((await label([...args, "--into", "nowhere.labels"])).stderr).toContain("no schema nowhere")
})

test("a dry run counts without asking and leaves nothing behind", async () => {
  writeFileSync(join(folder, "dry.csv"), "text\none\none\ntwo\n")
  const before = await settledCharges()
  const ran = await label(["dry.csv", "-y", "Is it?", "--dry-run", "--json"])
  expect(JSON.parse(ran.stdout)).toMatchObject({ rows: 3, distinct: 2, pending: 2, tokens_exact: false })
  expect(existsSync(join(folder, "dry.labelled.csv.label-state"))).toBe(false)
  expect(await settledCharges()).toBe(before)
})

function linesOf(file: string): Record<string, unknown>[] {
  const lines = readFileSync(join(folder, file), "utf8").trimEnd().split("\n")
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** The ledger follows the journal: a request of our own, charged after all before it, says that it has caught up. */
async function settledCharges(): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/decisions`, {
    method: "POST",
    headers: { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "test",
      input: "mark",
      questions: [{ type: "predicate", instructions: "?" }],
    }),
  })
  const seqId = response.headers.get("x-umpire-sequence") ?? ""
  await expect.poll(async () => (await readBooks(database.url)).charges.has(seqId)).toBe(true)
  marks++
  return (await chargesOf()) - marks
}
