/** `umpire eval` against a running server: measures, reports, comparison, calibration that a request can name. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { prepareDirectory } from "./database.ts"
import { type TestServer, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const folder = mkdtempSync(join(tmpdir(), "umpire-eval-"))
const config = join(folder, "umpire.yaml")
const rows = join(folder, "tickets.jsonl")

const refund = "Does the customer ask for a refund?"
const topic = { question: "What is the message about?", options: ["delivery", "billing", "password"] }
const anger = { question: "How angry is the writer?", options: ["calm", "annoyed", "furious"], scale: true }
const labelled = [
  {
    text: "I was charged twice. Give me my money back.",
    question: refund,
    options: ["yes", "no"],
    gold: "yes",
  },
  { text: "Thank you, the lamp is lovely.", question: refund, options: ["yes", "no"], gold: "no" },
  { text: "Please refund my last order.", question: refund, options: ["no", "yes"], gold: "yes" },
  { text: "What are your opening hours?", question: refund, options: ["yes", "no"], gold: "no" },
  { text: "The parcel has not arrived yet.", ...topic, gold: "delivery" },
  {
    text: "I cannot sign in, I forgot my password.",
    ...topic,
    gold: "password",
    descriptions: { password: "signing in" },
  },
  { text: "The invoice shows the wrong amount.", ...topic, gold: "billing" },
  { text: "This is the worst service I have ever seen!!!", ...anger, gold: "furious" },
]

let server: TestServer
beforeAll(async () => {
  writeFileSync(config, "# kept\nserver:\n  port: 8484\n")
  writeFileSync(rows, labelled.map((row) => JSON.stringify(row)).join("\n"))
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
})
afterAll(async () => {
  await server.stop()
})

interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

const run = (...args: string[]): Ran => runAt(server.url, ...args)

/** The set is asked for at `url`; the data directory is that of `server`. */
function runAt(url: string, ...args: string[]): Ran {
  const env = {
    PATH: process.env["PATH"] ?? "",
    UMPIRE_URL: url,
    UMPIRE_API_KEY: server.key,
    UMPIRE_DATA_DIR: server.dataDirectory,
    UMPIRE_CONFIG: config,
  }
  return spawnSync(process.execPath, [umpire, "eval", ...args], { encoding: "utf8", env, cwd: folder })
}

test("both endpoints give the same measures, and reports are written", () => {
  const { stdout, stderr } = run(rows, "--json", "--out", "report.html")
  expect(stderr).toContain("Written to report.html\n")
  const decisions = JSON.parse(stdout) as Record<string, unknown>[]
  const systemOne = JSON.parse(
    run(rows, "--json", "--endpoint", "systemone", "--out", "report.svg").stdout,
  ) as Record<string, unknown>[]
  expect(decisions[0]).toMatchObject({
    set: "tickets",
    model: "umpire-decide",
    count: 8,
    reliability: expect.any(Array),
  })
  expect(decisions[0]?.["accuracy"]).toBeGreaterThan(0.5)
  expect(systemOne[0]?.["accuracy"]).toBe(decisions[0]?.["accuracy"])
  expect(readFileSync(join(folder, "report.html"), "utf8")).toContain("Worst mistakes")
  expect(readFileSync(join(folder, "report.svg"), "utf8")).toMatch(/^<svg [\s\S]*<circle [\s\S]*<\/svg>\n$/)
})

test("two models stand side by side in one table", () => {
  const { stdout } = run(rows, "--rows", "2", "--model", "umpire-decide", "--model", "umpire-decide")
  expect(stdout.match(/^tickets +umpire-decide +decisions +2 /gm)).toHaveLength(2)
  expect(stdout).toContain("right \\ answered")
})

async function probability(model: string): Promise<number> {
  const questions = [{ type: "predicate", instructions: refund }]
  const reply = await server.post("/v1/decisions", { model, input: labelled[1]?.text, questions })
  const { answers } = (await reply.json()) as { answers: { probability: number }[] }
  return answers[0]?.probability ?? NaN
}

const many = join(folder, "many.jsonl")
/** Some labels are wrong, so that no calibration makes all of them certain. */
const calibrationRows = Array.from({ length: 24 }, (_, n) => {
  const row = labelled[n % labelled.length]
  const wrong = row?.options.find((option) => option !== row.gold)
  return { ...row, text: `${row?.text} Order ${n}.`, gold: n % 5 === 0 ? wrong : row?.gold }
})
const writeRows = (file: string, found: readonly unknown[]): void =>
  writeFileSync(file, found.map((row) => JSON.stringify(row)).join("\n"))

