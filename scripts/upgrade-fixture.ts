/**
 * Makes the fixture of the upgrade test: starts an older version from its checkout, fills a data directory as users do,
 * exports its events, starts it again and kills it, and keeps what is there as a backup file, beside what the old version said about
 * it. Its events were in chDB (its package of that name), which the backup is without: the export has them.
 *
 *     git worktree add ../old v0.1.0 && (cd ../old && npm install)
 *     node scripts/upgrade-fixture.ts ../old test/fixtures/umpire-0.1.0
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { backupFormat, writeArchive } from "../src/store/backup/archive.ts"
import { listFiles, openFiles } from "../src/store/backup/files.ts"
import { appliedMigrations, dumpRows } from "../src/store/backup/rows.ts"
import { openPglite } from "../src/store/pglite.ts"

const [checkout = "", target = ""] = process.argv.slice(2)
const version = "0.1.0"
/** Known to the test; of no installation that holds anything. */
const key = "ump_00000000000000000000test_0123456789abcdefghjkmnpqrstvwxyz"

const folder = mkdtempSync(join(tmpdir(), "umpire-fixture-"))
const dataDirectory = join(folder, "data")
const configFile = join(folder, "umpire.yaml")
const umpire = join(resolve(checkout), "bin", "umpire.js")
const env = {
  ...process.env,
  UMPIRE_DATA_DIR: dataDirectory,
  UMPIRE_CONFIG: configFile,
  UMPIRE_PORT: "0",
  UMPIRE_ANALYTICS_EMBEDDED: "chdb",
  UMPIRE_BOOTSTRAP_KEY: key,
  UMPIRE_BOOTSTRAP_EMAIL: "ada@example.com",
  UMPIRE_BOOTSTRAP_PASSWORD: "correct horse battery",
}
writeFileSync(
  configFile,
  JSON.stringify({
    models: [
      {
        sku: "priced",
        file: join(resolve(checkout), "model", "umpire-nano-q8_0.gguf"),
        price_m_input_tokens_usd: "30",
        price_m_output_tokens_usd: "60",
      },
    ],
  }),
)

const operate = (...args: string[]): unknown =>
  JSON.parse(execFileSync(process.execPath, [umpire, ...args, "--json"], { env, encoding: "utf8" }))

let url = ""
async function serve(): Promise<(signal: NodeJS.Signals) => Promise<void>> {
  const server = spawn(process.execPath, [umpire, "serve"], { env, stdio: ["ignore", "pipe", "inherit"] })
  for await (const line of createInterface({ input: server.stdout })) {
    url = /ready on (http\S+)/.exec(line)?.[1] ?? ""
    if (url !== "") break
  }
  return async (signal) => {
    server.kill(signal)
    await once(server, "exit")
  }
}

const stop = await serve()

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === "" ? null : JSON.parse(text)
}

const { data: organizations } = (await call("GET", "/v1/organizations")) as {
  data: { id: string; billing_account_id: string }[]
}
const [{ id, billing_account_id: account } = { id: "", billing_account_id: "" }] = organizations
operate("orgs", "create", "--name", "Second", "--owner", "ada@example.com")
operate("keys", "create", "--name", "ci", "--organization", id)
operate("keys", "create", "--name", "reader", "--permission", "api-read", "--organization", id)
await call("POST", `/v1/billing_accounts/${account}/refill`, { amount_in_cents: 2500 })
await call("PUT", `/v1/billing_accounts/${account}/spend_controls`, {
  prepaid_low_balance_warning_threshold_cents: 500,
  usage_spend_cutoff_threshold_cents: 900_000,
  usage_spend_warning_threshold_cents: 400_000,
})
const questions = [
  { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
  {
    type: "choice",
    name: "topic",
    instructions: "What is it about?",
    choices: [{ value: "a" }, { value: "b" }],
  },
]
for (const input of ["Late.", "Broken.", "Lost.", "Charged twice.", "Thank you."])
  await call("POST", "/v1/decisions", { model: "priced", input, questions })
const stored = await call("POST", "/v1/responses", {
  model: "priced",
  input: "Hello",
  max_output_tokens: 8,
  store: true,
})
await call("POST", "/v1/chat/completions", {
  model: "priced",
  messages: [{ role: "user", content: "Hi" }],
  max_tokens: 4,
})

// Settles what was used, and says how things stand.
const events = operate("analytics", "verify") as { events: number }
const exported = operate("analytics", "export", resolve(`${target}.parquet`)) as { events: number }
const facts = {
  organization: id,
  account,
  response: (stored as { id: string }).id,
  organizations: operate("orgs", "list"),
  keys: operate("keys", "list", "--organization", id),
  users: operate("users", "list"),
  ledger: operate("billing", "ledger", "--account", account),
  charged_events: events.events,
  exported_events: exported.events,
}
await stop("SIGTERM")
// Begins another part of its journal.
const kill = await serve()
// Journalled, and perhaps not applied when the server is killed.
for (const input of ["One more.", "And another."])
  await call("POST", "/v1/decisions", { model: "priced", input, questions })
await kill("SIGKILL")

// The old version is dead for certain, and its lock need not be waited for.
rmSync(join(dataDirectory, "database", "umpire.lock"))
mkdirSync(dirname(target), { recursive: true })
const database = await openPglite({ directory: join(dataDirectory, "database") })
// What is in the ledger and in chDB has left the journal of an installation that ran for long.
const newest = "journal/0000000002.journal"
const names = (await listFiles(dataDirectory)).filter(
  (name) => name === newest || !/^(?:database|models|analytics)\/|\.journal$/.test(name),
)
process.stdout.write(`The backup has ${names.join(", ")}\n`)
const files = await openFiles(dataDirectory, names)
await writeArchive(
  resolve(`${target}.backup`),
  {
    format: backupFormat,
    version,
    created_at: new Date().toISOString(),
    migrations: await appliedMigrations(database),
  },
  async (writer) => {
    await dumpRows(database, writer)
    await files.write(writer)
  },
)
await files.close()
await database.close()
writeFileSync(`${target}.json`, `${JSON.stringify(facts, null, 2)}\n`)
