/** OIDC tokens against the running API: what is let in, and every known way of not deserving it. */
import { createHmac, generateKeyPairSync } from "node:crypto"
import { type JWTPayload, SignJWT, exportSPKI, importJWK } from "jose"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { createIds } from "../src/base/ids.ts"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { type IdentityServer, everyone, startIdentityServer } from "./identity-server.ts"
import { Issuer, type Signer, makeSigner } from "./issuer.ts"
import { OpenSsl, caExtensions } from "./openssl.ts"
import { seeder } from "./platform.ts"

let database: Database
let openssl: OpenSsl
let issuer: Issuer
let server: IdentityServer
let providerId: string

const refusedAction = "workload_identity_provider.exchange_refused"
const oidc = (issuerUrl: string, more: object = {}) => ({
  type: "oidc",
  issuer_uri: issuerUrl,
  allowed_audiences: ["umpire-test", "other"],
  ...more,
})

beforeAll(async () => {
  database = await openTestDatabase()
  openssl = new OpenSsl()
  const ca = openssl.issue({ subject: "/CN=Issuer CA", extensions: caExtensions })
  issuer = await Issuer.start(openssl, ca)
  server = await startIdentityServer(database, { ca, fetchTimeoutMs: 500 })
  providerId = await server.provide({
    config: oidc(issuer.url),
    attribute_condition: "assertion.sub.startsWith('repo:')",
    attribute_transformations: { repo: "assertion.sub.split(':')[1]" },
    authorization_rules: [
      { condition: "attribute.repo == 'acme/admin'", permissions: ["inference", "api-admin"] },
      { condition: "attribute.repo == 'acme/app'", permissions: ["inference"] },
      { condition: "true", permissions: [] },
    ],
  })
})
afterAll(async () => {
  await server.close()
  await issuer.close()
  await database.close()
  openssl.close()
})

/** An organization has 20 providers at most: what a test made goes with it. */
afterEach(async () => {
  for (const { id } of (await server.send("GET", providersPath())).body.data as { id: string }[])
    if (id !== providerId) await server.send("DELETE", `${providersPath()}/${id}`)
})

const providersPath = () => `/v1/organizations/${server.organizationId}/workload_identity/providers`
const nowSeconds = () => Math.floor(Date.now() / 1000)
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
const payloadOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>

const listWith = async (bearer: string) => await server.send("GET", providersPath(), undefined, { bearer })
const issueAdmin = async () => {
  const answer = await server.exchange(providerId, await issuer.token({ sub: "repo:acme/admin:x" }))
  return answer.body.access_token as string
}

const misbehaving = async (prepare: (path: string) => void, reason: RegExp) => {
  const path = `/tenant-${Math.random()}`
  const issuerUrl = issuer.url + path
  issuer.answers.set(`${path}/.well-known/openid-configuration`, (_, response) => {
    response.end(JSON.stringify({ issuer: issuerUrl, jwks_uri: `${issuerUrl}/jwks` }))
  })
  prepare(path)
  const id = await server.provide({ config: oidc(issuerUrl), authorization_rules: everyone("inference") })
  const before = await server.audit(refusedAction)
  expect(await server.exchange(id, await issuer.token({ iss: issuerUrl }))).toMatchObject({
    status: 400,
    body: { error: "invalid_grant", error_description: expect.stringMatching(reason) },
  })
  expect(await server.audit(refusedAction)).toHaveLength(before.length + 1)
}
const sendForm = async (parameters: Record<string, string> | [string, string][]) => {
  const response = await fetch(`${server.url}/v1/oauth/token`, {
    method: "POST",
    body: new URLSearchParams(parameters),
  })
  return { status: response.status, body: await response.json() }
}
const goodRequest = async () => ({
  grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
  subject_token: await issuer.token(),
  subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
  identity_provider_id: providerId,
})
const without = async (name: string) =>
  Object.fromEntries(Object.entries(await goodRequest()).filter(([key]) => key !== name))

