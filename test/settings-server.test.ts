/** Settings of a whole server, of its engines and of what is built from them: each has the effect that its description names. */
import { once } from "node:events"
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs"
import { type Socket, connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import { loadConfig } from "../src/base/config.ts"
import type { Model } from "../src/base/catalog.ts"
import type { Config } from "../src/base/config-schema.ts"
import { silentLog } from "../src/base/log.ts"
import type { Loadable } from "../src/engine/cached-model.ts"
import type { ScoreEngine } from "../src/engine/engine.ts"
import { analyticsConsumers } from "../src/main/analytics.ts"
import { providersOf, sellerOf } from "../src/main/billing.ts"
import { loadCatalog } from "../src/main/catalog.ts"
import { platformParts } from "../src/main/platform.ts"
import { startEngine } from "../src/main/engines.ts"
import { freePort } from "./free-port.ts"
import { type TestServer, startServer } from "./server.ts"

const directory = mkdtempSync(join(tmpdir(), "umpire-settings-"))
afterAll(() => rmSync(directory, { recursive: true }))

const host = "127.0.0.2"
const publicUrl = "https://umpire.example.test"
const connectionsMax = 12
let port: number
let server: TestServer
const base = (): string => `http://${host}:${port}`
/** Its limit is its own. */
let spareKey: string
/** Before the first request. */
let startedMs: number

beforeAll(async () => {
  port = await freePort(host)
  server = await startServer({
    env: {
      UMPIRE_HOST: host,
      UMPIRE_PORT: String(port),
      UMPIRE_SERVER_PUBLIC_URL: publicUrl,
      UMPIRE_SERVER_TRUSTED_PROXIES: "1",
      UMPIRE_SERVER_CONNECTIONS_MAX: String(connectionsMax),
      // Longer than any other request takes on a busy machine.
      UMPIRE_SERVER_REQUEST_TIMEOUT_MS: "20000",
      UMPIRE_SERVER_DRAIN_MS: "120000",
      UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1",
      UMPIRE_LIMITS_BURST: "4",
      UMPIRE_LOG_LEVEL: "debug",
      UMPIRE_ANALYTICS_EMBEDDED: "false",
    },
  })
  startedMs = performance.now()
})
afterAll(async () => {
  await server.stop()
})

async function ask(path: string, init: RequestInit = {}, headers = {}): Promise<Response> {
  const authorization = `Bearer ${server.key}`
  return await fetch(base() + path, {
    ...init,
    headers: { authorization, connection: "close", "content-type": "application/json", ...headers },
  })
}

/** Without a key, whose limit is used up. */
const probe = async (path: string): Promise<Response> =>
  await fetch(base() + path, { headers: { connection: "close" } })

/** So much may wait for the rest for minutes: a body has a second for each KiB of it that has come. */
const beginning = " ".repeat(256 * 1024)

/** A request of whose body only the beginning comes. */
function begin(toHost: string, toPort: number, key: string): Client {
  return new Client(toHost, toPort).send(
    `POST /v1/decisions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${2 * beginning.length}\r\n\r\n${beginning}`,
  )
}

class Client {
  readonly socket: Socket
  text = ""

  constructor(toHost: string, toPort: number) {
    this.socket = connect(toPort, toHost)
    this.socket.on("error", () => undefined).on("data", (bytes) => (this.text += bytes.toString()))
  }

  send(text: string): this {
    this.socket.write(text)
    return this
  }

  async closed(): Promise<string> {
    // Not by once(): it rejects on an error, and a connection may well end by a reset.
    if (!this.socket.closed) await new Promise((resolve) => this.socket.once("close", resolve))
    return this.text
  }
}

test("server.host and server.port: it listens there and nowhere else", async () => {
  expect((await ask("/healthz")).status).toBe(200)
  const elsewhere = connect(port, "127.0.0.1")
  const [error] = (await once(elsewhere, "error")) as [NodeJS.ErrnoException]
  expect(error.code).toBe("ECONNREFUSED")
})

test("server.public_url: links have it", () => {
  expect(server.stdout()).toContain(`ready on ${publicUrl}`)
})

test("server.trusted_proxies: the address that a proxy names is the client's; limits.burst: so many requests at once, and one more is refused", async () => {
  const client = "198.51.100.7"
  const listed = await ask("/v1/organizations")
  const { data } = (await listed.json()) as { data: { id: string }[] }
  const path = `/v1/organizations/${data[0]?.id}`
  const body = JSON.stringify({ name: "one", permissions: ["inference"] })
  const made = await ask(`${path}/api_keys`, { method: "POST", body }, { "x-forwarded-for": client })
  expect(made.ok).toBe(true)
  ;({
    data: { secret: spareKey },
  } = (await made.json()) as { data: { secret: string } })
  const log = await ask(`${path}/audit_log?action=api_key.create`)
  const entries = (await log.json()) as { data: { ip: string }[] }
  expect(entries.data[0]?.ip).toBe(client)
  // Those above, and one of the test before.
  let [sent, refused] = [4, listed]
  for (; refused.status !== 429; sent++) refused = await ask("/v1/organizations")
  const seconds = (performance.now() - startedMs) / 1000
  // limits.requests_per_minute: one comes back after a minute.
  expect(sent).toBeGreaterThan(4)
  expect(sent).toBeLessThanOrEqual(5 + Math.floor(seconds / 60))
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(Math.max(0, 55 - seconds))
})

test("log.level: what is refused is logged at debug", async () => {
  await ask("/v1/nothing")
  await vi.waitFor(() => expect(server.stderr()).toContain('"level":"debug"'), { timeout: 60_000 })
})

test("server.request_timeout_ms: a request that takes longer is ended", async () => {
  const client = begin(host, port, spareKey)
  // Fast enough for the rate that a body must have, and never whole.
  const drip = setInterval(() => client.send(" ".repeat(4096)), 1000)
  const answer = await client.closed()
  clearInterval(drip)
  expect(answer).toMatch(/^HTTP\/1\.1 (?:408|500)/)
})

test("server.connections_max: more connections are closed at once", async () => {
  const clients = Array.from({ length: connectionsMax + 3 }, () => new Client(host, port))
  // One that sends nothing for 15 s is told so before it is closed.
  const closedAtOnce = (): Client[] => clients.filter(({ socket, text }) => socket.closed && text === "")
  await vi.waitFor(() => expect(closedAtOnce()).toHaveLength(3), { timeout: 60_000 })
  // Each is closed when the server has closed its side, so that its place is free again for the tests that follow.
  for (const client of clients) client.socket.end()
  await Promise.all(clients.map((client) => client.closed()))
})

test("server.connections_per_address_max, server.shutdown_ms: requests in flight are cut off after it", async () => {
  const other = await startServer({
    env: {
      UMPIRE_SERVER_CONNECTIONS_PER_ADDRESS_MAX: "3",
      UMPIRE_SERVER_SHUTDOWN_MS: "0",
      UMPIRE_ANALYTICS_EMBEDDED: "false",
    },
  })
  const { hostname, port: otherPort } = new URL(other.url)
  const clients = Array.from({ length: 5 }, () => begin(hostname, Number(otherPort), other.key))
  await vi.waitFor(() => expect(clients.filter(({ socket }) => socket.closed)).toHaveLength(2), {
    timeout: 60_000,
  })
  expect(await other.stop()).toBe(0)
  // At the latest after minutes without the rest of the body they would have got an answer.
  expect(await Promise.all(clients.map((client) => client.closed()))).toEqual(["", "", "", "", ""])
  expect(other.stderr()).not.toContain('"level":"debug"')
})

test("server.drain_ms: so long after /readyz fails, requests are still taken", async () => {
  server.process.kill("SIGTERM")
  await vi.waitFor(async () => expect((await probe("/readyz")).status).toBe(503), { timeout: 60_000 })
  expect((await probe("/healthz")).status).toBe(200)
  server.process.kill("SIGKILL")
})

const configOf = (environment: Record<string, string> = {}): Config =>
  loadConfig({ UMPIRE_DATA_DIR: join(directory, "data"), ...environment }, directory)

const platform = (environment: Record<string, string>) =>
  platformParts({ config: configOf(environment), catalog: { list: () => [] } } as never)

const sso = {
  UMPIRE_SSO_ISSUER: "https://issuer.example.test",
  UMPIRE_SSO_CLIENT_ID: "umpire",
  UMPIRE_SSO_CLIENT_SECRET: "secret",
}

test("sso.issuer, sso.client_id and sso.client_secret: together they turn single sign-on on", () => {
  expect(platform({}).singleSignOn).toBeNull()
  expect(platform(sso).singleSignOn).toMatchObject({ verifiedEmailOnly: true })
  for (const absent of ["UMPIRE_SSO_CLIENT_ID", "UMPIRE_SSO_CLIENT_SECRET"])
    expect(() => platform({ ...sso, [absent]: "" })).toThrow("sso.issuer needs")
})

test("sso.verified_email_only: handed to single sign-on", () => {
  const { singleSignOn } = platform({ ...sso, UMPIRE_SSO_VERIFIED_EMAIL_ONLY: "false" })
  expect(singleSignOn).toMatchObject({ verifiedEmailOnly: false })
})

test("email.recipients: handed to alert rules", () => {
  expect(platform({}).email).toEqual({ enabled: false, recipients: "members" })
  expect(platform({ UMPIRE_EMAIL_RECIPIENTS: "anyone" }).email).toMatchObject({ recipients: "anyone" })
})

test("billing.provider, billing.stripe_secret_key: new accounts pay there, and its secret is needed", async () => {
  const stripe = { UMPIRE_BILLING_PROVIDER: "stripe" }
  expect(platform({}).paymentProvider).toBe("local")
  await expect(providersOf(configOf(stripe))).rejects.toThrow("billing.stripe_secret_key is not set")
  const withKey = { ...stripe, UMPIRE_BILLING_STRIPE_SECRET_KEY: "sk_test_1" }
  expect([...(await providersOf(configOf(withKey))).keys()]).toEqual(["local", "stripe"])
  expect(platform(withKey).paymentProvider).toBe("stripe")
})

test("billing.seller_name, seller_address, seller_tax_number, tax_name and tax_percent: the seller of an invoice", () => {
  expect(sellerOf(configOf())).toEqual({ name: "Umpire", addressLines: [], taxNumber: null, tax: null })
  const seller = {
    UMPIRE_BILLING_SELLER_NAME: "Acme",
    UMPIRE_BILLING_SELLER_ADDRESS: "1 Road; 1000 Town",
    UMPIRE_BILLING_SELLER_TAX_NUMBER: "XX1",
    UMPIRE_BILLING_TAX_NAME: "GST",
    UMPIRE_BILLING_TAX_PERCENT: "7.5",
  }
  expect(sellerOf(configOf(seller))).toEqual({
    name: "Acme",
    addressLines: ["1 Road", "1000 Town"],
    taxNumber: "XX1",
    tax: { name: "GST", percent: 7.5 },
  })
})

test("analytics.embedded and analytics.clickhouse_url: whether events are kept", () => {
  const none = { UMPIRE_ANALYTICS_EMBEDDED: "false" }
  expect(analyticsConsumers(configOf())).toHaveLength(1)
  expect(analyticsConsumers(configOf(none))).toHaveLength(0)
  const clickhouse = { ...none, UMPIRE_CLICKHOUSE_URL: "http://127.0.0.1:1/umpire" }
  expect(analyticsConsumers(configOf(clickhouse))).toHaveLength(1)
})

async function open(
  environment: Record<string, string>,
  sku = "umpire-decide-small",
): Promise<ScoreEngine & Loadable> {
  const config = configOf(environment)
  const catalog = await loadCatalog([], { dataDirectory: config.data_dir })
  // In the catalog of every installation.
  const model = catalog.list().find((known) => known.sku === sku) as Model
  return await startEngine(config, model, silentLog)
}

const work = (length: number) => ({
  organizationId: "org_1",
  evidence: "word ".repeat(length),
  branches: [{ kind: "predicate" as const, question: "Is it?", yesMeans: "", noMeans: "" }],
})
const never = new AbortController().signal

const threadsOf = ({ pid }: Loadable): number => readdirSync(`/proc/${pid}/task`).length

test("engine.threads: so many threads compute", async () => {
  const [one, four] = [await open({ UMPIRE_ENGINE_THREADS: "1" }), await open({ UMPIRE_ENGINE_THREADS: "4" })]
  // Each of the three parts of the small network has its own; one part computes at a time.
  await expect.poll(() => threadsOf(four) - threadsOf(one)).toBe(3 * 3)
  await Promise.all([one.close(), four.close()])
})

test("engine.queue_max: so many requests wait for a model, and one more is refused", async () => {
  const engine = await open({ UMPIRE_ENGINE_QUEUE_MAX: "2", UMPIRE_ENGINE_THREADS: "1" })
  // They begin to run when all of them are tokenised.
  const all = Promise.withResolvers<void>()
  let tokenised = 0
  const admit = async (): Promise<void> => {
    if (++tokenised === 4) all.resolve()
    await all.promise
  }
  const ran = await Promise.allSettled(
    [1, 2, 3, 4].map(() => engine.score(work(300), { signal: never, admit })),
  )
  const refused = ran.filter(({ status }) => status === "rejected")
  expect(refused).not.toHaveLength(0)
  for (const { reason } of refused as PromiseRejectedResult[])
    expect(reason).toMatchObject({ code: "overloaded" })
  await engine.close()
})

async function contextAt(mebibytes: string): Promise<number> {
  const engine = await open({ UMPIRE_ENGINE_KV_MEMORY_MIB: mebibytes }, "smollm2-135m-instruct")
  const { contextTokensMax } = await engine.facts()
  await engine.close()
  return contextTokensMax
}

test("engine.kv_memory_mib: more memory holds the keys and values of more tokens", async () => {
  expect(await contextAt("1024")).toBeGreaterThan(await contextAt("16"))
})

test("engine.gpu: off opens no GPU build of llama.cpp", async () => {
  const engine = await open({ UMPIRE_ENGINE_GPU: "off" }, "smollm2-135m-instruct")
  const libraries = readFileSync(`/proc/${engine.pid}/maps`, "utf8")
  expect(libraries).toContain("llama-addon.node")
  expect(libraries).not.toMatch(/ggml-(?:cuda|vulkan|metal)/)
  await engine.close()
})
