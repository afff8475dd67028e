/**
 * The whole way, on the real product with PostgreSQL: a certified OpenID provider and openssl's chains vouch for workloads,
 * which then work. The other tests of identity run on the embedded database.
 */
import { spawn } from "node:child_process"
import { type Server, createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { text as readAll } from "node:stream/consumers"
import { exportJWK, generateKeyPair } from "jose"
import Provider from "oidc-provider"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { permissions } from "../src/contract/access.ts"
import { tokenExchangeGrant, tokenTypes } from "../src/contract/identity.ts"
import { exchangeCertificate } from "./identity-server.ts"
import { type Issued, OpenSsl, caExtensions, clientExtensions, serverExtensions } from "./openssl.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { type TestServer, startServer } from "./server.ts"

const command = join(import.meta.dirname, "..", "bin", "umpire.js")
const audience = "https://umpire.example"
const clientSecret = "a client secret of the tests"

let openssl: OpenSsl
let ca: Issued
let provider: { issuer: string; rotate(): Promise<void>; close(): Promise<void> }
let database: FreshDatabase
let server: TestServer
let organizationId: string
let billingAccountId: string

beforeAll(async () => {
  openssl = new OpenSsl()
  ca = openssl.issue({ subject: "/CN=Loopback CA", extensions: caExtensions })
  provider = await startProvider()
  const mtls = openssl.issue({
    subject: "/CN=mtls",
    issuer: ca,
    extensions: serverExtensions("DNS:*.mtls.example"),
  })
  database = await freshDatabase()
  server = await startServer({
    env: {
      UMPIRE_DATABASE_URL: database.url,
      UMPIRE_IDENTITY_ALLOW_PRIVATE: "true",
      UMPIRE_IDENTITY_CA_FILE: ca.certificateFile,
      UMPIRE_IDENTITY_TOKEN_LIFETIME_MINUTES: "5",
      UMPIRE_IDENTITY_MTLS_HOST: "0.0.0.0",
      UMPIRE_IDENTITY_MTLS_PORT: "0",
      UMPIRE_IDENTITY_MTLS_CERT_FILE: mtls.certificateFile,
      UMPIRE_IDENTITY_MTLS_KEY_FILE: mtls.keyFile,
    },
  })
  const { body } = await call("GET", "/v1/organizations", server.key)
  ;({ id: organizationId, billing_account_id: billingAccountId } = body.data[0])
})
afterAll(async () => {
  await server.stop()
  await database.drop()
  await provider.close()
  openssl.close()
})

/** oidc-provider over TLS, with signing keys that can be changed while it runs. */
async function startProvider(): Promise<typeof provider> {
  const certificate = openssl.issue({
    subject: "/CN=localhost",
    issuer: ca,
    extensions: serverExtensions("DNS:localhost"),
  })
  let answer: ReturnType<Provider["callback"]> | undefined
  const web: Server = createServer(
    { cert: certificate.certificate, key: certificate.key },
    (request, response) => void answer?.(request, response),
  )
  await new Promise<void>((resolve) => web.listen(0, "localhost", resolve))
  // A listening TCP server has an address of this form.
  const issuer = `https://localhost:${(web.address() as AddressInfo).port}`
  let rotations = 0
  const rotate = async (): Promise<void> => {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true })
    const key = { ...(await exportJWK(privateKey)), kid: `key-${++rotations}`, alg: "RS256", use: "sig" }
    answer = makeProvider(issuer, key).callback()
  }
  await rotate()
  return {
    issuer,
    rotate,
    close: async () => {
      web.closeAllConnections()
      await new Promise<void>((resolve) => web.close(() => resolve()))
    },
  }
}

/** Gives a service its access token as a JWT for the audience that it asks for. */
function makeProvider(issuer: string, key: object): Provider {
  return new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [
      {
        client_id: "deployer",
        client_secret: clientSecret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: "deploy",
          audience: resource,
          accessTokenTTL: 600,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  })
}

async function vouch(): Promise<string> {
  const { Agent, request } = await import("undici")
  const dispatcher = new Agent({ connect: { ca: ca.certificate } })
  const { body } = await request(`${provider.issuer}/token`, {
    dispatcher,
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`deployer:${encodeURIComponent(clientSecret)}`).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: new URLSearchParams({ grant_type: "client_credentials", resource: audience }).toString(),
  })
  const answer = (await body.json()) as { access_token?: string }
  await dispatcher.close()
  if (!answer.access_token) throw new Error(JSON.stringify(answer))
  return answer.access_token
}

