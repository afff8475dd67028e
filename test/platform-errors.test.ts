/** Every status of the contract's table of errors is reached, with the body that the contract describes. */
import { mkdtemp, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, expect, test } from "vitest"
import { z } from "zod"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { platformTable } from "../src/contract/table.ts"
import { migrate } from "../src/store/migrate.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, type Sent, seeder, startPlatform } from "./platform.ts"
import { startPostgres, stopPostgres } from "./postgres.ts"

let platform: Platform
let org: string
let owner: string
let member: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  const seed = seeder(platform)
  org = await seed.organization("Acme", await seed.billingAccount())
  const ownerId = await seed.user("owner@example.com")
  const memberId = await seed.user("member@example.com")
  await seed.member(org, ownerId, "primary_owner")
  await seed.member(org, memberId, "member")
  owner = await seed.session(ownerId)
  member = await seed.session(memberId)
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

interface Scenario {
  readonly what: string
  readonly expected: readonly [number, string]
  /** From the organization's own path. */
  readonly request: () => readonly [method: string, path: string, sent: Sent]
}

const json = { "content-type": "application/json" }
/** One byte more than the 64 KiB that a Platform body may have, and the longest that is read. */
const policyOf = (bytes: number): string => `{${" ".repeat(bytes - 2)}}`

const scenarios: readonly Scenario[] = [
  {
    what: "malformed JSON",
    expected: [400, "malformed_json"],
    request: () => ["PUT", "/routing_policy", { bearer: owner, body: '{"mode":' }],
  },
  {
    what: "bytes that are not UTF-8",
    expected: [400, "malformed_json"],
    request: () => ["PUT", "/routing_policy", { bearer: owner, body: Buffer.from([0x7b, 0xff, 0x7d]) }],
  },
  {
    what: "an empty body",
    expected: [400, "malformed_json"],
    request: () => ["PUT", "/routing_policy", { bearer: owner, body: "" }],
  },
  {
    what: "a bad query",
    expected: [400, "invalid_query"],
    request: () => ["GET", "/members?limit=many", { bearer: owner }],
  },
  {
    what: "a malformed Idempotency-Key",
    expected: [400, "invalid_header"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: {}, headers: { "idempotency-key": "a b" } },
    ],
  },
  { what: "no credentials", expected: [401, "missing_credentials"], request: () => ["GET", "", {}] },
  {
    what: "credentials that are not a bearer value",
    expected: [401, "missing_credentials"],
    request: () => ["GET", "", { headers: { authorization: "Basic dTpw" } }],
  },
  {
    what: "an unknown bearer value",
    expected: [401, "invalid_credentials"],
    request: () => ["GET", "", { bearer: "ump_nobody_0123456789abcdef" }],
  },
  {
    what: "a member where an owner is needed",
    expected: [403, "permission_denied"],
    request: () => ["PUT", "/routing_policy", { bearer: member, body: {} }],
  },
  {
    what: "an unknown member",
    expected: [404, "not_found"],
    request: () => ["DELETE", "/members/usr_0", { bearer: owner }],
  },
  {
    what: "a state that prevents it",
    expected: [409, "conflict"],
    request: () => [
      "POST",
      "/invites",
      { bearer: owner, body: { email: "member@example.com", role: "member" } },
    ],
  },
  {
    what: "an old version",
    expected: [412, "precondition_failed"],
    request: () => ["PUT", "/routing_policy", { bearer: owner, body: {}, headers: { "if-match": '"99"' } }],
  },
  {
    what: "a body over the limit",
    expected: [413, "body_over_limit"],
    request: () => ["PUT", "/routing_policy", { bearer: owner, body: policyOf(65_537), headers: json }],
  },
  {
    what: "a content type that is not JSON",
    expected: [415, "not_json"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: "{}", headers: { "content-type": "text/plain" } },
    ],
  },
  {
    what: "a body over the limit that is not JSON either: the content type is named first",
    expected: [415, "not_json"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: "x".repeat(65_537), headers: { "content-type": "text/plain" } },
    ],
  },
  {
    what: "a structured content type",
    expected: [415, "not_json"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: "{}", headers: { "content-type": "application/vnd.api+json" } },
    ],
  },
  {
    what: "a body that is said to be compressed, and is not",
    expected: [415, "not_json"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: "{}", headers: { ...json, "content-encoding": "gzip" } },
    ],
  },
  {
    what: "a coding that does not exist",
    expected: [415, "not_json"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: "{}", headers: { ...json, "content-encoding": "identity, rot13" } },
    ],
  },
  {
    what: "a key that is given twice",
    expected: [422, "invalid_body"],
    request: () => [
      "PUT",
      "/routing_policy",
      { bearer: owner, body: '{"regions":["paris"],"regions":[]}', headers: json },
    ],
  },
  {
    what: "a lone surrogate",
    expected: [422, "invalid_body"],
    request: () => ["PATCH", "", { bearer: owner, body: `{"name":"${String.raw`\ud800`}"}`, headers: json }],
  },
  {
    what: "a body that does not match the schema",
    expected: [422, "invalid_body"],
    request: () => ["PUT", "/routing_policy", { bearer: owner, body: { mode: 1 } }],
  },
  {
    what: "an address that does not exist",
    expected: [404, "not_found"],
    request: () => ["GET", "/nothing", { bearer: owner }],
  },
]

function checkShape({ body, headers }: Answer): void {
  expect(Object.keys(body)).toEqual(["error"])
  const { message, code, details } = body.error
  expect(Object.keys(body.error).toSorted()).toEqual(["code", "details", "message"])
  expect(message).toMatch(/^Cannot /)
  expect(typeof code).toBe("string")
  expect(details === null || Array.isArray(details)).toBe(true)
  expect(headers.get("content-type")).toMatch(/^application\/json/)
  expect(headers.get("x-request-id")).toBeTruthy()
}

