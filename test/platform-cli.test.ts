/** The operator's commands, as they are typed, beside the running server and without it. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"
import { startReceiver } from "./webhook-receiver.ts"

const run = promisify(execFile)
const command = join(import.meta.dirname, "..", "bin", "umpire.js")
let dataDirectory: string
let server: TestServer | null

beforeAll(async () => {
  dataDirectory = mkdtempSync(join(tmpdir(), "umpire-cli-"))
  server = await startServer({ dataDirectory, env: { UMPIRE_WEBHOOKS_ALLOW_PRIVATE: "true" } })
})

afterAll(async () => {
  await server?.stop()
  rmSync(dataDirectory, { recursive: true, force: true })
})

interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

async function umpire(...line: string[]): Promise<Ran> {
  const env = { PATH: process.env["PATH"], UMPIRE_DATA_DIR: dataDirectory }
  return await run(process.execPath, [command, ...line], { env }).then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    (error: Ran & { code: number }) => ({ status: error.code, stdout: error.stdout, stderr: error.stderr }),
  )
}

// The commands answer JSON of every shape; what is not there fails the expectations.
// oxlint-disable-next-line typescript/no-explicit-any
const json = async (...line: string[]): Promise<any> => JSON.parse((await umpire(...line, "--json")).stdout)

test("an organization is made beside the running server, and its owner signs in with the link", async () => {
  const made = await json("orgs", "create", "--name", "Acme", "--owner", "ada@example.com")
  expect(made).toMatchObject({ name: "Acme", link: expect.any(String) })
  const signedIn = await fetch(`${server?.url}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ link: made.link }),
  })
  expect(signedIn.status).toBe(200)
  expect((await umpire("orgs", "delete", made.id)).stdout).toBe(`${made.id} is deleted.\n`)
})

test("a revoked key stops with the next request", async () => {
  const { id, secret } = await json("keys", "create", "--name", "ops", "--permission", "api-read")
  const ask = async (): Promise<number> =>
    (await fetch(`${server?.url}/v1/organizations`, { headers: { authorization: `Bearer ${secret}` } }))
      .status
  expect(await ask()).toBe(200)
  await umpire("keys", "revoke", id)
  expect(await ask()).toBe(401)
})

test("models are listed by what they are for, and one of the catalog is no virtual model", async () => {
  const { stdout } = await umpire("models", "list")
  expect(stdout).toMatch(/^umpire-decide +decisions +\d/m)
  expect(stdout).toMatch(/^smollm2-135m-instruct +decisions and text +\d/m)
  expect(stdout).toMatch(/^all-minilm-l6-v2 +embeddings +\d/m)
  const removed = await umpire("models", "remove", "umpire-decide")
  expect([removed.status, removed.stderr]).toEqual([2, expect.stringContaining("is a model of the catalog")])
})

test("webhooks and alert rules are kept from the command line, and what was sent is sent again", async () => {
  const receiver = await startReceiver()
  const api = ["--url", server?.url ?? "", "--key", server?.key ?? ""]
  const hook = await json("webhooks", "add", `${receiver.url}/hook`, "--event", "alert.firing", ...api)
  expect(hook).toMatchObject({ events: ["alert.firing"], secret: expect.stringMatching(/^whsec_/) })
  const line = ["Errors", "--kind", "error_rate", "--threshold", "0.2", "--target", "model=umpire-decide"]
  const rule = await json("alerts", "create", ...line, "--webhook", hook.id, ...api)
  expect(rule).toMatchObject({ threshold: 0.2, target: { model: "umpire-decide" } })
  expect((await umpire("alerts", "list", ...api)).stdout).toMatch(/Errors +error_rate +0\.2/)
  const [sent] = await json("alerts", "test", rule.id, ...api)
  const deliveries = async () => await json("webhooks", "deliveries", hook.id, "--state", "succeeded", ...api)
  await expect.poll(deliveries).toMatchObject([{ id: sent.delivery_id }])
  // Once, unless this process paused for longer than a receiver is waited for.
  const [{ attempts }] = await deliveries()
  await umpire("webhooks", "resend", hook.id, sent.delivery_id, ...api)
  const attemptsNow = async () => (await deliveries())[0]?.attempts
  await expect.poll(attemptsNow).toBeGreaterThan(attempts)
  expect(new Set(receiver.at("/hook").map(({ body }) => JSON.parse(body).id)).size).toBe(1)
  expect((await umpire("alerts", "delete", rule.id, ...api)).stdout).toBe(`Deleted ${rule.id}.\n`)
  expect((await umpire("webhooks", "remove", hook.id, ...api)).stdout).toBe(`Removed ${hook.id}.\n`)
  expect((await umpire("webhooks", "list", ...api)).stdout).toBe("There are no webhooks.\n")
  await receiver.close()
})

test.each([
  [["alerts"], 2, /say list, create, delete or test/],
  [["alerts", "create", "Errors", "--kind", "errors"], 2, /--kind takes one of balance_below/],
  [["alerts", "create", "Errors", "--kind", "latency", "--threshold", "x"], 2, /--threshold takes a number/],
  [["webhooks", "resend", "wh_1"], 2, /umpire webhooks resend wh_/],
  [["webhooks", "add", "https://x.test", "--event", "all"], 2, /--event takes one of alert\.firing/],
])("umpire %j exits with %d and says why", async (line, status, sentence) => {
  const ran = await umpire(...line, "--key", "ump_none")
  expect([ran.status, ran.stderr]).toEqual([status, expect.stringMatching(sentence)])
})

test("the audit log verifies beside the server and, once it has stopped, without it", async () => {
  const beside = await umpire("audit", "verify")
  expect([beside.status, beside.stdout]).toEqual([0, expect.stringMatching(/intact, [1-9]\d* entries/)])
  await server?.stop()
  server = null
  const alone = await umpire("audit", "verify")
  expect([alone.status, alone.stdout]).toEqual([0, beside.stdout])
})
