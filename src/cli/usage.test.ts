import { once } from "node:events"
import { linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PassThrough } from "node:stream"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, expect, test } from "vitest"
import { alerts } from "./alerts.ts"
import { ask } from "./ask.ts"
import { batches } from "./batches.ts"
import type { Command } from "./command.ts"
import { evaluation } from "./eval.ts"
import { guardrails } from "./guardrails.ts"
import { label } from "./label.ts"
import { requests } from "./requests.ts"
import { type CommandEntry, runCli } from "./run.ts"
import { sets } from "./sets.ts"

const entry = (command: Command): CommandEntry => ({ summary: "", load: async () => command })

const notAsked = async (): Promise<never> => {
  throw new Error("The operator's socket was asked")
}
const commands = {
  alerts: entry(alerts),
  ask: entry(ask),
  batches: entry(batches),
  eval: entry(evaluation),
  guardrails: entry(guardrails),
  label: entry(label(notAsked)),
  requests: entry(requests),
  sets: entry(sets),
}

const folder = mkdtempSync(join(tmpdir(), "umpire-usage-"))
/** Refuses every request as for an unknown model. */
const server = createServer((request, response) => {
  asked.push(request.url ?? "")
  response
    .writeHead(404, { "content-type": "application/json" })
    .end(
      JSON.stringify({ error: { message: 'no model "foo" is in the catalog; GET /v1/models lists them' } }),
    )
})
let asked: string[] = []
let port = 0

beforeAll(async () => {
  writeFileSync(join(folder, "letter.txt"), "I want my money back.")
  writeFileSync(join(folder, "table.csv"), "text\nI want my money back.\n")
  linkSync(join(folder, "table.csv"), join(folder, "hard.csv"))
  symlinkSync("table.csv", join(folder, "soft.csv"))
  writeFileSync(join(folder, "broken.yaml"), "- type: predicate\n  instructions: [open\n")
  const row = { text: "a", question: "q", options: ["yes", "no"], gold: "yes" }
  writeFileSync(join(folder, "rows.jsonl"), `${JSON.stringify(row)}\n`.repeat(19))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
  rmSync(folder, { recursive: true })
})

async function run(args: readonly string[], environment: Record<string, string> = {}) {
  asked = []
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const status = await runCli(commands, "0", {
    argv: args,
    surroundings: {
      stdout,
      stderr,
      stdin: new PassThrough().end(),
      environment: { UMPIRE_API_KEY: "ump_1_2", UMPIRE_PORT: String(port), ...environment },
      workingDirectory: folder,
    },
  })
  stdout.end()
  stderr.end()
  return { status, stdout: await text(stdout), stderr: await text(stderr) }
}

const isIt = ["--yes-no", "Is it?"]

