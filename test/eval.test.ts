/** `umpire eval` against a running server: measures, reports, comparison, a question set taught with the rows. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
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

test("rows in several languages are measured by language too", () => {
  const german = { text: "Ich möchte mein Geld zurück, die Lampe ist kaputt.", question: refund }
  const mixed = join(folder, "mixed.jsonl")
  const both = [...labelled.slice(0, 3), { ...german, options: ["yes", "no"], gold: "yes" }]
  writeFileSync(mixed, both.map((row) => JSON.stringify(row)).join("\n"))
  const [report] = JSON.parse(run(mixed, "--json").stdout) as { languages: object[] }[]
  expect(report?.languages).toMatchObject([
    { language: "en", count: 3, accuracy: expect.any(Number) },
    { language: "de", count: 1 },
  ])
  const { stdout } = run(mixed, "--out", "mixed.html")
  expect(stdout).toMatch(/^language +rows +accuracy/m)
  expect(stdout).toMatch(/^de +1 +/m)
  expect(readFileSync(join(folder, "mixed.html"), "utf8")).toContain("By language")
})

test("two models stand side by side in one table", () => {
  const { stdout } = run(rows, "--rows", "2", "--model", "umpire-decide", "--model", "umpire-decide")
  expect(stdout.match(/^tickets +umpire-decide +decisions +2 /gm)).toHaveLength(2)
  expect(stdout).toContain("right \\ answered")
})

test("the rows become examples of a question set, made or known, which is taught with them", async () => {
  const client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  const params = { org_id, set_id: "tickets" }
  const made = run(rows, "--teach", "tickets")
  expect([made.status, made.stderr]).toEqual([0, expect.any(String)])
  const set = await client.getQuestionSet({ params })
  expect(set.questions.map(({ name, instructions }) => [name, instructions])).toEqual([
    ["q1", refund],
    ["q2", topic.question],
    ["q3", anger.question],
  ])
  const { data } = await client.listQuestionSetExamples({ params, query: {} })
  const labelOf = new Map(data.map(({ input, labels }) => [input, labels]))
  expect(labelled.map(({ text }) => labelOf.get(text))).toEqual([
    { q1: true },
    { q1: false },
    { q1: true },
    { q1: false },
    { q2: "delivery" },
    { q2: "password" },
    { q2: "billing" },
    { q3: 2 },
  ])
  // What it has is not added again; what it does not ask is refused.
  expect(run(rows, "--teach", "tickets").status).toBe(0)
  expect((await client.listQuestionSetExamples({ params, query: {} })).data).toHaveLength(labelled.length)
  const other = join(folder, "other.jsonl")
  writeFileSync(other, JSON.stringify({ ...labelled[0], question: "Is it spam?" }))
  const refused = run(other, "--teach", "tickets")
  expect([refused.status, refused.stderr]).toEqual([
    2,
    expect.stringContaining('tickets does not ask "Is it spam?"'),
  ])
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
