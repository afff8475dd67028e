/** Issuers that misbehave and policies that never end: each is refused within its bounds. */
import { describe, expect, test } from "vitest"
import { createIds } from "../src/base/ids.ts"
import { everyone, startIdentityServer } from "./identity-server.ts"
import { oidc, refusedAction, useOidcScene } from "./oidc-scene.ts"
import { seeder } from "./platform.ts"

const scene = useOidcScene()

const misbehaving = async (prepare: (path: string) => void, reason: RegExp, at = scene.server) => {
  const path = `/tenant-${Math.random()}`
  const issuerUrl = scene.issuer.url + path
  scene.issuer.answers.set(`${path}/.well-known/openid-configuration`, (_, response) => {
    response.end(JSON.stringify({ issuer: issuerUrl, jwks_uri: `${issuerUrl}/jwks` }))
  })
  prepare(path)
  const id = await scene.server.provide({
    config: oidc(issuerUrl),
    authorization_rules: everyone("inference"),
  })
  const before = await scene.server.audit(refusedAction)
  expect(await at.exchange(id, await scene.issuer.token({ iss: issuerUrl }))).toMatchObject({
    status: 400,
    body: { error: "invalid_grant", error_description: expect.stringMatching(reason) },
  })
  expect(await scene.server.audit(refusedAction)).toHaveLength(before.length + 1)
}

