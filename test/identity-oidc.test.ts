/** OIDC tokens against the running API: what is let in, and every known way of not deserving it. */
import { createHmac } from "node:crypto"
import { type JWTPayload, SignJWT, exportSPKI, importJWK } from "jose"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import { everyone } from "./identity-server.ts"
import { type Signer, makeSigner } from "./issuer.ts"
import { encode, nowSeconds, oidc, payloadOf, refusedAction, useOidcScene } from "./oidc-scene.ts"

const scene = useOidcScene()

// Times are told to the second, and a busy machine takes more of them between a token and its exchange.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }))
afterEach(() => void vi.useRealTimers())

describe("a token that deserves it", () => {
  test("is exchanged for an access token with the permissions of the first rule that matches", async () => {
    const answer = await scene.server.exchange(scene.providerId, await scene.issuer.token())
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      expires_in: expect.any(Number),
    })
    expect(answer.headers.get("cache-control")).toBe("no-store")
    expect(payloadOf(answer.body.access_token)).toMatchObject({
      sub: scene.providerId,
      org: scene.server.organizationId,
      rev: 1,
      permissions: ["inference"],
      attributes: { repo: "acme/app" },
      workload: "repo:acme/app:ref:main",
    })
  })

  test("is taken as JSON and under the parameter audience too", async () => {
    const body = {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: await scene.issuer.token(),
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      audience: scene.providerId,
    }
    expect(await scene.server.send("POST", "/v1/oauth/token", body, { bearer: null })).toMatchObject({
      status: 200,
    })
  })

  test.each([
    ["a configured lifetime that is shorter", 3600, 900],
    ["an assertion that ends earlier: not a second more", 100, 100],
  ])("lives as long as the shorter of the two: %s", async (_, left, most) => {
    const { body } = await scene.server.exchange(
      scene.providerId,
      await scene.issuer.token({ exp: nowSeconds() + left }),
    )
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
    const id = await scene.server.provide({
      config: oidc("https://static.example", { jwks: { keys: [signer.jwk] } }),
      authorization_rules: everyone("inference"),
    })
    const token = await scene.issuer.token({ iss: "https://static.example" }, { signer })
    expect(await scene.server.exchange(id, token)).toMatchObject({ status: 200 })
  })

  test.each([
    ["the second of its audiences is allowed", () => ({ aud: ["nope", "other"] })],
    ["it becomes valid within a minute", () => ({ nbf: nowSeconds() + 50, iat: nowSeconds() + 50 })],
    ["it is valid for exactly 24 hours", () => ({ iat: nowSeconds(), exp: nowSeconds() + 86_400 })],
  ] satisfies [string, () => JWTPayload][])("is accepted when %s", async (_, claims) => {
    expect(await scene.server.exchange(scene.providerId, await scene.issuer.token(claims()))).toMatchObject({
      status: 200,
    })
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
    token: async () =>
      `${encode({ alg: "none", kid: "first" })}.${(await scene.issuer.token()).split(".")[1]}.`,
    reason: /algorithm is not accepted/,
  },
  {
    name: "HS256 with the public key as secret",
    token: async () => {
      const key = await importJWK(scene.issuer.signer.jwk, "ES256")
      const input = `${encode({ alg: "HS256", kid: "first" })}.${(await scene.issuer.token()).split(".")[1]}`
      if (key instanceof Uint8Array) throw new Error("not a public key")
      return `${input}.${createHmac("sha256", await exportSPKI(key))
        .update(input)
        .digest("base64url")}`
    },
    reason: /algorithm is not accepted/,
  },
  {
    name: "a kid that the issuer does not have",
    token: async () => await scene.issuer.token({}, { header: { kid: "nope" } }),
    reason: /no key of the token's name/,
  },
  {
    name: "another key under the right kid",
    token: async () => await scene.issuer.token({}, { signer: await makeSigner("first") }),
    reason: /signature is wrong/,
  },
  {
    name: "claims changed after signing",
    token: async () => {
      const [header, , signature] = (await scene.issuer.token()).split(".")
      return `${header}.${encode({ iss: scene.issuer.url, aud: "umpire-test", exp: nowSeconds() + 60 })}.${signature}`
    },
    reason: /signature is wrong/,
  },
  {
    name: "expired",
    token: async () => await scene.issuer.token({ exp: nowSeconds() - 61, iat: nowSeconds() - 600 }),
    reason: /has expired/,
  },
  {
    name: "expired, within the leeway of clocks: its token would live on",
    token: async () => await scene.issuer.token({ exp: nowSeconds() - 1, iat: nowSeconds() - 600 }),
    reason: /about to expire/,
  },
  {
    name: "not yet valid",
    token: async () => await scene.issuer.token({ nbf: nowSeconds() + 70 }),
    reason: /not valid yet/,
  },
  {
    name: "issued in the future",
    token: async () => await scene.issuer.token({ iat: nowSeconds() + 70 }),
    reason: /issued in the future/,
  },
  {
    name: "valid for more than 24 hours",
    token: async () => await scene.issuer.token({ iat: nowSeconds(), exp: nowSeconds() + 86_401 }),
    reason: /more than 24 hours/,
  },
  {
    name: "without an expiry",
    token: async () => {
      const { privateKey } = scene.issuer.signer
      const jwt = new SignJWT({ iss: scene.issuer.url, aud: "umpire-test" })
      return await jwt.setProtectedHeader({ alg: "ES256", kid: "first" }).sign(privateKey)
    },
    reason: /does not say when it expires/,
  },
  {
    name: "wrong audience",
    token: async () => await scene.issuer.token({ aud: "umpire-tes" }),
    reason: /audience is not one of the allowed/,
  },
  {
    name: "an issuer that differs by a slash",
    token: async () => await scene.issuer.token({ iss: `${scene.issuer.url}/` }),
    reason: /another issuer/,
  },
  {
    name: "an issuer in capitals",
    token: async () => await scene.issuer.token({ iss: scene.issuer.url.replace("localhost", "LOCALHOST") }),
    reason: /another issuer/,
  },
  {
    name: "a critical header that nobody knows",
    token: async () => {
      const input = `${encode({ alg: "ES256", kid: "first", crit: ["x"], x: 1 })}.${(await scene.issuer.token()).split(".")[1]}`
      return `${input}.${Buffer.alloc(64).toString("base64url")}`
    },
    reason: /not supported/,
  },
  { name: "something that is no token", token: async () => "not.a.token", reason: /not a signed JWT/ },
  {
    name: "one of our own access tokens",
    token: async () =>
      (await scene.server.exchange(scene.providerId, await scene.issuer.token())).body.access_token as string,
    reason: /no key of the token's name|another issuer/,
  },
  {
    name: "a condition that is false",
    token: async () => await scene.issuer.token({ sub: "user:mallory" }),
    reason: /the condition is false/,
  },
  {
    name: "a first match that grants nothing",
    token: async () => await scene.issuer.token({ sub: "repo:evil/app" }),
    reason: /grants nothing/,
  },
  {
    name: "a claim that the condition needs and is not there",
    token: async () => await scene.issuer.tokenWithout("sub"),
    reason: /cannot be evaluated: field not found: sub/,
  },
]