const post = async (type: string, body: string) => {
  const response = await fetch(`${server.url}/v1/oauth/token`, {
    method: "POST",
    headers: { "content-type": type },
    body,
  })
  return { status: response.status, body: await response.json() }
}
describe("a token that deserves it", () => {
  test("is exchanged for an access token with the permissions of the first rule that matches", async () => {
    const answer = await server.exchange(providerId, await issuer.token())
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      expires_in: expect.any(Number),
    })
    expect(answer.headers.get("cache-control")).toBe("no-store")
    expect(payloadOf(answer.body.access_token)).toMatchObject({
      sub: providerId,
      org: server.organizationId,
      rev: 1,
      permissions: ["inference"],
      attributes: { repo: "acme/app" },
      workload: "repo:acme/app:ref:main",
    })
  })

  test("is taken as JSON and under the parameter audience too", async () => {
    const body = {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: await issuer.token(),
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      audience: providerId,
    }
    expect(await server.send("POST", "/v1/oauth/token", body, { bearer: null })).toMatchObject({
      status: 200,
    })
  })

  test.each([
    ["a configured lifetime that is shorter", 3600, 900],
    ["an assertion that ends earlier, leeway included", 100, 160],
  ])("lives as long as the shorter of the two: %s", async (_, left, most) => {
    const { body } = await server.exchange(providerId, await issuer.token({ exp: nowSeconds() + left }))
    expect(body.expires_in).toBeLessThanOrEqual(most)
    expect(body.expires_in).toBeGreaterThan(most - 5)
  })

  test.each([
    ["RS256", "RS256"],
    ["PS256", "PS256"],
    ["EdDSA", "EdDSA"],
    ["ES384", "ES384"],
  ])("may be signed with %s", async (kid, alg) => {
    const signer = await makeSigner(kid, alg)
    const id = await server.provide({
      config: oidc("https://static.example", { jwks: { keys: [signer.jwk] } }),
      authorization_rules: everyone("inference"),
    })
    const token = await issuer.token({ iss: "https://static.example" }, { signer })
    expect(await server.exchange(id, token)).toMatchObject({ status: 200 })
  })

  test.each([
    ["the second of its audiences is allowed", () => ({ aud: ["nope", "other"] })],
    ["it expired less than a minute ago", () => ({ exp: nowSeconds() - 40, iat: nowSeconds() - 600 })],
    ["it becomes valid within a minute", () => ({ nbf: nowSeconds() + 50, iat: nowSeconds() + 50 })],
    ["it is valid for exactly 24 hours", () => ({ iat: nowSeconds(), exp: nowSeconds() + 86_400 })],
  ] satisfies [string, () => JWTPayload][])("is accepted when %s", async (_, claims) => {
    expect(await server.exchange(providerId, await issuer.token(claims()))).toMatchObject({ status: 200 })
  })
})

interface Attack {
  readonly name: string
  readonly token: () => Promise<string>
  readonly reason: RegExp
}

