/** Providers with a public issuer: a policy that would let strangers in is refused, whatever its text looks like. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type IdentityServer, startIdentityServer } from "./identity-server.ts"

const rules = (condition: string): unknown[] => [
  { condition, permissions: ["inference"] },
  { condition: "true", permissions: [] },
]
const confirm = (issuer_uri: string): Record<string, unknown> => ({
  public_issuer_confirmation: { anyone_may_exchange: true, issuer_uri },
})

let database: Database
let server: IdentityServer
let path: string

beforeAll(async () => {
  database = await openTestDatabase()
  server = await startIdentityServer(database)
  path = `/v1/organizations/${server.organizationId}/workload_identity/providers`
})
afterAll(async () => {
  await server.close()
  await database.close()
})

describe("at an issuer that signs tokens for anyone", () => {
  const github = {
    type: "oidc",
    issuer_uri: "https://token.actions.githubusercontent.com",
    allowed_audiences: ["a"],
  }
  const granted = [{ condition: "true", permissions: ["inference"] }]
  let count = 0
  const save = async (fields: Record<string, unknown>): Promise<Answer> => {
    const body = { name: `public ${++count}`, config: github, authorization_rules: granted, ...fields }
    const answer = await server.send("POST", path, body)
    if (answer.status === 200) await server.send("DELETE", `${path}/${answer.body.data.id}`)
    return answer
  }

  test.each([
    null,
    "true",
    "assertion.sub == 'repo:acme/app' || true",
    "assertion.sub != ''",
    "assertion.sub.startsWith('repo:')",
    "assertion.repository.matches('.*')",
    "has(assertion.repository)",
    "assertion.ref == 'refs/heads/release'",
    "has(assertion.environment) && assertion.environment == 'staging'",
    "'ref' in assertion && assertion.ref == 'refs/heads/release'",
    "!has(assertion.deploy_key)",
    "assertion.actor == 'ada'",
    "assertion.repository == 'acme/app' ? true : assertion.ref == 'x'",
    "!(assertion.repository == 'acme/app')",
  ])("the condition %j is refused", async (attribute_condition) => {
    const { status, body } = await save({ attribute_condition })
    expect([status, body.error.details]).toEqual([
      422,
      [{ path: "attribute_condition", message: "lets in workloads of strangers" }],
    ])
  })

  test.each([
    "assertion.repository == 'acme/app'",
    "assertion.repository_owner_id == '65' && assertion.ref == 'refs/heads/main'",
    "assertion.ref == 'refs/heads/main' && assertion.repository_owner in ['acme', 'acme-labs']",
    "assertion.sub.startsWith('repo:acme/')",
    "['acme/app', 'acme/web'].exists(name, assertion.repository == name)",
  ])("the condition %j is accepted", async (attribute_condition) => {
    expect((await save({ attribute_condition })).status).toBe(200)
  })

  test("rules may name the repository instead, also by way of an attribute", async () => {
    const attribute_transformations = { owner: "assertion.repository_owner", branch: "assertion.ref" }
    const named = { attribute_transformations, authorization_rules: rules("attribute.owner == 'acme'") }
    expect((await save(named)).status).toBe(200)
    const any = { attribute_transformations, authorization_rules: rules("attribute.branch == 'main'") }
    expect((await save(any)).status).toBe(422)
  })

  test("an open policy is saved when it is confirmed with the issuer repeated, and changed only so", async () => {
    expect((await save(confirm("https://gitlab.com"))).status).toBe(422)
    const body = { name: "open", config: github, authorization_rules: granted, ...confirm(github.issuer_uri) }
    const made = await server.send("POST", path, body)
    expect(made.status).toBe(200)
    expect(made.body.data.public_issuer_confirmation).toBeUndefined()
    const change = async (changes: object): Promise<number> =>
      (await server.send("PATCH", `${path}/${made.body.data.id}`, changes)).status
    expect(await change({ name: "renamed" })).toBe(200)
    expect(await change({ attribute_condition: "assertion.ref == 'x'" })).toBe(422)
    expect(await change({ attribute_condition: "assertion.sub == 'x'" })).toBe(200)
  })

  test("a provider without rules grants nothing", async () => {
    const made = await save({ authorization_rules: undefined })
    expect(made.body.data.authorization_rules).toEqual([{ condition: "true", permissions: [] }])
  })
})