describe("an issuer that misbehaves is refused within its bounds", () => {
  const ten = Buffer.alloc(10 * 1024 * 1024, " ")

  test("a key set of 10 MB, announced", async () => {
    await misbehaving((path) => {
      scene.issuer.answers.set(`${path}/jwks`, (_, response) => {
        response.setHeader("content-length", String(ten.length))
        response.end(ten)
      })
    }, /more than 1048576 bytes/)
  })

  test("a key set of 10 MB, unannounced", async () => {
    await misbehaving((path) => {
      scene.issuer.answers.set(`${path}/jwks`, (_, response) => {
        response.write(ten)
        response.end()
      })
    }, /more than 1048576 bytes/)
  })

  test("a key set that redirects to loopback", async () => {
    await misbehaving((path) => {
      scene.issuer.answers.set(`${path}/jwks`, (_, response) => {
        response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()
      })
    }, /answers 302; redirects are not followed/)
  })

  test("a key set that never ends", async () => {
    // Only here the time runs out: elsewhere a busy machine may need more.
    const hasty = await startIdentityServer(scene.database, { ca: scene.ca, fetchTimeoutMs: 500 })
    try {
      await misbehaving(
        (path) => {
          scene.issuer.answers.set(`${path}/jwks`, (_, response) => void response.write('{"keys":['))
        },
        /does not answer in time/,
        hasty,
      )
    } finally {
      await hasty.close()
    }
  })

  test("a key set of 101 keys", async () => {
    await misbehaving((path) => {
      const keys = Array.from({ length: 101 }, (_, index) => ({
        ...scene.issuer.signer.jwk,
        kid: String(index),
      }))
      scene.issuer.answers.set(`${path}/jwks`, (_, response) => void response.end(JSON.stringify({ keys })))
    }, /more than 100 keys/)
  })

  test("a discovery document that names another issuer", async () => {
    await misbehaving((path) => {
      scene.issuer.answers.set(`${path}/.well-known/openid-configuration`, (_, response) => {
        response.end(JSON.stringify({ issuer: scene.issuer.url, jwks_uri: `${scene.issuer.url}/jwks` }))
      })
    }, /names another issuer/)
  })

  test("keys at a plain HTTP address", async () => {
    await misbehaving((path) => {
      scene.issuer.answers.set(`${path}/.well-known/openid-configuration`, (_, response) => {
        response.end(JSON.stringify({ issuer: scene.issuer.url + path, jwks_uri: "http://localhost/jwks" }))
      })
    }, /not at an HTTPS address/)
  })

  test("a symmetric key in the set is not used", async () => {
    await misbehaving((path) => {
      const keys = [{ kty: "oct", k: "AAAA", kid: "first", alg: "ES256" }]
      scene.issuer.answers.set(`${path}/jwks`, (_, response) => void response.end(JSON.stringify({ keys })))
    }, /no key of the token's name/)
  })

  test("300 tokens with unknown kids at once cost one fetch, and do not fill the audit log", async () => {
    const id = await scene.server.provide({
      config: oidc(scene.issuer.url),
      authorization_rules: everyone("inference"),
    })
    await scene.server.exchange(id, await scene.issuer.token())
    const fetches = () => scene.issuer.asked.filter((path) => path === "/jwks").length
    const before = fetches()
    const tokens = await Promise.all(
      Array.from({ length: 300 }, (_, index) => scene.issuer.token({}, { header: { kid: `nope-${index}` } })),
    )
    const startedMs = performance.now()
    const statuses = new Set<number>()
    for (let at = 0; at < tokens.length; at += 100)
      for (const { status } of await Promise.all(
        tokens.slice(at, at + 100).map((one) => scene.server.exchange(id, one)),
      ))
        statuses.add(status)
    expect([...statuses]).toEqual([400])
    // One, and another for each half minute that the flood took.
    expect(fetches() - before).toBeLessThanOrEqual(1 + (performance.now() - startedMs) / 30_000)
    const recorded = (await scene.server.audit(refusedAction)).filter(({ resourceId }) => resourceId === id)
    // The burst, and one for each second that the flood took.
    expect(recorded.length).toBeGreaterThanOrEqual(60)
    expect(recorded.length).toBeLessThanOrEqual(61 + (performance.now() - startedMs) / 1000)
  })
})

describe("a policy that never ends", () => {
  const many = `[${Array.from({ length: 500 }, () => 1).join(",")}]`
  const bomb = `${many}.all(a, ${many}.all(b, ${many}.all(c, a + b + c > 0)))`
  const longest = `assertion.sub in [${Array.from({ length: 550 }, (_, index) => `'repo:acme/site-${String(index).padStart(10, "0")}'`).join(",")},assertion.sub]`

  test("is refused and on record, while exchanges of other organizations go on", async () => {
    const seed = seeder({ database: scene.database, ids: createIds() })
    const organization = await seed.organization("Bystander", await seed.billingAccount())
    const bearer = (await seed.key(organization, ["inference", "api-admin"])).value
    const made = await scene.server.send(
      "POST",
      `/v1/organizations/${organization}/workload_identity/providers`,
      { name: "calm", config: oidc(scene.issuer.url), authorization_rules: everyone("inference") },
      { bearer },
    )
    const bombed = await scene.server.provide({
      config: oidc(scene.issuer.url),
      authorization_rules: [{ condition: bomb, permissions: ["inference"] }, ...everyone("inference")],
    })
    const assertion = await scene.issuer.token()
    const calm = async () => await scene.server.exchange(made.body.data.id as string, assertion)
    const attacks = [await scene.server.exchange(bombed, assertion)]
    const state = { over: false }
    const attack = async () => {
      while (!state.over) attacks.push(await scene.server.exchange(bombed, assertion))
    }
    const attackers = Promise.all(Array.from({ length: 4 }, attack))
    await calm()
    // Had each of them to wait for an attack to end, none would begin and end between two of those ends.
    for (let amid = 0; amid < 5;) {
      const before = attacks.length
      expect(await calm()).toMatchObject({ status: 200 })
      if (attacks.length === before) amid++
    }
    state.over = true
    await attackers
    for (const answer of attacks)
      expect(answer).toMatchObject({
        status: 400,
        body: {
          error: "invalid_grant",
          error_description: expect.stringMatching(/takes longer than 100 ms/),
        },
      })
    expect((await scene.server.audit(refusedAction))[0]).toMatchObject({ resourceId: bombed })
  })

  test("of nearly 16 KiB that does end is evaluated", async () => {
    expect(longest.length).toBeGreaterThan(15_000)
    expect(longest.length).toBeLessThanOrEqual(16_384)
    const id = await scene.server.provide({
      config: oidc(scene.issuer.url),
      authorization_rules: [{ condition: longest, permissions: ["inference"] }, ...everyone()],
    })
    expect(await scene.server.exchange(id, await scene.issuer.token())).toMatchObject({ status: 200 })
  })
})
