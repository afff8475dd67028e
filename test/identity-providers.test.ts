/** Providers over the API: what may be saved, who may do it, and what is left on record. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createIds } from "../src/base/ids.ts"
import type { Permission, Role } from "../src/contract/access.ts"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { type IdentityServer, everyone, startIdentityServer } from "./identity-server.ts"
import { makeSigner } from "./issuer.ts"
import { type CertificateOptions, type Issued, OpenSsl, caExtensions, clientExtensions } from "./openssl.ts"
import { seeder } from "./platform.ts"

let database: Database
let server: IdentityServer
let openssl: OpenSsl
let path: string

beforeAll(async () => {
  database = await openTestDatabase()
  openssl = new OpenSsl()
  server = await startIdentityServer(database)
  path = `/v1/organizations/${server.organizationId}/workload_identity/providers`
})
afterAll(async () => {
  await server.close()
  await database.close()
  openssl.close()
})

const oidc = { type: "oidc", issuer_uri: "https://issuer.example", allowed_audiences: ["a"] }
const valid = (changes: object = {}) => ({
  name: `p ${Math.random()}`,
  config: oidc,
  authorization_rules: everyone("inference"),
  ...changes,
})
const create = async (changes: object = {}) => await server.send("POST", path, valid(changes))
const remove = async (id: string) => await server.send("DELETE", `${path}/${id}`)
const rulesPath = "authorization_rules.0.condition"

const verb = (name: string) => `workload_identity_provider.${name}`
const keySet = async (keys: object[]) => await create({ config: { ...oidc, jwks: { keys } } })
const padded = (bytes: number) => JSON.stringify(valid()).padEnd(bytes, " ")
const issueCa = (changes: Partial<CertificateOptions>): Issued =>
  openssl.issue({ subject: "/CN=CA", extensions: caExtensions, ...changes })
const saveX509 = async (anchors: string[], intermediates: string[] = []) => {
  const config = { type: "x509", trust_anchors: anchors, intermediate_cas: intermediates }
  const answer = await create({ config })
  if (answer.body.data) await remove(answer.body.data.id as string)
  return { status: answer.status, place: answer.body.error?.details[0] as object | undefined }
}
const sessionOf = async (role: Role) => {
  const seed = seeder({ database, ids: createIds() })
  const user = await seed.user(`${role}@example.com`)
  await seed.member(server.organizationId, user, role)
  return await seed.session(user)
}
const keyWith = async (...held: Permission[]) =>
  (await seeder({ database, ids: createIds() }).key(server.organizationId, held)).value
const listed = async (bearer: string) => (await server.send("GET", path, undefined, { bearer })).status
const made = async (bearer: string, body: object = valid()) => {
  const answer = await server.send("POST", path, body, { bearer })
  if (answer.body.data) await remove(answer.body.data.id as string)
  return answer.status
}

describe("a provider", () => {
  test("is made, read, listed, changed, switched off and on, and deleted; each change raises its revision", async () => {
    const made = await create({
      name: " CI ",
      attribute_condition: "assertion.sub != ''",
      attribute_transformations: { team: "assertion.team" },
      authorization_rules: [
        { condition: "attribute.team == 'ops'", permissions: ["api-admin"] },
        ...everyone(),
      ],
    })
    expect(made.status).toBe(200)
    const { id } = made.body.data as { id: string }
    expect(made.body.data).toEqual({
      id: expect.stringMatching(/^wi_[0-9a-z]{26}$/),
      organization_id: server.organizationId,
      name: "CI",
      active: true,
      config: { ...oidc, jwks: null },
      attribute_condition: "assertion.sub != ''",
      attribute_transformations: { team: "assertion.team" },
      authorization_rules: [
        { condition: "attribute.team == 'ops'", permissions: ["api-admin"] },
        ...everyone(),
      ],
      policy_revision: 1,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
    })
    expect((await server.send("GET", `${path}/${id}`)).body).toEqual(made.body)
    expect((await server.send("GET", path)).body.data[0]).toEqual(made.body.data)
    const patch = async (body: object) =>
      (await server.send("PATCH", `${path}/${id}`, body)).body.data as object
    expect(await patch({ name: "CI 2" })).toMatchObject({ name: "CI 2", policy_revision: 2, active: true })
    expect(await patch({ active: false })).toMatchObject({ active: false, policy_revision: 3 })
    expect(await patch({ active: true })).toMatchObject({ active: true, policy_revision: 4 })
    expect(await patch({ attribute_condition: null })).toMatchObject({
      attribute_condition: null,
      policy_revision: 5,
    })
    expect(await remove(id)).toMatchObject({ status: 204, body: null })
    expect(await remove(id)).toMatchObject({ status: 404 })
    expect(await server.send("GET", `${path}/${id}`)).toMatchObject({ status: 404 })
    const actions = (await server.audit())
      .filter(({ resourceId }) => resourceId === id)
      .map(({ action }) => action)
    const updates = Array.from({ length: 4 }, () => verb("update"))
    expect(actions).toEqual([verb("delete"), ...updates, verb("create")])
  })

  test("leaves only what changed in the audit log", async () => {
    const { id } = (await create()).body.data as { id: string }
    await server.send("PATCH", `${path}/${id}`, { active: false })
    const [entry] = await server.audit("workload_identity_provider.update")
    expect(entry?.before).toMatchObject({ active: true, policy_revision: 1 })
    expect(entry?.after).toMatchObject({ active: false, policy_revision: 2 })
    expect(Object.keys(entry?.after as object).toSorted()).toEqual([
      "active",
      "policy_revision",
      "updated_at",
    ])
    await remove(id)
  })

  test("is changed only at the revision that If-Match names", async () => {
    const made = await create()
    const { id } = made.body.data as { id: string }
    expect(made.headers.get("etag")).toBe('"1"')
    const patch = async (tag: string) =>
      (await server.send("PATCH", `${path}/${id}`, { active: false }, { headers: { "if-match": tag } }))
        .status
    expect(await patch('"2"')).toBe(412)
    expect(await patch('"1"')).toBe(200)
    expect(await patch('"1"')).toBe(412)
    await remove(id)
  })

  test("has a name of its own in the organization", async () => {
    const first = await create({ name: "taken" })
    expect(await create({ name: "taken" })).toMatchObject({
      status: 409,
      body: { error: { code: "conflict" } },
    })
    const second = await create({ name: "free" })
    const { id } = second.body.data as { id: string }
    expect(await server.send("PATCH", `${path}/${id}`, { name: "taken" })).toMatchObject({ status: 409 })
    await remove(id)
    await remove((first.body.data as { id: string }).id)
  })

  test("is one of 20 at most, also when they are made at once", async () => {
    const present = ((await server.send("GET", path)).body.data as unknown[]).length
    const answers = await Promise.all(Array.from({ length: 22 - present }, () => create()))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 20 - present }, () => 200),
      409,
      409,
    ])
    for (const { body } of answers) if (body.data) await remove(body.data.id as string)
  })

  test("repeated with its Idempotency-Key is made once", async () => {
    const body = valid()
    const headers = { "idempotency-key": "one" }
    const first = await server.send("POST", path, body, { headers })
    expect((await server.send("POST", path, body, { headers })).body).toEqual(first.body)
    await remove((first.body.data as { id: string }).id)
  })
})

describe("what cannot be right is refused with 422 and its place", () => {
  test.each([
    [
      "an issuer without TLS",
      { config: { ...oidc, issuer_uri: "http://issuer.example" } },
      "config.issuer_uri",
    ],
    [
      "an issuer with a query",
      { config: { ...oidc, issuer_uri: "https://a.example/?x" } },
      "config.issuer_uri",
    ],
    [
      "an issuer with credentials",
      { config: { ...oidc, issuer_uri: "https://u:p@a.example" } },
      "config.issuer_uri",
    ],
    ["no audience", { config: { ...oidc, allowed_audiences: [] } }, "config.allowed_audiences"],
    ["an audience twice", { config: { ...oidc, allowed_audiences: ["a", "a"] } }, "config.allowed_audiences"],
    ["a key set that is none", { config: { ...oidc, jwks: [] } }, "config.jwks"],
    [
      "a symmetric key",
      { config: { ...oidc, jwks: { keys: [{ kty: "oct", k: "AAAA" }] } } },
      "config.jwks.keys.0",
    ],
    ["no rules", { authorization_rules: [] }, "authorization_rules"],
    ["no fallback", { authorization_rules: [{ condition: "1 == 1", permissions: [] }] }, rulesPath],
    [
      "an unknown permission",
      { authorization_rules: everyone("root") },
      "authorization_rules.0.permissions.0",
    ],
    [
      "a permission twice",
      { authorization_rules: everyone("inference", "inference") },
      "authorization_rules.0.permissions",
    ],
    [
      "an attribute with a bad name",
      { attribute_transformations: { "a-b": "1" } },
      "attribute_transformations.a-b",
    ],
    ["a field that does not exist", { colour: "red" }, "colour"],
    ["no name", { name: "  " }, "name"],
    ["a name with a NUL", { name: "a\0" }, "name"],
    ["another type", { config: { type: "saml" } }, "config.type"],
  ])("%s", async (_, changes, place) => {
    const answer = await create(changes)
    expect(answer).toMatchObject({ status: 422, body: { error: { code: "invalid_body" } } })
    expect(answer.body.error.details[0].path).toBe(place)
  })

  test("half a surrogate pair is refused with the body", async () => {
    const { status, body } = await create({ attribute_condition: "'\ud800' == ''" })
    expect([status, body.error.code]).toEqual([422, "invalid_body"])
  })

  test("an expression that does not compile, with line and column", async () => {
    const answer = await create({ attribute_condition: "assertion.sub ==\n  nope(" })
    expect(answer).toMatchObject({ status: 422 })
    expect(answer.body.error.details).toEqual([
      {
        path: "attribute_condition",
        message: expect.any(String),
        line: expect.any(Number),
        column: expect.any(Number),
      },
    ])
    expect(answer.body.error.message).toMatch(/attribute_condition: .+ \(line \d, column \d+\)/)
  })

  test.each([
    ["32 transformations", 32, 200],
    ["33 transformations", 33, 422],
  ])("%s", async (_, count, status) => {
    const names = Array.from({ length: count }, (_, index) => [`a${index}`, "'x'"])
    const answer = await create({ attribute_transformations: Object.fromEntries(names) })
    expect(answer.status).toBe(status)
    if (answer.body.data) await remove(answer.body.data.id as string)
  })

  test.each([
    ["64 rules", 64, 200],
    ["65 rules", 65, 422],
  ])("%s", async (_, count, status) => {
    const rules = Array.from({ length: count - 1 }, () => ({ condition: "false", permissions: [] }))
    const answer = await create({ authorization_rules: [...rules, ...everyone("inference")] })
    expect(answer.status).toBe(status)
    if (answer.body.data) await remove(answer.body.data.id as string)
  })

  test.each([
    ["an expression of 16 KiB", 16_384, 200],
    ["one byte more", 16_385, 422],
  ])("%s", async (_, bytes, status) => {
    const answer = await create({ attribute_condition: `'${"é".repeat(10)}${"x".repeat(bytes - 28)}' != ''` })
    expect(answer.status).toBe(status)
    if (answer.body.data) await remove(answer.body.data.id as string)
  })

  test("a private key in the set, and keys without different kids", async () => {
    const { jwk } = await makeSigner("a")
    expect(await keySet([{ ...jwk, d: "AAAA" }])).toMatchObject({ status: 422 })
    expect(await keySet([jwk, jwk])).toMatchObject({ status: 422 })
    expect(await keySet([{ ...jwk, x: "AAAA" }])).toMatchObject({ status: 422 })
    const good = await keySet([jwk])
    expect(good).toMatchObject({
      status: 200,
      body: { data: { config: { jwks: { keys: [{ kid: "a" }] } } } },
    })
    await remove(good.body.data.id as string)
  })

  test("a body of more than 1 MiB is 413, and one just below is read", async () => {
    expect(await server.send("POST", path, padded(1024 * 1024 + 1))).toMatchObject({ status: 413 })
    const read = await server.send("POST", path, padded(1024 * 1024))
    expect(read).toMatchObject({ status: 200 })
    await remove(read.body.data.id as string)
  })
})

describe("certificates that are no anchors are refused with 422", () => {
  let root: Issued
  beforeAll(() => {
    root = issueCa({})
  })

  test("a self-signed authority is an anchor", async () => {
    expect(await saveX509([root.certificate])).toMatchObject({ status: 200 })
  })

  test.each([
    [
      "an authority below another",
      () => issueCa({ subject: "/CN=Sub", issuer: root }).certificate,
      /not self-signed/,
    ],
    [
      "no authority",
      () => issueCa({ extensions: clientExtensions }).certificate,
      /not a certificate authority/,
    ],
    ["SHA-1", () => issueCa({ digest: "sha1" }).certificate, /SHA-1/],
    [
      "RSA of 1024 bits",
      () => issueCa({ newKey: ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"] }).certificate,
      /2048 bits/,
    ],
    ["two at once", () => root.certificate + root.certificate, /exactly one/],
    ["a private key", () => root.certificate + root.key, /private key/],
    ["what is no certificate", () => "hello", /exactly one/],
    [
      "a broken certificate",
      () => "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
      /not a certificate/,
    ],
  ])("%s", async (_, anchor, message) => {
    expect(await saveX509([anchor()])).toMatchObject({
      status: 422,
      place: { path: "config.trust_anchors.0", message: expect.stringMatching(message) },
    })
  })

  test("an anchor among the intermediates", async () => {
    expect(await saveX509([root.certificate], [issueCa({}).certificate])).toMatchObject({
      status: 422,
      place: { path: "config.intermediate_cas.0", message: expect.stringMatching(/must not be an anchor/) },
    })
  })
})

describe("who may", () => {
  const permissions: readonly Permission[] = ["inference", "api-read", "api-write", "api-admin"]
  test("any member reads; owners write", async () => {
    const [member, owner] = [await sessionOf("member"), await sessionOf("owner")]
    expect([await listed(member), await listed(owner)]).toEqual([200, 200])
    expect([await made(member), await made(owner)]).toEqual([403, 200])
  })

  test("a key needs api-admin to read and to write", async () => {
    const one = await keyWith("api-admin", "inference")
    expect([await listed(one), await made(one)]).toEqual([200, 200])
    const other = await keyWith("inference", "api-read", "api-write")
    expect([await listed(other), await made(other)]).toEqual([403, 403])
  })

  test("nobody grants workloads what they do not hold", async () => {
    const admin = await keyWith("api-admin")
    expect(await made(admin, valid({ authorization_rules: everyone("inference") }))).toBe(403)
    expect(await made(admin, valid({ authorization_rules: everyone("api-admin") }))).toBe(200)
    const all = await create({ authorization_rules: everyone(...permissions) })
    const { id } = all.body.data as { id: string }
    const patch = async (body: object) =>
      (await server.send("PATCH", `${path}/${id}`, body, { bearer: admin })).status
    expect(await patch({ active: false })).toBe(200)
    await server.send("PATCH", `${path}/${id}`, { authorization_rules: everyone("api-admin") })
    expect(await patch({ authorization_rules: everyone("api-write") })).toBe(403)
    await remove(id)
  })

  test("another organization's provider does not exist", async () => {
    const seed = seeder({ database, ids: createIds() })
    const other = await seed.organization("Other", await seed.billingAccount())
    const bearer = (await seed.key(other, permissions)).value
    const { id } = (await create()).body.data as { id: string }
    expect(await server.send("GET", `${path}/${id}`, undefined, { bearer })).toMatchObject({ status: 404 })
    const theirs = `/v1/organizations/${other}/workload_identity/providers/${id}`
    expect(await server.send("GET", theirs, undefined, { bearer })).toMatchObject({ status: 404 })
    expect(await server.send("PATCH", theirs, { active: false }, { bearer })).toMatchObject({ status: 404 })
    expect(await server.send("DELETE", theirs, undefined, { bearer })).toMatchObject({ status: 404 })
    await remove(id)
  })
})