interface Answer {
  readonly status: number
  // Tests look into bodies of every shape; what is not there fails their expectations.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

async function call(method: string, path: string, bearer: string, body?: object): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${bearer}`,
      ...(body ? { "content-type": "application/json" } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await response.text()
  return { status: response.status, body: text === "" ? null : (JSON.parse(text) as unknown) }
}

async function provide(config: object, granted: readonly string[]): Promise<string> {
  const { body } = await call("POST", providersPath(), server.key, {
    name: `provider ${Math.random()}`,
    config,
    authorization_rules: [{ condition: "true", permissions: granted }],
  })
  return body.data.id as string
}

async function exchange(providerId: string, token: string): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: tokenExchangeGrant,
      subject_token: token,
      subject_token_type: tokenTypes.jwt,
      identity_provider_id: providerId,
    }),
  })
  return { status: response.status, body: await response.json() }
}

const organization = () => `/v1/organizations/${organizationId}`
const account = () => `/v1/billing_accounts/${billingAccountId}`
const providersPath = () => `/v1/organizations/${organizationId}/workload_identity/providers`
const oidc = () => ({ type: "oidc", issuer_uri: provider.issuer, allowed_audiences: [audience] })
const decision = {
  model: "umpire-decide",
  input: "Hello there, good morning to you.",
  questions: [{ type: "predicate", name: "greeting", instructions: "Is this a greeting?" }],
}
const overview = () => {
  const now = Date.now()
  const query = `range_start=${now - 3_600_000}&range_end=${now}&group_by=model&metric=requests`
  return `/v1/organizations/${organizationId}/analytics/overview?${query}`
}

test("tokens of a real OpenID provider: exchange, decide, look at analytics, rotate keys, deactivate", async () => {
  const id = await provide(oidc(), ["inference", "api-read"])
  const { status, body } = await exchange(id, await vouch())
  expect([status, body.token_type]).toEqual([200, "Bearer"])
  const token = body.access_token as string
  expect(await call("POST", "/v1/decisions", token, decision)).toMatchObject({
    status: 200,
    body: { answers: [{ name: "greeting" }] },
  })
  // Without an analytics engine the endpoint says so; either way the token is let in.
  expect([200, 503]).toContain((await call("GET", overview(), token)).status)
  await provider.rotate()
  expect(await exchange(id, await vouch())).toMatchObject({ status: 200 })
  const off = await call("PATCH", `${providersPath()}/${id}`, server.key, { active: false })
  expect(off.status).toBe(200)
  // At once on the gateway that made the change.
  expect(await call("POST", "/v1/decisions", token, decision)).toMatchObject({ status: 401 })
  expect(await exchange(id, await vouch())).toMatchObject({ status: 400, body: { error: "invalid_target" } })
})

test("openssl's chains: exchange over mTLS, decide, look at analytics, deactivate", async () => {
  const root = openssl.issue({ subject: "/CN=Workload Root", extensions: caExtensions })
  const issuing = openssl.issue({ subject: "/CN=Workload CA", issuer: root, extensions: caExtensions })
  const leaf = openssl.issue({
    subject: "/CN=worker",
    issuer: issuing,
    extensions: [...clientExtensions, "subjectAltName=URI:spiffe://acme.example/worker"],
  })
  const id = await provide({ type: "x509", trust_anchors: [root.certificate] }, ["inference", "api-read"])
  const port = Number(/"port":(\d+),"msg":"client certificates/.exec(server.stderr())?.[1])
  const request = {
    port,
    ca,
    name: `${id.replace("_", "-")}.mtls.example`,
    client: { certificate: leaf.certificate + issuing.certificate, key: leaf.key },
  }
  const { status, body } = await exchangeCertificate(request)
  expect([status, body.token_type, body.expires_in]).toEqual([200, "Bearer", 5 * 60])
  expect(server.stderr()).toContain('"host":"0.0.0.0"')
  const token = body.access_token as string
  expect(await call("POST", "/v1/decisions", token, decision)).toMatchObject({ status: 200 })
  expect([200, 503]).toContain((await call("GET", overview(), token)).status)
  const off = await call("PATCH", `${providersPath()}/${id}`, server.key, { active: false })
  expect(off.status).toBe(200)
  // At once on the gateway that made the change.
  expect(await call("POST", "/v1/decisions", token, decision)).toMatchObject({ status: 401 })
  expect(await exchangeCertificate(request)).toMatchObject({ status: 400, body: { error: "invalid_target" } })
})

describe("the contract's table of accepted principals, for workload tokens", () => {
  const tokens = new Map<string, string>()
  beforeAll(async () => {
    const assertion = await vouch()
    for (const permission of permissions) {
      const { body } = await exchange(await provide(oidc(), [permission]), assertion)
      tokens.set(permission, body.access_token as string)
    }
  })

  const controls = {
    prepaid_low_balance_warning_threshold_cents: null,
    usage_spend_cutoff_threshold_cents: null,
    usage_spend_warning_threshold_cents: null,
  }
  /** What lets a token in; null where no workload token is. Written from the contract, not from the code. */
  const rows: readonly [
    name: string,
    method: string,
    path: () => string,
    needs: string | null,
    body?: object,
  ][] = [
    ["organizations", "GET", () => "/v1/organizations", null],
    ["organization", "GET", organization, null],
    ["invites", "GET", () => `${organization()}/invites`, null],
    ["models", "GET", () => `${organization()}/models`, null],
    ["routing policy", "GET", () => `${organization()}/routing_policy`, null],
    ["routing policy replacement", "PUT", () => `${organization()}/routing_policy`, null, {}],
    ["analytics overview", "GET", overview, "api-read"],
    ["sequence", "GET", () => `${organization()}/analytics/sequences/seq_1`, "api-read"],
    ["providers", "GET", providersPath, "api-admin"],
    ["billing account", "GET", account, null],
    ["refill", "POST", () => `${account()}/refill`, null, { amount_in_cents: 1000 }],
    ["refill record", "GET", () => `${account()}/refills/cp_1`, "api-read"],
    ["spend controls", "GET", () => `${account()}/spend_controls`, "api-read"],
    ["spend controls replacement", "PUT", () => `${account()}/spend_controls`, "api-admin", controls],
    ["usage spend", "GET", () => `${account()}/usage_spend`, "api-read"],
    ["decisions", "POST", () => "/v1/decisions", "inference", decision],
  ]

  test.each(rows)("%s", async (_, method, path, needs, body) => {
    for (const [permission, token] of tokens) {
      const answer = await call(method, path(), token, body)
      const { status } = answer
      if (needs === null)
        expect([permission, status, codeOf(answer)]).toEqual([permission, 403, "principal_not_accepted"])
      else if (permission !== needs)
        expect([permission, status, codeOf(answer)]).toEqual([permission, 403, "permission_denied"])
      else expect([200, 404, 503], `${permission} is let in`).toContain(status)
    }
  })
})

const codeOf = ({ body }: Answer): string => body.error.code as string

const umpire = async (
  args: readonly string[],
  input = "",
): Promise<{ status: number | null; stdout: string }> => {
  const child = spawn(process.execPath, [command, "identity", ...args], {
    env: { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory },
    stdio: ["pipe", "pipe", "inherit"],
  })
  child.stdin.end(input)
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
  return { stdout: await readAll(child.stdout), status: await ended }
}

describe("umpire identity test", () => {
  test("says for a token which step refuses it and why, or what it would be granted", async () => {
    const { body } = await call("POST", providersPath(), server.key, {
      name: "tried",
      config: oidc(),
      attribute_transformations: { client: "assertion.client_id" },
      authorization_rules: [
        { condition: "attribute.client == 'deployer'", permissions: ["inference"] },
        { condition: "true", permissions: [] },
      ],
    })
    const id = body.data.id as string
    const accepted = await umpire(["test", id, "--token", "-"], await vouch())
    expect(accepted.status).toBe(0)
    expect(accepted.stdout).toMatch(/ok +assertion +signature, issuer, audience and times are right/)
    expect(accepted.stdout).toMatch(/ok +authorization_rules +rule 0 is the first that matches/)
    expect(accepted.stdout).toMatch(/attributes: {"client":"deployer"}\naccepted with inference/)
    await call("PATCH", `${providersPath()}/${id}`, server.key, {
      config: { ...oidc(), allowed_audiences: ["other"] },
    })
    const refused = await umpire(["test", id, "--token", "-", "--json"], await vouch())
    expect(refused.status).toBe(1)
    expect(JSON.parse(refused.stdout)).toMatchObject({
      accepted: false,
      steps: [
        { step: "provider", outcome: "passed" },
        { step: "assertion", outcome: "refused", message: "the token's audience is not one of the allowed" },
        { step: "attribute_condition", outcome: "not_reached" },
        { step: "attribute_transformations", outcome: "not_reached" },
        { step: "authorization_rules", outcome: "not_reached" },
      ],
      permissions: [],
    })
    expect((await umpire(["list"])).stdout).toContain(id)
  })

  test("tries a certificate without its private key", async () => {
    const root = openssl.issue({ subject: "/CN=Tried Root", extensions: caExtensions })
    const leaf = openssl.issue({ subject: "/CN=tried", issuer: root, extensions: clientExtensions })
    const id = await provide({ type: "x509", trust_anchors: [root.certificate] }, ["inference"])
    const accepted = await umpire(["test", id, "--certificate", leaf.certificateFile])
    expect([accepted.status, accepted.stdout]).toEqual([0, expect.stringMatching(/accepted with inference/)])
    const other = openssl.issue({ subject: "/CN=tried", extensions: clientExtensions })
    const refused = await umpire(["test", id, "--certificate", other.certificateFile])
    expect([refused.status, refused.stdout]).toEqual([
      1,
      expect.stringMatching(/refused +assertion .*trust anchor/),
    ])
  })
})