describe("a token that does not deserve it is invalid_grant, and on record", () => {
  test.each(attacks)("$name", async ({ token, reason }) => {
    const before = await scene.server.audit(refusedAction)
    const answer = await scene.server.exchange(scene.providerId, await token())
    expect(answer).toMatchObject({
      status: 400,
      body: { error: "invalid_grant", error_description: expect.stringMatching(reason) },
    })
    expect(Object.keys(answer.body).toSorted()).toEqual(["error", "error_description"])
    const [entry, ...rest] = await scene.server.audit(refusedAction)
    expect(rest).toHaveLength(before.length)
    expect(entry).toMatchObject({
      actorKind: "workload",
      actorId: scene.providerId,
      resourceId: scene.providerId,
      after: { error: "invalid_grant", reason: expect.stringMatching(reason) },
    })
  })

  test("a token of another provider", async () => {
    const other = await makeSigner("first")
    const id = await scene.server.provide({
      config: oidc("https://other.example", { jwks: { keys: [other.jwk] } }),
      authorization_rules: everyone("inference"),
    })
    expect(await scene.server.exchange(id, await scene.issuer.token())).toMatchObject({
      status: 400,
      body: { error: "invalid_grant" },
    })
    const signedByOther = await scene.issuer.token({}, { signer: other })
    expect(await scene.server.exchange(scene.providerId, signedByOther)).toMatchObject({
      body: { error: "invalid_grant" },
    })
    expect((await scene.server.audit(refusedAction))[0]).toMatchObject({ resourceId: scene.providerId })
  })

  test("no kid where the issuer has several keys", async () => {
    const keys = [await makeSigner("one"), await makeSigner("two")]
    const id = await scene.server.provide({
      config: oidc("https://several.example", { jwks: { keys: keys.map(({ jwk }) => jwk) } }),
      authorization_rules: everyone("inference"),
    })
    const claims = { iss: "https://several.example" }
    const [first] = keys
    const header = { kid: undefined }
    expect(
      await scene.server.exchange(id, await scene.issuer.token(claims, { signer: first as Signer, header })),
    ).toMatchObject({
      body: { error: "invalid_grant", error_description: expect.stringMatching(/names no key/) },
    })
  })

  test("a replay after the provider was deactivated is invalid_target, and its access tokens stop", async () => {
    const id = await scene.server.provide({
      config: oidc(scene.issuer.url),
      authorization_rules: everyone("api-admin"),
    })
    const assertion = await scene.issuer.token()
    const { body } = await scene.server.exchange(id, assertion)
    const list = async () =>
      await scene.server.send("GET", scene.providersPath, undefined, { bearer: body.access_token })
    expect(await list()).toMatchObject({ status: 200 })
    await scene.server.send("PATCH", `${scene.providersPath}/${id}`, { active: false })
    expect(await list()).toMatchObject({ status: 401 })
    expect(await scene.server.exchange(id, assertion)).toMatchObject({
      status: 400,
      body: { error: "invalid_target" },
    })
    expect((await scene.server.audit(refusedAction))[0]).toMatchObject({
      resourceId: id,
      after: { error: "invalid_target" },
    })
    await scene.server.send("PATCH", `${scene.providersPath}/${id}`, { active: true })
    // The old revision stays dead, a new exchange works.
    expect(await list()).toMatchObject({ status: 401 })
    expect(await scene.server.exchange(id, assertion)).toMatchObject({ status: 200 })
  })
})
