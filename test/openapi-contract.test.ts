/** The whole product keeps to the document that it serves: every operation, with inputs made from its schemas. */
import fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Driver, createDriver } from "./openapi-driver.ts"
import { type TestServer, startServer } from "./server.ts"

/** `npm run test:long` sets more. */
const runsPerOperation = Number(process.env["UMPIRE_TEST_RUNS"] ?? 8)
const seedOfRuns = Number(process.env["UMPIRE_TEST_SEED"] ?? 20_262)

let server: TestServer
let driver: Driver
let ids: Record<string, readonly string[]>

beforeAll(async () => {
  // Refusals for haste would say nothing about the operations.
  server = await startServer({
    env: { UMPIRE_LIMITS_BURST: "1000000", UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1000000" },
  })
  const document = await (await fetch(`${server.url}/openapi.json`)).json()
  // The validator of the Platform's own suite has shown that the document has the form of one.
  driver = createDriver(document as Record<string, unknown>)
  const { body } = await send("GET", "/v1/organizations", undefined)
  const [organization] = (body as { data: { id: string; billing_account_id: string }[] }).data
  if (!organization) throw new Error("the bootstrap key sees no organization")
  ids = { org_id: [organization.id], billing_account_id: [organization.billing_account_id] }
})

afterAll(async () => {
  await server.stop()
})

async function send(
  method: string,
  path: string,
  body: unknown,
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const response = await fetch(server.url + path, {
    method,
    redirect: "manual",
    headers: {
      authorization: `Bearer ${server.key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  // Not JSON lines, which a content export has.
  const isJson = /^application\/json(?:;|$)/.test(response.headers.get("content-type") ?? "")
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

test(
  "every operation answers what it documents, never a 500, whatever it is sent",
  { timeout: 600_000 },
  async () => {
    const failures: string[] = []
    for (const operation of driver.operations) {
      const property = fc.asyncProperty(driver.requests(operation, ids), async ({ path, body }) => {
        driver.check(operation, await send(operation.method, path, body))
      })
      const result = await fc.check(property, { numRuns: runsPerOperation, seed: seedOfRuns })
      if (result.failed)
        failures.push(
          `${operation.operationId}: ${JSON.stringify(result.counterexample)}: ${String(result.errorInstance)}`,
        )
    }
    expect(failures).toEqual([])
    expect(driver.operations.length).toBeGreaterThan(60)
  },
)
