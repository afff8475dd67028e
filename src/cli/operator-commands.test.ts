import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Writable } from "node:stream"
import { expect, test } from "vitest"
import { permissions } from "../contract/access.ts"
import type { OperatorClient } from "../contract/client.ts"
import { type OperatorTable, operatorTable } from "../contract/operator.ts"
import { access } from "./access.ts"
import { audit } from "./audit.ts"
import { billing } from "./billing.ts"
import { budgets } from "./budgets.ts"
import type { Command } from "./command.ts"
import { keys } from "./keys.ts"
import { models } from "./models.ts"
import { orgs } from "./orgs.ts"
import { type CommandEntry, runCli } from "./run.ts"
import { users } from "./users.ts"

class Written extends Writable {
  text = ""

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

const entry = (command: Command): CommandEntry => ({ summary: "", load: async () => command })

/** Runs a line with a server that answers `result` to whatever it is asked, or fails with it where it is an error. */
async function type(line: string, result: unknown = {}, environment: Record<string, string> = {}) {
  return await answering(
    line,
    () => {
      if (result instanceof Error) throw result
      return result
    },
    environment,
  )
}

/** The only organization of the server. */
const only = { id: "org_0", name: "First", billing_account_id: "ba_0", is_personal: true, members: 1 }

async function answering(
  line: string,
  answer: (endpoint: string) => unknown,
  environment: Record<string, string> = {},
) {
  const [stdout, stderr] = [new Written(), new Written()]
  const told: unknown[] = []
  const endpoint =
    (_: object, name: string) =>
    async (request: Partial<Record<string, object>> = {}) => {
      if (name === "listAllOrganizations" && !line.startsWith("orgs list")) return [only]
      told.push([name, { ...request["params"], ...request["query"], ...request["body"] }])
      return answer(name)
    }
  // Every endpoint of the table has this function.
  const client = new Proxy({}, { get: endpoint }) as OperatorClient
  const open = async () => ({ client, close: async () => undefined })
  const commands = {
    orgs: entry(orgs(open)),
    users: entry(users(open)),
    access: entry(access(open)),
    billing: entry(billing(open)),
    audit: entry(audit(open)),
    keys: entry(keys(open)),
    budgets: entry(budgets(open)),
    models: entry(models(open)),
  }
  const surroundings = { stdout, stderr, stdin: process.stdin, environment, workingDirectory: "/" }
  const status = await runCli(commands, "0", { argv: line.split(" "), surroundings })
  return { status, told, stdout: stdout.text, stderr: stderr.text }
}

const connected = (model: string, input: string, output: string) => ({
  sku: model,
  model,
  context_tokens_max: 128_000,
  price_m_input_tokens_usd: input,
  price_m_input_cache_read_tokens_usd: input,
  price_m_output_tokens_usd: output,
})

test.each<[string, keyof OperatorTable, object]>([
  ["orgs create --name A --owner a@b.c", "openOrganization", { name: "A", owner: "a@b.c" }],
  [
    "orgs create -n A --owner a@b.c --billing-account ba_1",
    "openOrganization",
    { name: "A", owner: "a@b.c", billing_account: "ba_1" },
  ],
  [
    "orgs limit org_1 --burst 5 --requests-per-minute 60",
    "limitOrganization",
    { org_id: "org_1", requests_per_minute: 60, burst: 5 },
  ],
  [
    "orgs limit org_1 --region paris --region oslo",
    "limitOrganization",
    { org_id: "org_1", regions: ["paris", "oslo"] },
  ],
  ["orgs limit org_1 --every-region", "limitOrganization", { org_id: "org_1", regions: [] }],
  ["orgs delete org_1", "deleteOrganization", { org_id: "org_1" }],
  ["users reset a@b.c", "resetPassword", { email: "a@b.c" }],
  ["users link a@b.c", "createSignInLink", { email: "a@b.c" }],
  ["users link", "createSignInLink", {}],
  ["access grant nano -o org_1", "decideModelAccess", { org_id: "org_1", model: "nano", state: "grant" }],
  ["access deny nano", "decideModelAccess", { model: "nano", state: "deny" }],
  ["keys revoke key_1", "deleteApiKey", { key_id: "key_1" }],
  [
    "models connect openai gpt --input-price 0.4 --output-price 0",
    "connectModel",
    { dialect: "openai", url: "https://api.openai.com/v1", ...connected("gpt", "0.4", "0") },
  ],
  [
    "models connect openai big --url http://127.0.0.1:1/v1",
    "connectModel",
    { dialect: "openai", url: "http://127.0.0.1:1/v1", ...connected("big", "0", "0") },
  ],
  [
    "models connect ollama qwen",
    "connectModel",
    { dialect: "ollama", url: "http://127.0.0.1:11434/v1", ...connected("qwen", "0", "0") },
  ],
  ["models alias fast nano -o org_1", "saveVirtualModel", { org_id: "org_1", name: "fast", alias: "nano" }],
  ["models fallback f a b", "saveVirtualModel", { name: "f", fallback: ["a", "b"] }],
  [
    "models split s a=95 b=5",
    "saveVirtualModel",
    {
      name: "s",
      split: [
        { model: "a", weight: 95 },
        { model: "b", weight: 5 },
      ],
    },
  ],
  [
    "models cascade c a b --threshold 0.9 --on-failure error --cost-max 0.01 --latency-max 500",
    "saveVirtualModel",
    {
      name: "c",
      cascade: {
        models: ["a", "b"],
        thresholds: { predicate: 0.9, choice: 0.9, score: 0.9 },
        on_failure: "error",
        cost_max_usd: "0.01",
        latency_max_ms: 500,
      },
    },
  ],
  ["models virtual", "listVirtualModels", {}],
  ["models remove fast", "removeVirtualModel", { name: "fast" }],
  [
    "keys limit key_1 --budget day=1.50 --budget month=20 --budget-warning month=15 --tokens-per-minute 100",
    "updateApiKey",
    {
      key_id: "key_1",
      tokens_per_minute: 100,
      budgets: [
        { period: "day", cutoff_threshold_cents: 150, warning_threshold_cents: null },
        { period: "month", cutoff_threshold_cents: 2000, warning_threshold_cents: 1500 },
      ],
    },
  ],
  [
    "keys limit key_1 --requests-per-minute 60 --burst 5 --model a --model b --network 10.0.0.0/8 -o org_1",
    "updateApiKey",
    {
      org_id: "org_1",
      key_id: "key_1",
      rate_limit: { requests_per_minute: 60, burst: 5 },
      allowed_models: ["a", "b"],
      allowed_networks: ["10.0.0.0/8"],
    },
  ],
  [
    "keys limit key_1 --budget none --tokens-per-minute none --requests-per-minute none --model any --network any",
    "updateApiKey",
    {
      key_id: "key_1",
      rate_limit: null,
      tokens_per_minute: null,
      allowed_models: null,
      allowed_networks: null,
      budgets: [],
    },
  ],
  [
    "budgets set team=ops --budget month=20 --budget-warning month=15 -o org_1",
    "putTagBudget",
    {
      org_id: "org_1",
      key: "team",
      value: "ops",
      budgets: [{ period: "month", cutoff_threshold_cents: 2000, warning_threshold_cents: 1500 }],
    },
  ],
  [
    "budgets set team=ops --requests-per-minute 600 --burst 60 --tokens-per-minute none",
    "putTagBudget",
    {
      key: "team",
      value: "ops",
      rate_limit: { requests_per_minute: 600, burst: 60 },
      tokens_per_minute: null,
    },
  ],
  [
    "budgets remove team=a=b",
    "putTagBudget",
    { key: "team", value: "a=b", budgets: [], rate_limit: null, tokens_per_minute: null },
  ],
  ["budgets list", "listTagBudgets", {}],
  ["orgs sso org_1", "changeSingleSignOn", { org_id: "org_1" }],
  [
    "orgs sso org_1 --domain a.example --domain b.example --group staff --role member --required",
    "changeSingleSignOn",
    {
      org_id: "org_1",
      email_domains: ["a.example", "b.example"],
      groups: ["staff"],
      role: "member",
      required: true,
    },
  ],
  [
    "orgs sso org_1 --domain none --group none --not-required",
    "changeSingleSignOn",
    { org_id: "org_1", email_domains: [], groups: [], required: false },
  ],
])("umpire %s calls %s", async (line, name, input) => {
  const { status, told } = await type(`${line} --json`)
  const scope = operatorTable[name].path.includes("{org_id}") ? { org_id: only.id } : {}
  expect([status, told]).toEqual([0, [[name, { ...scope, ...input }]]])
})

test.each([
  ["orgs", "say create, list, limit, sso or delete"],
  ["orgs create --name x", "a name and an owner are needed"],
  ["orgs limit", "which organization?"],
  ["orgs delete", "which organization?"],
  ["orgs sso", "which organization?"],
  ["keys limit", "which key?"],
  ["budgets", "say list, set or remove"],
  ["budgets set --budget day=1", "which tag?"],
  ["budgets set team=ops", "which budget or limit?"],
  ["keys limit key_1 --budget year=5", "year=5 is no budget"],
  ["keys limit key_1 --burst 5", "--burst needs --requests-per-minute"],
  ["users reset", "whose password?"],
  ["users", "say list, link or reset"],
  ["access grant", "which model?"],
  ["access", "say list, grant or deny"],
  ["audit", "say verify"],
  ["models connect openai gpt", "name --input-price and --output-price"],
  ["models connect openai gpt --input-price 0.4", "name --input-price and --output-price"],
  ["models connect openai gpt --url https://api.openai.com --output-price 1", "name --input-price and"],
  ["models connect anthropic claude --url http://127.0.0.1:1", "name --input-price and --output-price"],
  ["models connect azure gpt --url https://one.openai.azure.com/openai/v1", "name --input-price and"],
  ["models alias fast", "which model?"],
  ["models alias fast a b", "an alias names one model"],
  ["models cascade c a", "cascade needs two models or more"],
  ["models split s a=1 b", "say MODEL=WEIGHT instead of b"],
  ["models cascade c a b --threshold high", "--threshold takes a number from 0 to 1"],
  ["models cascade c a b --threshold 1.1", "--threshold takes a number from 0 to 1"],
  ["models cascade c a b --on-failure stop", "--on-failure takes one of answer, error"],
  ["models cascade c a b --latency-max 0", "--latency-max takes a whole number from 1 to"],
  ["models cascade c a b --cost-max cheap", "--cost-max takes USD, such as 0.01"],
  ["keys create --permission admin", "--permission takes one of inference, api-read, api-write, api-admin"],
  ["keys create --expires tomorrow", "--expires takes a time in UTC such as 2027-01-01T00:00:00Z"],
  ["keys limit key_1 --tokens-per-minute abc", "--tokens-per-minute takes a whole number from 1 to"],
  ["keys limit key_1 --requests-per-minute 1.5", "--requests-per-minute takes a whole number from 1 to"],
  ["orgs limit org_1 --burst many", "--burst takes a whole number from 1 to"],
  ["orgs sso org_1 --role boss", "--role takes one of member, owner"],
  ["audit verify --loud", "there is no option --loud"],
])("umpire %s is a usage mistake that says what is missing", async (line, sentence) => {
  const { status, told, stderr } = await type(line)
  expect([status, told, stderr]).toEqual([2, [], expect.stringContaining(sentence)])
})

test("models list says what each model is for", async () => {
  const model = { sku: "m", kind: "generation", purpose: "decisions", context: 1, quantization: "INT8" }
  const { stdout } = await type("models list", [{ ...model, description: "Small." }])
  expect(stdout.split("\n").map((line) => line.split(/\s+/).slice(0, 2))).toMatchObject([
    ["model", "purpose"],
    {},
    ["m", "decisions"],
    {},
  ])
})

const list = async (models: unknown): Promise<string[]> =>
  (await type("models list", models)).stdout.split("\n")

test("models list says the languages and the licence of each model within 80 columns, and how it decides where one tells", async () => {
  const known = { kind: "generation", purpose: "decisions", context: 20480, quantization: "INT8" }
  const rows = [
    { ...known, sku: "umpire-decide-multilingual", languages: ["en", "de", "fr"], licence: "Apache-2.0" },
    { ...known, sku: "m", purpose: "decisions and text", languages: ["en"], licence: null },
    { ...known, sku: "n", languages: null, licence: null },
  ].map((row) => ({ ...row, description: "Described.", decides: null, calibrated: null }))
  const [head = "", , many, one, none] = await list(rows)
  expect(head.split(/\s+/)).toEqual(["model", "purpose", "context", "languages", "licence", "description"])
  expect(head.indexOf("description")).toBeLessThanOrEqual(80)
  expect(many).toMatch(/ 20480 +en \+2 +Apache-2\.0 +Described\.$/)
  expect(one).toMatch(/ 20480 +en {10,}Described\.$/)
  expect(none).toMatch(/ 20480 {10,}Described\.$/)
  const [, , , , asked] = await list([
    ...rows.slice(0, 2),
    { ...rows[2], decides: "by tool", calibrated: false },
  ])
  expect(asked).toMatch(/ 20480 +by tool, uncalibrated +Described\.$/)
})

const removed = (model: string) =>
  answering(`models remove ${model}`, (name) => {
    if (name === "removeVirtualModel") throw new Error("no virtual model of this name")
    return [{ sku: "umpire-decide" }]
  })

test("a model of the catalog is not removed as a virtual model, and the answer says what it is", async () => {
  expect(await removed("umpire-decide")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("umpire-decide is a model of the catalog, not a virtual model"),
  })
  expect(await removed("other")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("no virtual model of this name"),
  })
})