test.each(scenarios)("$what: $expected", async ({ expected, request }) => {
  const [method, path, sent] = request()
  const answer = await platform.send(method, `/v1/organizations/${org}${path}`, sent)
  expect([answer.status, answer.body.error.code]).toEqual(expected)
  checkShape(answer)
})

test("a body of exactly the limit is read", async () => {
  const sent = { bearer: owner, body: policyOf(65_536), headers: json }
  expect((await platform.send("PUT", `/v1/organizations/${org}/routing_policy`, sent)).status).toBe(204)
})

test("a 422 names the offending paths", async () => {
  const body = { name: "", permissions: ["everything"], scope: "world", extra: 1 }
  const { body: answer } = await platform.send("POST", `/v1/organizations/${org}/api_keys`, {
    bearer: owner,
    body,
  })
  const paths = (answer.error.details as { path: string }[]).map(({ path }) => path)
  expect(paths.toSorted()).toEqual(["extra", "name", "permissions.0", "scope"])
})

test("401, permission, organization, role and resource win over the shape of the body, in this order", async () => {
  const at = `/v1/organizations/${org}`
  const path = `${at}/routing_policy`
  const { value } = await seeder(platform).key(org, ["api-read"])
  const elsewhere = await seeder(platform).organization("Elsewhere", await seeder(platform).billingAccount())
  const garbage = { body: "{", headers: { "content-type": "text/plain" } }
  const put = async (to: string, bearer?: string): Promise<number> =>
    (await platform.send("PUT", to, { ...(bearer === undefined ? {} : { bearer }), ...garbage })).status
  expect(await put(path)).toBe(401)
  expect(await put(path, value)).toBe(403)
  expect(await put(`/v1/organizations/${elsewhere}/routing_policy`, owner)).toBe(404)
  expect(await put(path, member)).toBe(403)
  expect(await put(path, owner)).toBe(415)
})

/** What the path names besides the organization; what lies inside a set is found with the set. */
const inside = new Set(["org_id", "billing_account_id", "example_id", "item_id", "label"])

test("a body for what does not exist is not looked at, whatever endpoint it is for", async () => {
  const broken = { bearer: owner, body: "{", headers: json }
  const asked = Object.values<Endpoint>(platformTable).filter(
    ({ path, body }) =>
      path.startsWith("/v1/organizations/{org_id}/") &&
      !(body instanceof z.ZodUndefined) &&
      [...path.matchAll(/\{(\w+)\}/g)].some(([, name = ""]) => !inside.has(name)),
  )
  expect(asked.length).toBeGreaterThan(15)
  for (const { method, path } of asked) {
    const address = path.replace("{org_id}", org).replaceAll(/\{\w+\}/g, "nothing")
    expect((await platform.send(method, address, broken)).body.error.code, `${method} ${path}`).toBe(
      "not_found",
    )
  }
})

test("a store that is down is 503 with a time to try again, which tells nothing else, and a known key still authenticates", async () => {
  const folder = await mkdtemp(join(tmpdir(), "umpire-store-"))
  const server = await startPostgres(folder)
  const database = await openPostgres({ url: server.url })
  await migrate(database)
  const down = await startPlatform(database)
  try {
    const seed = seeder(down)
    const lost = await seed.organization("Lost", await seed.billingAccount())
    const known = await seed.key(lost, ["api-read", "api-admin"])
    const unknown = await seed.key(lost, ["api-read"])
    const ask = async (bearer: string): Promise<Answer> =>
      await down.send("GET", `/v1/organizations/${lost}/members`, { bearer })
    expect((await ask(known.value)).status).toBe(200)
    await stopPostgres(server, "SIGKILL")
    const answers = [
      await ask(known.value),
      await ask(unknown.value),

      await down.send("POST", `/v1/organizations/${lost}/api_keys`, {
        bearer: known.value,
        body: { name: "late", permissions: ["api-read"] },
      }),
    ]
    for (const answer of answers) {
      expect([answer.status, answer.body.error.code]).toEqual([503, "store_unavailable"])
      expect(answer.headers.get("retry-after")).toBe("5")
      checkShape(answer)
      expect(JSON.stringify(answer.body)).not.toMatch(
        /postgres|ECONN|127\.0\.0\.1|SELECT|INSERT|\.ts|at .*:\d+/i,
      )
    }
  } finally {
    await down.close()
    await database.close()
    await rm(folder, { recursive: true, force: true })
  }
})

/** A head is at most 16 KiB; what is around the padding takes less than a hundred bytes. */
const headBytesMax = 16 * 1024

test.each([
  ["no HTTP at all", "hello\r\n\r\n", 400],
  ["a header without a colon", "GET / HTTP/1.1\r\nhost: a\r\nbroken\r\n\r\n", 400],
  ["a head that is too long", `GET / HTTP/1.1\r\nhost: a\r\nx: ${"a".repeat(headBytesMax)}\r\n\r\n`, 431],
])("%s is answered in JSON, and the connection ends", async (_what, sent, status) => {
  const { hostname, port } = new URL(platform.url)
  const socket = connect(Number(port), hostname)
  socket.write(sent)
  const [head = "", body = ""] = (await text(socket)).split("\r\n\r\n")
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(head).toContain("connection: close")
  expect(JSON.parse(body)).toMatchObject({ error: { code: "invalid_request", details: null } })
})

test("a head just below its limit is read", async () => {
  const headers = { "x-padding": "a".repeat(headBytesMax - 512) }
  expect((await fetch(`${platform.url}/healthz`, { headers })).status).toBe(200)
})