test("a calibration is fitted, saved as a question set, and named by a request", async () => {
  writeRows(many, calibrationRows)
  const { stdout, stderr } = run(many, "--calibrate", "tickets")
  const [, temperature, bias] =
    /temperature (\d+\.\d+), bias (-?\d+\.\d+); log loss \d\.\d+ -> \d\.\d+ on 24 rows/.exec(stdout) ?? []
  expect(Number(temperature), stderr).toBeGreaterThan(0)
  expect(stdout).toContain("set:tickets")
  const plain = await probability("umpire-decide")
  const margin = Math.log(plain / (1 - plain)) / Number(temperature) + Number(bias)
  expect(await probability("set:tickets")).toBeCloseTo(1 / (1 + Math.exp(-margin)), 2)
})

test("a set that exists keeps its questions and its model, and gets the calibration", async () => {
  const client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  const questions = [{ type: "predicate" as const, name: "refund", instructions: refund }]
  const body = { name: "kept", model: "umpire-decide", questions }
  const before = await client.createQuestionSet({ params: { org_id }, body })
  const other = run(many, "--calibrate", "kept", "--model", "umpire-chat")
  expect([other.status, other.stderr]).toEqual([2, expect.stringContaining("kept asks umpire-decide")])
  const { stdout, stderr } = run(many, "--calibrate", "kept")
  expect(stdout, stderr).toContain("Saved as version 2 of the question set kept")
  const after = await client.getQuestionSet({ params: { org_id, set_id: "kept" } })
  expect([after.questions, after.model]).toEqual([before.questions, before.model])
  expect(after.calibration).toEqual({ temperature: expect.any(Number), bias: expect.any(Number) })
  const label = { org_id, set_id: "kept", label: "production" }
  await client.putQuestionSetLabel({ params: label, body: { version: 1 } })
  const published = run(many, "--rows", "20", "--calibrate", "kept")
  expect(published.stdout).toContain("set:kept goes on with version 1 until version 3 is published")
})

test("rows that are too few, or that every answer tells apart, are not fitted", async () => {
  const few = run(many, "--rows", "19", "--calibrate", "unsaved")
  expect([few.status, few.stderr]).toEqual([
    2,
    expect.stringContaining("needs 20 rows or more, better some hundred; there are 19"),
  ])
  const easy = join(folder, "easy.jsonl")
  writeRows(
    easy,
    Array.from({ length: 20 }, (_, n) => labelled[n % 2]),
  )
  const { status, stderr } = run(easy, "--calibrate", "unsaved")
  expect([status, stderr]).toEqual([1, expect.stringContaining("too few or too easy; nothing was saved")])
  const questions = [{ type: "predicate", instructions: refund }]
  const reply = await server.post("/v1/decisions", { model: "set:unsaved", input: "a", questions })
  expect(await reply.json()).toMatchObject({ error: { code: "unknown_model" } })
})

test("calibrations of a configuration from before question sets are sets after the next start", async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-eval-"))
  await prepareDirectory(join(dataDirectory, "database"))
  writeFileSync(config, "calibrations:\n  Old One: { temperature: 2, bias: 1 }\n")
  for (const version of ["old-one@1", "old-one@1"]) {
    const again = await startServer({ env: { UMPIRE_CONFIG: config }, dataDirectory })
    const questions = [{ type: "predicate", instructions: refund }]
    const body = { model: "set:old-one", input: "Give me my money back.", questions }
    const reply = await again.post("/v1/decisions", body)
    expect([reply.status, reply.headers.get("x-umpire-question-set")]).toEqual([200, version])
    // Margins come from the server of the data directory, which this one is not.
    const { status, stderr } = runAt(again.url, many, "--calibrate", "old-one")
    expect([status, stderr]).toEqual([2, expect.stringContaining(`${again.url} is another installation`)])
    expect(stderr).toContain(`give --url ${server.url}`)
    await again.stop()
  }
  rmSync(dataDirectory, { recursive: true })
})

test.each([
  ["a file that is not there", ["missing.jsonl"], "cannot read missing.jsonl"],
  ["no file", [], "name a JSONL file"],
  ["an unknown endpoint", [rows, "--endpoint", "chat"], "decisions or systemone"],
  ["no rows at all", [rows, "--rows", "0"], "whole number"],
  ["a report of another kind", [rows, "--rows", "1", "--out", "report.pdf"], ".html or .svg"],
])("%s is told in one sentence", (_name, args, said) => {
  const { status, stderr } = run(...args)
  expect([status, stderr]).toEqual([2, expect.stringContaining(said)])
})

test("a row that is wrong is named by its line", () => {
  const bad = join(folder, "bad.jsonl")
  writeFileSync(
    bad,
    `${JSON.stringify(labelled[0])}\n{"text":"a","question":"q","options":["a"],"gold":"b"}\n`,
  )
  expect(run(bad).stderr).toContain("bad.jsonl:2: gold is not one of the options")
})