test("a broken audit log is the exit status 1, with the place of the flaw", async () => {
  const intact = { organization_id: "org_1", intact: true, position: 3, reason: null }
  const broken = { organization_id: "org_2", intact: false, position: 2, reason: "the entry was changed" }
  expect(await type("audit verify", [intact])).toMatchObject({
    status: 0,
    stdout: "org_1: intact, 3 entries\n",
  })
  expect(await type("audit verify", [intact, broken])).toMatchObject({
    status: 1,
    stdout: "org_1: intact, 3 entries\norg_2: BROKEN at entry 2: the entry was changed\n",
  })
})

test("text of others cannot move the cursor of the operator's terminal", async () => {
  const hostile = { id: "org_1", name: "\u001b[2JAcme", billing_account_id: "ba_1", members: 1 }
  expect((await type("orgs list", [hostile])).stdout).not.toContain("\u001b")
})

test.each([new Error("the disk\nis odd"), new TypeError("x is undefined")])(
  "an unexpected failure (%s) is one sentence, and a stack only where that is asked for",
  async (failure) => {
    const plain = await type("users list", failure)
    expect(plain.status).toBe(1)
    expect(plain.stderr.trim().split("\n")).toHaveLength(1)
    expect(plain.stderr).toContain(failure.message.split("\n")[0])
    const debugged = await type("users list", failure, { UMPIRE_DEBUG: "1" })
    expect(debugged.stderr).toContain("    at ")
  },
)

