/** Token requests that are malformed, and what an access token is worth. */
import { generateKeyPairSync } from "node:crypto"
import { SignJWT } from "jose"
import { describe, expect, test } from "vitest"
import { everyone, startIdentityServer } from "./identity-server.ts"
import { encode, listWith, oidc, payloadOf, useOidcScene } from "./oidc-scene.ts"

const scene = useOidcScene()

const issueAdmin = async () => {
  const answer = await scene.server.exchange(
    scene.providerId,
    await scene.issuer.token({ sub: "repo:acme/admin:x" }),
  )
  return answer.body.access_token as string
}

const sendForm = async (parameters: Record<string, string> | [string, string][]) => {
  const response = await fetch(`${scene.server.url}/v1/oauth/token`, {
    method: "POST",
    body: new URLSearchParams(parameters),
  })
  return { status: response.status, body: await response.json() }
}
const goodRequest = async () => ({
  grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
  subject_token: await scene.issuer.token(),
  subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
  identity_provider_id: scene.providerId,
})
const without = async (name: string) =>
  Object.fromEntries(Object.entries(await goodRequest()).filter(([key]) => key !== name))

const post = async (type: string, body: string) => {
  const response = await fetch(`${scene.server.url}/v1/oauth/token`, {
    method: "POST",
    headers: { "content-type": type },
    body,
  })
  return { status: response.status, body: await response.json() }
}

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
    const { body } = await scene.server.send("GET", "/.well-known/jwks.json", undefined, { bearer: null })
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
    expect(await listWith(scene, token)).toMatchObject({ status: 200 })
    expect(await listWith(scene, `${header}.${richer}.${signature}`)).toMatchObject({ status: 401 })
    const { privateKey } = generateKeyPairSync("ed25519")
    const kid = (JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string }).kid
    const forged = await new SignJWT(payloadOf(token))
      .setProtectedHeader({ alg: "EdDSA", kid, typ: "umw+jwt" })
      .sign(privateKey)
    expect(await listWith(scene, forged)).toMatchObject({ status: 401 })
    const own = await new SignJWT(payloadOf(token))
      .setProtectedHeader({ alg: "EdDSA", kid: "A".repeat(43), typ: "umw+jwt" })
      .sign(privateKey)
    expect(await listWith(scene, own)).toMatchObject({ status: 401 })
    expect(await listWith(scene, await scene.issuer.token())).toMatchObject({ status: 401 })
    expect(payload).not.toBe("")
  })

  test("stops with every change of its provider and with its deletion", async () => {
    const make = async () => {
      const id = await scene.server.provide({
        config: oidc(scene.issuer.url),
        authorization_rules: everyone("api-admin"),
      })
      const { body } = await scene.server.exchange(id, await scene.issuer.token())
      const token = body.access_token as string
      expect(await listWith(scene, token)).toMatchObject({ status: 200 })
      return { id, token }
    }
    const changed = await make()
    await scene.server.send("PATCH", `${scene.providersPath}/${changed.id}`, { name: "renamed" })
    expect(await listWith(scene, changed.token)).toMatchObject({ status: 401 })
    const deleted = await make()
    expect(await scene.server.send("DELETE", `${scene.providersPath}/${deleted.id}`)).toMatchObject({
      status: 204,
    })
    expect(await listWith(scene, deleted.token)).toMatchObject({ status: 401 })
  })

  test("is accepted by another gateway, which hears of a deactivation from the database", async () => {
    const other = await startIdentityServer(scene.database)
    try {
      const id = await scene.server.provide({
        config: oidc(scene.issuer.url),
        authorization_rules: everyone("api-admin"),
      })
      const { body } = await scene.server.exchange(id, await scene.issuer.token())
      const there = async () =>
        (await other.send("GET", scene.providersPath, undefined, { bearer: body.access_token as string }))
          .status
      expect(await there()).toBe(200)
      await scene.server.send("PATCH", `${scene.providersPath}/${id}`, { active: false })
      // Sooner than its cache of 15 seconds would tell.
      await expect.poll(there).toBe(401)
    } finally {
      await other.close()
    }
  })
})
