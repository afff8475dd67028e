/** `umpire sets` against a running server, and the shadow of a published version. */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { type TestServer, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const folder = mkdtempSync(join(tmpdir(), "umpire-sets-cli-"))

let server: TestServer
let client: ReturnType<typeof createClient>
let at: { org_id: string; set_id: string }

beforeAll(async () => {
  server = await startServer()
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  at = { org_id: (await client.listOrganizations())[0]?.id ?? "", set_id: "mail" }
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

async function sets(...args: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env["PATH"] ?? "", UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const run = promisify(execFile)(process.execPath, [umpire, "sets", ...args], { env, cwd: folder })
  return await run.then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      status: error.code,
      stdout: error.stdout,
      stderr: error.stderr,
    }),
  )
}

const file = `name: mail
model: umpire-decide
questions:
  - type: predicate
    name: refund
    instructions: Does the customer want money back?
`

test("a file is pushed, listed, pulled and pushed again without a change", async () => {
  writeFileSync(join(folder, "mail.yaml"), file)
  expect((await sets("push", "mail.yaml", "--note", "first")).stdout).toBe("mail is created: version 1\n")
  expect((await sets("list")).stdout).toMatch(/mail +umpire-decide +1 +1 +1/)
  expect((await sets("pull", "mail", "--out", "pulled.yaml")).stdout).toBe("Written to pulled.yaml\n")
  expect(readFileSync(join(folder, "pulled.yaml"), "utf8")).toContain("Does the customer want money back?")
  expect((await sets("push", "pulled.yaml")).stdout).toBe("mail is unchanged: version 1\n")
  expect((await sets("pull", "mail", "--out", "-")).stdout).toMatch(/^# yaml-language-server: \$schema=http/)
})

test("a pull does not replace a file that was edited, unless it is told to", async () => {
  const path = join(folder, "pulled.yaml")
  const pulled = readFileSync(path, "utf8")
  expect((await sets("pull", "mail", "--out", "pulled.yaml")).status).toBe(0)
  writeFileSync(path, `${pulled}# mine\n`)
  const refused = await sets("pull", "mail", "--out", "pulled.yaml")
  expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining("--force replaces it")])
  expect(readFileSync(path, "utf8")).toBe(`${pulled}# mine\n`)
  expect((await sets("pull", "mail", "--out", "pulled.yaml", "--force")).status).toBe(0)
  expect(readFileSync(path, "utf8")).toBe(pulled)
})

const freeze = async (input: string, refund: boolean): Promise<void> =>
  void (await client.addQuestionSetCases({
    params: at,
    body: { cases: [{ input, expected: { refund } }] },
  }))

const ask = async (model: string): Promise<void> =>
  void (await server.post("/v1/decisions", { model, input: "I want my money back.", questions: [] }))

test("check exits with 1 when a frozen case fails, and with 0 when all hold", async () => {
  await freeze("I want my money back.", true)
  const right = await sets("check", "mail")
  expect([right.status, right.stdout]).toEqual([0, expect.stringContaining("1 answer right, 0 wrong")])
  await freeze("Please refund me at once, I want my money back.", false)
  const wrong = await sets("check", "mail", "--against", "1")
  expect([wrong.status, wrong.stdout]).toEqual([1, expect.stringContaining("expected no, got yes")])
})

test("a set is taught from the command line", async () => {
  const rows = Array.from({ length: 12 }, (_, n) => ({
    input: n % 2 === 0 ? `Refund order ${n}, please.` : `Thanks for order ${n}.`,
    labels: { refund: n % 2 === 0 },
  }))
  await client.addQuestionSetExamples({ params: at, body: { rows } })
  const { status, stdout } = await sets("teach", "mail", "--target", "0.9")
  expect([status, stdout]).toEqual([0, expect.stringMatching(/refund +\w+[\s\S]*Saved as version 2/)])
})