test.each([
  [-0.0042, "-$0.000042"],
  [-0.00000001, "-$0.0000000001"],
  [-0, "$0.00"],
  [10_000, "$100.00"],
  [-12.5, "-$0.125"],
])("an entry of %f cents is %s in the ledger", async (amount_cents, shown) => {
  const entry = { at: "2026-01-01", kind: "credit", amount_cents, reference: "r", note: null }
  const { stdout } = await type("billing ledger", { entries: [entry] })
  expect(stdout.split("\n")[2]?.split(/\s{2,}/)[2]).toBe(shown)
})

test("limits and single sign-on are shown as they stand afterwards", async () => {
  const budgets = [{ period: "day", cutoff_threshold_cents: 150, spent_cents: 150, local_state: "blocked" }]
  const key = {
    id: "key_1",
    name: "ci",
    permissions: ["inference"],
    last_used_at: null,
    expires_at: null,
    budgets,
  }
  expect((await type("keys limit key_1 --budget day=1.50", key)).stdout).toContain("day 1.50 of 1.50 blocked")
  const policy = { required: true, email_domains: ["a.example"], groups: [], role: "member" }
  const { stdout } = await type("orgs sso org_1 --required", policy)
  expect(stdout).toBe("domains   a.example\ngroups    none\nrole      member\nrequired  yes\n")
})