const attacks: readonly Attack[] = [
  {
    name: "alg none",
    token: async () => `${encode({ alg: "none", kid: "first" })}.${(await issuer.token()).split(".")[1]}.`,
    reason: /algorithm is not accepted/,
  },
  {
    name: "HS256 with the public key as secret",
    token: async () => {
      const key = await importJWK(issuer.signer.jwk, "ES256")
      const input = `${encode({ alg: "HS256", kid: "first" })}.${(await issuer.token()).split(".")[1]}`
      if (key instanceof Uint8Array) throw new Error("not a public key")
      return `${input}.${createHmac("sha256", await exportSPKI(key))
        .update(input)
        .digest("base64url")}`
    },
    reason: /algorithm is not accepted/,
  },
  {
    name: "a kid that the issuer does not have",
    token: async () => await issuer.token({}, { header: { kid: "nope" } }),
    reason: /no key of the token's name/,
  },
  {
    name: "another key under the right kid",
    token: async () => await issuer.token({}, { signer: await makeSigner("first") }),
    reason: /signature is wrong/,
  },
  {
    name: "claims changed after signing",
    token: async () => {
      const [header, , signature] = (await issuer.token()).split(".")
      return `${header}.${encode({ iss: issuer.url, aud: "umpire-test", exp: nowSeconds() + 60 })}.${signature}`
    },
    reason: /signature is wrong/,
  },
  {
    name: "expired",
    token: async () => await issuer.token({ exp: nowSeconds() - 61, iat: nowSeconds() - 600 }),
    reason: /has expired/,
  },
  {
    name: "not yet valid",
    token: async () => await issuer.token({ nbf: nowSeconds() + 70 }),
    reason: /not valid yet/,
  },
  {
    name: "issued in the future",
    token: async () => await issuer.token({ iat: nowSeconds() + 70 }),
    reason: /issued in the future/,
  },
  {
    name: "valid for more than 24 hours",
    token: async () => await issuer.token({ iat: nowSeconds(), exp: nowSeconds() + 86_401 }),
    reason: /more than 24 hours/,
  },
  {
    name: "without an expiry",
    token: async () => {
      const { privateKey } = issuer.signer
      const jwt = new SignJWT({ iss: issuer.url, aud: "umpire-test" })
      return await jwt.setProtectedHeader({ alg: "ES256", kid: "first" }).sign(privateKey)
    },
    reason: /does not say when it expires/,
  },
  {
    name: "wrong audience",
    token: async () => await issuer.token({ aud: "umpire-tes" }),
    reason: /audience is not one of the allowed/,
  },
  {
    name: "an issuer that differs by a slash",
    token: async () => await issuer.token({ iss: `${issuer.url}/` }),
    reason: /another issuer/,
  },
  {
    name: "an issuer in capitals",
    token: async () => await issuer.token({ iss: issuer.url.replace("localhost", "LOCALHOST") }),
    reason: /another issuer/,
  },
  {
    name: "a critical header that nobody knows",
    token: async () => {
      const input = `${encode({ alg: "ES256", kid: "first", crit: ["x"], x: 1 })}.${(await issuer.token()).split(".")[1]}`
      return `${input}.${Buffer.alloc(64).toString("base64url")}`
    },
    reason: /not supported/,
  },
  { name: "something that is no token", token: async () => "not.a.token", reason: /not a signed JWT/ },
  {
    name: "one of our own access tokens",
    token: async () => (await server.exchange(providerId, await issuer.token())).body.access_token as string,
    reason: /no key of the token's name|another issuer/,
  },
  {
    name: "a condition that is false",
    token: async () => await issuer.token({ sub: "user:mallory" }),
    reason: /the condition is false/,
  },
  {
    name: "a first match that grants nothing",
    token: async () => await issuer.token({ sub: "repo:evil/app" }),
    reason: /grants nothing/,
  },
  {
    name: "a claim that the condition needs and is not there",
    token: async () => await issuer.tokenWithout("sub"),
    reason: /cannot be evaluated: field not found: sub/,
  },
]

describe("a token that does not deserve it is invalid_grant, and on record", () => {
  test.each(attacks)("$name", async ({ token, reason }) => {
    const before = await server.audit(refusedAction)
    const answer = await server.exchange(providerId, await token())
    expect(answer).toMatchObject({
      status: 400,
      body: { error: "invalid_grant", error_description: expect.stringMatching(reason) },
    })
    expect(Object.keys(answer.body).toSorted()).toEqual(["error", "error_description"])
    const [entry, ...rest] = await server.audit(refusedAction)
    expect(rest).toHaveLength(before.length)
    expect(entry).toMatchObject({
      actorKind: "workload",
      actorId: providerId,
      resourceId: providerId,
      after: { error: "invalid_grant", reason: expect.stringMatching(reason) },
    })
  })

  test("a token of another provider", async () => {
    const other = await makeSigner("first")
    const id = await server.provide({
      config: oidc("https://other.example", { jwks: { keys: [other.jwk] } }),
      authorization_rules: everyone("inference"),
    })
    expect(await server.exchange(id, await issuer.token())).toMatchObject({
      status: 400,
      body: { error: "invalid_grant" },
    })
    const signedByOther = await issuer.token({}, { signer: other })
    expect(await server.exchange(providerId, signedByOther)).toMatchObject({
      body: { error: "invalid_grant" },
    })
    expect((await server.audit(refusedAction))[0]).toMatchObject({ resourceId: providerId })
  })

  test("no kid where the issuer has several keys", async () => {
    const keys = [await makeSigner("one"), await makeSigner("two")]
    const id = await server.provide({
      config: oidc("https://several.example", { jwks: { keys: keys.map(({ jwk }) => jwk) } }),
      authorization_rules: everyone("inference"),
    })
    const claims = { iss: "https://several.example" }
    const [first] = keys
    const header = { kid: undefined }
    expect(
      await server.exchange(id, await issuer.token(claims, { signer: first as Signer, header })),
    ).toMatchObject({
      body: { error: "invalid_grant", error_description: expect.stringMatching(/names no key/) },
    })
  })

  test("a replay after the provider was deactivated is invalid_target, and its access tokens stop", async () => {
    const id = await server.provide({ config: oidc(issuer.url), authorization_rules: everyone("api-admin") })
    const assertion = await issuer.token()
    const { body } = await server.exchange(id, assertion)
    const list = async () =>
      await server.send("GET", providersPath(), undefined, { bearer: body.access_token })
    expect(await list()).toMatchObject({ status: 200 })
    await server.send("PATCH", `${providersPath()}/${id}`, { active: false })
    expect(await list()).toMatchObject({ status: 401 })
    expect(await server.exchange(id, assertion)).toMatchObject({
      status: 400,
      body: { error: "invalid_target" },
    })
    expect((await server.audit(refusedAction))[0]).toMatchObject({
      resourceId: id,
      after: { error: "invalid_target" },
    })
    await server.send("PATCH", `${providersPath()}/${id}`, { active: true })
    // The old revision stays dead, a new exchange works.
    expect(await list()).toMatchObject({ status: 401 })
    expect(await server.exchange(id, assertion)).toMatchObject({ status: 200 })
  })
})