test("umpire label asks a set, with its verdicts as columns; the model in its own process answers the same", async () => {
  writeFileSync(join(folder, "mail.csv"), "text\nI want my money back.\nThank you.\n")
  const env = {
    PATH: process.env["PATH"] ?? "",
    UMPIRE_URL: server.url,
    UMPIRE_API_KEY: server.key,
    // As the server of the tests.
    UMPIRE_ENGINE_DECISION_MODEL: "umpire-decide-small",
  }
  const label = async (...args: string[]): Promise<string> => {
    const options = { env, cwd: folder }
    const run = promisify(execFile)(process.execPath, [umpire, "label", "mail.csv", ...args], options)
    return (await run).stdout
  }
  const bySet = (await label("--set", "mail@1", "--out", "-")).split("\n")
  expect(bySet[0]).toBe("text,refund_answer,refund_probability,refund_confidence,refund_verdict,error")
  expect(bySet[1]).toMatch(/^I want my money back\.,yes,0\.\d+,0\.\d+,yes,$/)
  expect((await label("-q", "mail.yaml", "--local", "--out", "-")).split("\n")).toEqual(bySet)
  const counted = JSON.parse(await label("--set", "mail@1", "--dry-run", "--json")) as { tokens: number }
  const asked = await client.decideQuestionSet({
    params: at,
    body: { input: "I want my money back.", version: "1" },
  })
  const other = await client.decideQuestionSet({ params: at, body: { input: "Thank you.", version: "1" } })
  expect(counted).toMatchObject({
    rows: 2,
    tokens: asked.usage.input_tokens + other.usage.input_tokens,
    tokens_exact: true,
  })
})

test.each([
  [["list", "--key", "ump_wrong"], 1, /./],
  [["push", "missing.yaml"], 2, /cannot read missing.yaml/],
  [["pull", "nothing"], 1, /none of this name or id/],
  [["pull"], 2, /which set/],
  [["other"], 2, /say list/],
])("umpire sets %j exits with %d", async (args, status, sentence) => {
  const answered = await sets(...args)
  expect([answered.status, answered.stderr]).toEqual([status, expect.stringMatching(sentence)])
})

test("a shadow answers beside the published version up to its budget, and the report says how they differ", async () => {
  const questions = [{ type: "predicate" as const, name: "refund", instructions: "Is the sun shining?" }]
  const { latest_version } = await client.updateQuestionSet({ params: at, body: { questions } })
  await client.putQuestionSetLabel({ params: { ...at, label: "production" }, body: { version: 1 } })
  const shadow = { version: latest_version, share: 1 }
  await client.updateQuestionSet({ params: at, body: { shadow } })
  await ask("set:mail")
  await ask(`set:mail@${latest_version}`)
  await expect
    .poll(async () => (await client.getQuestionSetShadowReport({ params: at })).questions)
    .toMatchObject([
      {
        question: "refund",
        version: 1,
        shadow_version: latest_version,
        shadow_model: "umpire-decide",
        answers: 1,
        flips: 1,
        agreement: 0,
        kappa: null,
        confusion: [{ verdict: "yes", shadow_verdict: "no", answers: 1 }],
        abstained: 0,
      },
    ])
  const kept = { ...shadow, model: null, cost_max_day_usd: "1" }
  expect((await client.getQuestionSet({ params: at })).shadow).toEqual(kept)
  const told = await sets("shadow", "mail")
  expect([told.status, told.stdout]).toEqual([
    0,
    expect.stringMatching(
      /answers 100% of the requests unseen, for at most \$1 a day[\s\S]*refund +umpire-decide +yes +no +1/,
    ),
  ])
  expect((await sets("shadow", "mail", "--stop")).stdout).toBe("No shadow answers.\n")
  expect((await client.getQuestionSet({ params: at })).shadow).toBeNull()
  const again = await sets("shadow", "mail", "--version", "1", "--share", "0.5", "--budget", "0.25", "--json")
  expect(JSON.parse(again.stdout)).toEqual({ version: 1, model: null, share: 0.5, cost_max_day_usd: "0.25" })
  await client.updateQuestionSet({ params: at, body: { shadow: null } })
  expect((await sets("shadow", "mail")).stdout).toMatch(/^No shadow answers\.\n[\s\S]*refund/)
})

test.each([
  [["shadow", "mail", "--share", "0.5"], /what answers beside it/],
  [["shadow", "mail", "--model", "umpire-decide", "--stop"], /--stop ends it/],
  [["shadow", "mail", "--model", "umpire-decide", "--budget", "much"], /cost_max_day_usd/],
  [["shadow", "mail", "--model", "nobody"], /no model "nobody"/],
])("umpire sets %j is refused", async (args, sentence) => {
  const { status, stderr } = await sets(...args)
  expect([status > 0, stderr]).toEqual([true, expect.stringMatching(sentence)])
})