test("a reset prints the whole address that signs in", async () => {
  const url = "https://umpire.example/sign-in#link=abc"
  const { stdout } = await type("users reset a@b.c", {
    email: "a@b.c",
    url,
    expires_at: "2026-01-01T00:00:00Z",
  })
  expect(stdout).toContain(`  ${url}\n`)
})

test("keys first shows a new key, the console's whole address and a request to paste", async () => {
  const { status, stdout, told } = await type("keys first", {
    secret: "ump_1_2",
    url: "http://127.0.0.1:8484/sign-in#link=abc",
  })
  expect([status, told]).toEqual([
    0,
    [
      ["createApiKey", { org_id: only.id, name: "first key", permissions: [...permissions] }],
      ["createSignInLink", {}],
    ],
  ])
  expect(stdout).toContain("  ump_1_2\n")
  expect(stdout).toContain("  http://127.0.0.1:8484/sign-in#link=abc\n")
  expect(stdout).toContain("curl -s http://127.0.0.1:8484/v1/decisions")
})

test.each([
  ["models pull http://127.0.0.1:9/m.gguf", 2, "an http:// address needs --sha256"],
  [
    "models pull http://127.0.0.1:9/m.gguf --allow-http",
    1,
    "Cannot reach 127.0.0.1:9: no server answers there",
  ],
  [`models pull http://127.0.0.1:9/m.gguf --sha256 ${"0".repeat(64)}`, 1, "Cannot reach 127.0.0.1:9"],
  ["models pull https://127.0.0.1:9/m.gguf", 1, "Cannot reach 127.0.0.1:9"],
  ["models pull https://127.0.0.1:9/m.onnx", 1, "Cannot reach 127.0.0.1:9"],
  ["models pull https://127.0.0.1:9/m.bin", 2, "the address must name a .gguf or .onnx file"],
])("umpire %s ends with %i and one sentence", async (line, status, sentence) => {
  const answer = await type(line, {}, { UMPIRE_DATA_DIR: mkdtempSync(join(tmpdir(), "umpire-pull-")) })
  expect([answer.status, answer.told]).toEqual([status, []])
  expect(answer.stderr).toContain(sentence)
  expect(answer.stderr.trim().split("\n")).toHaveLength(1)
})