describe("an issuer that misbehaves is refused within its bounds", () => {
  const ten = Buffer.alloc(10 * 1024 * 1024, " ")

  test("a key set of 10 MB, announced", async () => {
    await misbehaving((path) => {
      issuer.answers.set(`${path}/jwks`, (_, response) => {
        response.setHeader("content-length", String(ten.length))
        response.end(ten)
      })
    }, /more than 1048576 bytes/)
  })

  test("a key set of 10 MB, unannounced", async () => {
    await misbehaving((path) => {
      issuer.answers.set(`${path}/jwks`, (_, response) => {
        response.write(ten)
        response.end()
      })
    }, /more than 1048576 bytes/)
  })

  test("a key set that redirects to loopback", async () => {
    await misbehaving((path) => {
      issuer.answers.set(`${path}/jwks`, (_, response) => {
        response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()
      })
    }, /answers 302; redirects are not followed/)
  })

  test("a key set that never ends", async () => {
    await misbehaving((path) => {
      issuer.answers.set(`${path}/jwks`, (_, response) => void response.write('{"keys":['))
    }, /does not answer in time/)
  })

  test("a key set of 101 keys", async () => {
    await misbehaving((path) => {
      const keys = Array.from({ length: 101 }, (_, index) => ({ ...issuer.signer.jwk, kid: String(index) }))
      issuer.answers.set(`${path}/jwks`, (_, response) => void response.end(JSON.stringify({ keys })))
    }, /more than 100 keys/)
  })

  test("a discovery document that names another issuer", async () => {
    await misbehaving((path) => {
      issuer.answers.set(`${path}/.well-known/openid-configuration`, (_, response) => {
        response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` }))
      })
    }, /names another issuer/)
  })

  test("keys at a plain HTTP address", async () => {
    await misbehaving((path) => {
      issuer.answers.set(`${path}/.well-known/openid-configuration`, (_, response) => {
        response.end(JSON.stringify({ issuer: issuer.url + path, jwks_uri: "http://localhost/jwks" }))
      })
    }, /not at an HTTPS address/)
  })

  test("a symmetric key in the set is not used", async () => {
    await misbehaving((path) => {
      const keys = [{ kty: "oct", k: "AAAA", kid: "first", alg: "ES256" }]
      issuer.answers.set(`${path}/jwks`, (_, response) => void response.end(JSON.stringify({ keys })))
    }, /no key of the token's name/)
  })

  test("300 tokens with unknown kids at once cost one fetch, and do not fill the audit log", async () => {
    const id = await server.provide({ config: oidc(issuer.url), authorization_rules: everyone("inference") })
    await server.exchange(id, await issuer.token())
    const fetches = () => issuer.asked.filter((path) => path === "/jwks").length
    const before = fetches()
    const tokens = await Promise.all(
      Array.from({ length: 300 }, (_, index) => issuer.token({}, { header: { kid: `nope-${index}` } })),
    )
    const statuses = new Set<number>()
    for (let at = 0; at < tokens.length; at += 100)
      for (const { status } of await Promise.all(
        tokens.slice(at, at + 100).map((one) => server.exchange(id, one)),
      ))
        statuses.add(status)
    expect([...statuses]).toEqual([400])
    expect(fetches() - before).toBeLessThanOrEqual(1)
    const recorded = (await server.audit(refusedAction)).filter(({ resourceId }) => resourceId === id)
    expect(recorded).toHaveLength(60)
  })
})

describe("a policy that never ends", () => {
  const many = `[${Array.from({ length: 500 }, () => 1).join(",")}]`
  const bomb = `${many}.all(a, ${many}.all(b, ${many}.all(c, a + b + c > 0)))`
  const longest = `assertion.sub in [${Array.from({ length: 550 }, (_, index) => `'repo:acme/site-${String(index).padStart(10, "0")}'`).join(",")},assertion.sub]`

  test("is refused and on record, while exchanges of other organizations go on", async () => {
    const seed = seeder({ database, ids: createIds() })
    const organization = await seed.organization("Bystander", await seed.billingAccount())
    const bearer = (await seed.key(organization, ["inference", "api-admin"])).value
    const made = await server.send(
      "POST",
      `/v1/organizations/${organization}/workload_identity/providers`,
      { name: "calm", config: oidc(issuer.url), authorization_rules: everyone("inference") },
      { bearer },
    )
    const bombed = await server.provide({
      config: oidc(issuer.url),
      authorization_rules: [{ condition: bomb, permissions: ["inference"] }, ...everyone("inference")],
    })
    const assertion = await issuer.token()
    const calm = async () => await server.exchange(made.body.data.id as string, assertion)
    const attacks = [await server.exchange(bombed, assertion)]
    const state = { over: false }
    const attack = async () => {
      while (!state.over) attacks.push(await server.exchange(bombed, assertion))
    }
    const attackers = Promise.all(Array.from({ length: 4 }, attack))
    await calm()
    const before = attacks.length
    for (let turn = 0; turn < 20; turn++) expect(await calm()).toMatchObject({ status: 200 })
    // Had each of them waited for an attack to end, as many attacks would have ended.
    expect(attacks.length - before).toBeLessThan(20)
    state.over = true
    await attackers
    for (const answer of attacks)
      expect(answer).toMatchObject({
        status: 400,
        body: {
          error: "invalid_grant",
          error_description: expect.stringMatching(/takes longer than 200 ms/),
        },
      })
    expect((await server.audit(refusedAction))[0]).toMatchObject({ resourceId: bombed })
  })

  test("of nearly 16 KiB that does end is evaluated", async () => {
    expect(longest.length).toBeGreaterThan(15_000)
    expect(longest.length).toBeLessThanOrEqual(16_384)
    const id = await server.provide({
      config: oidc(issuer.url),
      authorization_rules: [{ condition: longest, permissions: ["inference"] }, ...everyone()],
    })
    expect(await server.exchange(id, await issuer.token())).toMatchObject({ status: 200 })
  })
})

describe("a token request that is malformed", () => {
  test.each([
    ["no grant_type", async () => await without("grant_type"), "invalid_request"],
    [
      "another grant",
      async () => ({ ...(await goodRequest()), grant_type: "password" }),
      "unsupported_grant_type",
    ],
    ["no subject_token", async () => await without("subject_token"), "invalid_request"],
    ["no subject_token_type", async () => await without("subject_token_type"), "invalid_request"],
    ["no provider", async () => await without("identity_provider_id"), "invalid_request"],
    ["two providers", async () => ({ ...(await goodRequest()), audience: "wi_other" }), "invalid_request"],
    [
      "a parameter twice",
      async () => [...Object.entries(await goodRequest()), ["subject_token", "x"]],
      "invalid_request",
    ],
    [
      "another type to issue",
      async () => ({ ...(await goodRequest()), requested_token_type: "x" }),
      "invalid_request",
    ],
    [
      "a token over 16 KiB",
      async () => ({ ...(await goodRequest()), subject_token: "x".repeat(16_385) }),
      "invalid_request",
    ],
    [
      "an unknown provider",
      async () => ({ ...(await goodRequest()), identity_provider_id: `wi_${"0".repeat(26)}` }),
      "invalid_target",
    ],
    [
      "what is no provider",
      async () => ({ ...(await goodRequest()), identity_provider_id: "'; --" }),
      "invalid_target",
    ],
  ] satisfies [string, () => Promise<Record<string, string> | [string, string][] | string[][]>, string][])(
    "%s",
    async (_, parameters, error) => {
      const answer = await sendForm(await parameters())
      expect(answer).toMatchObject({ status: 400, body: { error, error_description: expect.any(String) } })
    },
  )

  test("another content type is 415 and a large body 413, both in OAuth's form", async () => {
    expect(await post("text/plain", "x")).toMatchObject({ status: 415, body: { error: "invalid_request" } })
    const large = "x".repeat(64 * 1024 + 1)
    expect(await post("application/x-www-form-urlencoded", large)).toMatchObject({
      status: 413,
      body: { error: "invalid_request" },
    })
    expect(await post("application/json", "{")).toMatchObject({
      status: 400,
      body: { error: "invalid_request" },
    })
    expect(await post("application/json", '{"grant_type":5}')).toMatchObject({
      status: 400,
      body: { error: "invalid_request" },
    })
  })
})

describe("an access token", () => {
  test("can be checked with the published keys", async () => {
    const token = await issueAdmin()
    const { body } = await server.send("GET", "/.well-known/jwks.json", undefined, { bearer: null })
    const { kid } = JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()) as {
      kid: string
    }
    const keys = body.keys as { kid: string; d?: string }[]
    expect(keys.map((key) => key.kid)).toContain(kid)
    expect(keys.every(({ d }) => d === undefined)).toBe(true)
  })

  test("is worth nothing when it is changed, or signed by someone else", async () => {
    const token = await issueAdmin()
    const [header = "", payload = "", signature = ""] = token.split(".")
    const richer = encode({
      ...payloadOf(token),
      permissions: ["inference", "api-read", "api-write", "api-admin"],
    })
    expect(await listWith(token)).toMatchObject({ status: 200 })
    expect(await listWith(`${header}.${richer}.${signature}`)).toMatchObject({ status: 401 })
    const { privateKey } = generateKeyPairSync("ed25519")
    const kid = (JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string }).kid
    const forged = await new SignJWT(payloadOf(token))
      .setProtectedHeader({ alg: "EdDSA", kid, typ: "umw+jwt" })
      .sign(privateKey)
    expect(await listWith(forged)).toMatchObject({ status: 401 })
    const own = await new SignJWT(payloadOf(token))
      .setProtectedHeader({ alg: "EdDSA", kid: "A".repeat(43), typ: "umw+jwt" })
      .sign(privateKey)
    expect(await listWith(own)).toMatchObject({ status: 401 })
    expect(await listWith(await issuer.token())).toMatchObject({ status: 401 })
    expect(payload).not.toBe("")
  })

  test("stops with every change of its provider and with its deletion", async () => {
    const make = async () => {
      const id = await server.provide({
        config: oidc(issuer.url),
        authorization_rules: everyone("api-admin"),
      })
      const { body } = await server.exchange(id, await issuer.token())
      const token = body.access_token as string
      expect(await listWith(token)).toMatchObject({ status: 200 })
      return { id, token }
    }
    const changed = await make()
    await server.send("PATCH", `${providersPath()}/${changed.id}`, { name: "renamed" })
    expect(await listWith(changed.token)).toMatchObject({ status: 401 })
    const deleted = await make()
    expect(await server.send("DELETE", `${providersPath()}/${deleted.id}`)).toMatchObject({ status: 204 })
    expect(await listWith(deleted.token)).toMatchObject({ status: 401 })
  })

  test("is accepted by another gateway, which hears of a deactivation from the database", async () => {
    const other = await startIdentityServer(database)
    try {
      const id = await server.provide({
        config: oidc(issuer.url),
        authorization_rules: everyone("api-admin"),
      })
      const { body } = await server.exchange(id, await issuer.token())
      const there = async () =>
        (await other.send("GET", providersPath(), undefined, { bearer: body.access_token as string })).status
      expect(await there()).toBe(200)
      await server.send("PATCH", `${providersPath()}/${id}`, { active: false })
      // Sooner than its cache of 15 seconds would tell.
      await expect.poll(there, { timeout: 10_000 }).toBe(401)
    } finally {
      await other.close()
    }
  })
})
