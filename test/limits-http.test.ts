/** Limits of a whole server: of the disk that usage needs, of the bytes in memory, and of what one connection may ask ahead. */
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { afterAll, beforeAll, expect, test } from "vitest"
import { WebSocket } from "ws"
import { makeOrganization, operatorOf } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer

beforeAll(async () => {
  server = await startServer({
    env: {
      // More than any disk has.
      UMPIRE_JOURNAL_DISK_FREE_MIN_MIB: "1073741824",
      UMPIRE_LIMITS_REQUEST_BYTES_MAX_MIB: "16",
      UMPIRE_ANALYTICS_EMBEDDED: "false",
    },
  })
})
afterAll(async () => {
  await server.stop()
})

const decide = async (input: string): Promise<Response> =>
  await server.post("/v1/decisions", {
    model: "umpire-decide",
    input,
    questions: [{ type: "predicate", instructions: "Is it late?" }],
  })

test("a disk without room beside the reserve takes no file, and usage is still recorded", async () => {
  const form = new FormData()
  form.append("purpose", "batch")
  form.append("file", new Blob(["{}\n"]), "in.jsonl")
  const headers = { authorization: `Bearer ${server.key}` }
  const refused = await fetch(`${server.url}/v1/files`, { method: "POST", headers, body: form })
  expect(refused.status).toBe(507)
  expect(await refused.json()).toMatchObject({ error: { code: "storage_full" } })
  expect((await decide("The parcel is late.")).status).toBe(200)
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  expect(metrics).toMatch(/^umpire_disk_reserved_bytes 1125899906842624$/m)
  expect(metrics).toMatch(/^umpire_disk_free_bytes \d+$/m)
})

test("nor large bodies that would be stored, while smaller changes and answers go on", async () => {
  const [organization] = await (await operatorOf(server)).listAllOrganizations()
  const at = `/v1/organizations/${organization?.id}`
  const body = { name: "late", model: "umpire-decide", questions: [] }
  const refused = await server.post(`${at}/question_sets`, body)
  expect([refused.status, await refused.json()]).toMatchObject([507, { error: { code: "storage_full" } }])
  const answered = await server.post("/v1/responses", {
    model: "umpire-chat",
    input: "Hi",
    max_output_tokens: 16,
  })
  expect([answered.status, await answered.json()]).toMatchObject([200, { store: false }])
  const rule = await server.post(`${at}/alert_rules`, { name: "late", kind: "error_rate" })
  expect(rule.status).toBe(200)
})

test("nor answers of models to be kept for an Idempotency-Key, while those of small changes are", async () => {
  const send = async (path: string, body: object): Promise<Response> =>
    await fetch(server.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${server.key}`,
        "content-type": "application/json",
        "idempotency-key": "full",
      },
      body: JSON.stringify(body),
    })
  const questions = [{ type: "predicate", instructions: "Is it late?" }]
  const refused = await send("/v1/decisions", { model: "umpire-decide", input: "It is late.", questions })
  expect([refused.status, await refused.json()]).toMatchObject([507, { error: { code: "storage_full" } }])
  const [organization] = await (await operatorOf(server)).listAllOrganizations()
  const rule = { name: "kept", kind: "error_rate" }
  expect((await send(`/v1/organizations/${organization?.id}/alert_rules`, rule)).status).toBe(200)
})

test("a body beyond what one organization may hold is refused with a time to come back, and a small one is not", async () => {
  const content = "x".repeat(7 * 1024 * 1024)
  const body = { model: "umpire-chat", messages: [{ role: "user", content }] }
  const refused = await server.post("/v1/chat/completions", body)
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"])
  expect(await refused.json()).toMatchObject({ error: { code: "over_capacity" } })
  expect((await decide("The parcel is late.")).status).toBe(200)
})

async function openSocket(key = server.key): Promise<WebSocket> {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${key}` },
  })
  await once(socket, "open")
  return socket
}

async function answerOf(socket: WebSocket): Promise<unknown> {
  const [text] = (await once(socket, "message")) as [Buffer]
  return JSON.parse(text.toString())
}

async function heldBytes(): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text()
  return Number(/^umpire_request_bytes (\d+)$/m.exec(text)?.[1])
}

test("unfinished messages of WebSockets take the budget of one organization, and another one is answered", async () => {
  // Of what one organization may hold, 7 MiB, each takes 3.
  const part = Buffer.alloc(3 * 1024 * 1024, "x")
  const held = [await openSocket(), await openSocket()]
  for (const socket of held) socket.send(part, { fin: false })
  await expect.poll(heldBytes).toBeGreaterThanOrEqual(2 * part.length)
  const refused = await openSocket()
  const closed = once(refused, "close")
  refused.send(part, { fin: false })
  expect(await answerOf(refused)).toMatchObject({ status: 503, error: { code: "over_capacity" } })
  expect((await closed)[0]).toBe(1013)
  const { secret } = await makeOrganization(server, { name: "Second", owner: "second@example.com" })
  const other = await openSocket(secret)
  const large = "x".repeat(part.length)
  other.send(JSON.stringify({ type: "response.create", model: "umpire-chat", input: large, generate: false }))
  expect(await answerOf(other)).toMatchObject({ type: "response.created" })
  for (const socket of [...held, other]) socket.terminate()
  await expect.poll(heldBytes).toBe(0)
})

test.runIf(process.platform === "linux")(
  "the processes of engines have none of the gateway's settings, which may be secrets",
  async () => {
    expect((await decide("The parcel is late.")).status).toBe(200)
    const { pid } = server.process
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")
    const variables = children.flatMap((child) => readFileSync(`/proc/${child}/environ`, "utf8").split("\0"))
    expect(variables.some((one) => one.startsWith("PATH="))).toBe(true)
    expect(variables.filter((one) => one.startsWith("UMPIRE_"))).toEqual([])
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toContain("UMPIRE_")
  },
)

test("constant documents are sent once to a client that has them", async () => {
  const first = await fetch(`${server.url}/openapi.json`)
  const etag = first.headers.get("etag") ?? ""
  expect(await first.json()).toMatchObject({ openapi: expect.any(String) })
  const again = await fetch(`${server.url}/openapi.json`, { headers: { "if-none-match": etag } })
  expect([again.status, await again.text()]).toEqual([304, ""])
})

const residentBytes = (): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.process.pid}/status`, "utf8"))?.[1]) * 1024

test.runIf(process.platform === "linux")(
  "1,500 requests on a connection that reads nothing hold neither memory nor others",
  async () => {
    await (await fetch(`${server.url}/openapi.json`)).text()
    const before = residentBytes()
    const { hostname, port } = new URL(server.url)
    const socket = connect({ host: hostname, port: Number(port) }).on("error", () => undefined)
    socket.pause().write("GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(1_500))
    for (let at = 0; at < 50; at++) expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect(residentBytes() - before).toBeLessThan(256 * 1024 * 1024)
    socket.destroy()
  },
)