test.each([
  [["ask", "letter.txt", "other.txt", ...isIt], "one text at a time: letter.txt and other.txt are given"],
  [["ask", "letter.txt", "-t", "other", ...isIt], "one text at a time: letter.txt and --text are given"],
  [["ask", "letter.txt", "--choice", "What = one | "], "--choice needs two or more to choose from"],
  [["ask", "letter.txt", "--score", "What = one"], "--score needs two or more to choose from"],
  [["ask", "letter.txt", "--choice", " = one | two"], "write 'question = first | second'"],
  [["ask", "letter.txt", "--choice", "one | two"], "write 'question = first | second'"],
  [["ask", "letter.txt", "--yes-no", " "], "--yes-no takes a question, and it is empty"],
  [["ask", "nope.txt", ...isIt], "cannot read nope.txt: there is no such file; --text gives the text"],
  [["ask", ".", ...isIt], "cannot read .: it is a directory"],
  [["ask", "letter.txt", "-q", "nope.yaml"], "cannot read nope.yaml: there is no such file"],
  [["ask", "letter.txt", "-q", "."], "cannot read .: it is a directory"],
  [["ask", "letter.txt", "-q", "broken.yaml"], "broken.yaml: it is not YAML or JSON: "],
  [["ask", "letter.txt", "-q", "broken.yaml"], "at line 3, column 1"],
  [["ask", "--yesno", "x"], "there is no option --yesno; did you mean --yes-no?"],
  [["ask", "--chioce", "x"], "there is no option --chioce; did you mean --choice?"],
  [["ask", "--loud"], "there is no option --loud; umpire ask --help lists them"],
  [["ask", "-z"], "there is no option -z; umpire ask --help lists them"],
  [["ask", "letter.txt", "--json=yes"], "--json takes no value"],
  [["ask", "letter.txt", "--yes-no"], "--yes-no needs a value"],
  [
    ["eval", "rows.jsonl", "--rows", "-3"],
    "--rows needs a value; one that begins with - is written --rows=-3",
  ],
  [["eval", "rows.jsonl", "--rows=-3"], "--rows is a whole number from 1"],
  [["eval", "rows.jsonl", "--out", "nodir/x.html"], "cannot write nodir/x.html: there is no directory nodir"],
  [["eval", "rows.jsonl", "--out", "x.pdf"], "--out ends in .html or .svg"],
  [["eval", "rows.jsonl", "--teach", "Few"], "--teach takes a name of 1 to 64 of a-z"],
  [["eval", "rows.jsonl", "--teach", "few", "-m", "a", "-m", "b"], "give --model once"],
  [["eval", "rows.jsonl", "--teach", "few", "-o", "x.html"], "--teach writes no report"],
  [["label", "table.csv", "other.csv", ...isIt], "one table at a time: table.csv and other.csv are given"],
  [["batches", "create", "rows.jsonl", "b.jsonl"], "one at a time: rows.jsonl and b.jsonl are given"],
  [["batches", "create", "nope.jsonl"], "cannot read nope.jsonl: there is no such file"],
  [["batches", "create", "."], "cannot read .: it is a directory"],
  [["label", "nope.csv", ...isIt], "cannot read nope.csv: there is no such file"],
  [["label", "table.csv", ...isIt, "--out", "nodir/x.csv"], "there is no directory nodir"],
  [["label", "table.csv", ...isIt, "--out", ".", "--to", "csv"], "cannot write .: it is a directory"],
  [["label", "table.csv", ...isIt, "--out", "./table.csv"], "./table.csv is the input"],
  [["label", "table.csv", ...isIt, "--out", "soft.csv"], "soft.csv is the input"],
  [["label", "table.csv", ...isIt, "--out", "hard.csv"], "hard.csv is the input"],
  [
    ["label", "table.csv", "--set", "mail", ...isIt],
    "--set asks the questions of the set: leave --yes-no out",
  ],
  [["label", "table.csv", ...isIt, "--threshold", ""], "--threshold takes a number from 0 to 1"],
  [["label", "table.csv", ...isIt, "--threshold", "1.1"], "--threshold takes a number from 0 to 1"],
  [["sets", "teach", "mail", "--target", "1"], "--target takes a share above 0.5 and below 1, such as 0.95"],
  [["sets", "teach", "mail", "--target", "0.5"], "--target takes a share above 0.5 and below 1"],
  [["sets", "push", "nope.yaml"], "cannot read nope.yaml: there is no such file"],
  [["sets", "pull", "mail", "--out", "nodir/mail.yaml"], "there is no directory nodir"],
  [
    ["alerts", "create", "A", "--kind", "error_rate", "--threshold", "5"],
    "from 0 to 1 for the kind error_rate",
  ],
  [["alerts", "create", "A", "--kind", "latency", "--window", "0"], "--window takes a number from 1 to 1440"],
  [
    ["alerts", "create", "A", "--kind", "refill_failed", "--threshold", "5"],
    "refill_failed has no --threshold",
  ],
  [["guardrails", "add", "pii", "--stage", "x", "-o", "org_1"], "--stage takes one of input, output, both"],
  [["requests", "--result", "bad"], "--result takes one of success, error, cancelled"],
  [["requests", "--latency-min", "x"], "--latency-min takes a whole number"],
  [["requests", "--limit", "0"], "--limit takes a whole number from 1 to"],
])("umpire %j is a usage mistake, told in a sentence, and nothing is changed", async (args, sentence) => {
  const ran = await run(args)
  expect(ran).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(sentence) })
  expect(ran.stderr.trim().split("\n")).toHaveLength(1)
  expect(asked).toEqual([])
  expect(readFileSync(join(folder, "table.csv"), "utf8")).toBe("text\nI want my money back.\n")
})

const here = (value: string): string => value.replace("PORT", String(port))
const question = ["ask", "letter.txt", ...isIt]

test.each([
  ["UMPIRE_PORT alone", [], {}],
  ["a slash at the end of --url", ["--url", "http://127.0.0.1:PORT/"], {}],
  ["the base address of OpenAI's clients", ["--url", "http://127.0.0.1:PORT/v1"], {}],
  ["the same with a slash, in UMPIRE_URL", [], { UMPIRE_URL: "http://127.0.0.1:PORT/v1/" }],
  ["an empty UMPIRE_URL", [], { UMPIRE_URL: "" }],
  ["--url before UMPIRE_URL", ["--url", "http://127.0.0.1:PORT"], { UMPIRE_URL: "http://127.0.0.1:9" }],
])("the server is found by %s", async (_name, args, environment) => {
  const given = Object.entries<string>(environment).map(([name, value]) => [name, here(value)])
  const { status, stderr } = await run([...question, ...args.map(here)], Object.fromEntries(given))
  expect(asked).toEqual(["/v1/decisions"])
  expect([status, stderr]).toEqual([1, expect.stringContaining("GET /v1/models lists them")])
})

test.each([
  [
    ["--url", "localhost:8977"],
    {},
    "--url localhost:8977: http:// is missing; write it as http://localhost:8977",
  ],
  [["--url", "127.0.0.1"], {}, "--url 127.0.0.1: http:// is missing"],
  [["--url", "ftp://a.example"], {}, "--url ftp://a.example: the address begins with http:// or https://"],
  [["--url", "http://"], {}, "--url http:// is no address"],
  [[], { UMPIRE_URL: "localhost:1" }, "UMPIRE_URL localhost:1: http:// is missing"],
  [[], { UMPIRE_PORT: "many" }, "UMPIRE_PORT many is no port"],
  [[], { UMPIRE_PORT: "65536" }, "UMPIRE_PORT 65536 is no port"],
])("an address such as %j %j is refused", async (args, environment, sentence) => {
  const { status, stderr } = await run([...question, ...args], environment)
  expect([status, stderr, asked]).toEqual([2, expect.stringContaining(sentence), []])
})

test.each([
  [question],
  [["batches", "list"]],
  [["sets", "list"]],
  [["sets", "list", "--organization", "org_1"]],
])("%j says which address it cannot reach, and what names another", async (args) => {
  const { status, stderr } = await run([...args, "--url", "http://127.0.0.1:9"])
  expect([status, stderr]).toEqual([2, expect.stringContaining("cannot reach http://127.0.0.1:9: ")])
  expect(stderr).toContain("--url or UMPIRE_URL names another")
})
