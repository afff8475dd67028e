/** The operator's commands, as they are typed, beside the running server and without it. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"

const run = promisify(execFile)
const command = join(import.meta.dirname, "..", "bin", "umpire.js")
let dataDirectory: string
let server: TestServer | null

beforeAll(async () => {
  dataDirectory = mkdtempSync(join(tmpdir(), "umpire-cli-"))
  server = await startServer({ dataDirectory })
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

test("the audit log verifies beside the server and, once it has stopped, without it", async () => {
  const beside = await umpire("audit", "verify")
  expect([beside.status, beside.stdout]).toEqual([0, expect.stringMatching(/intact, [1-9]\d* entries/)])
  await server?.stop()
  server = null
  const alone = await umpire("audit", "verify")
  expect([alone.status, alone.stdout]).toEqual([0, beside.stdout])
})
