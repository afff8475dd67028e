/** Organizations, members, invitations, models, routing policy and audit log over HTTP. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { findStoredResponse, saveStoredResponse } from "../src/store/responses.ts"
import { openTestDatabase } from "./database.ts"
import { storeOperator } from "./operator.ts"
import { type Answer, type Platform, deaf, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let org: string
type Seeded = "primary_owner" | "owner" | "member"
let people: Record<Seeded, { id: string; session: string }>
let count = 0

beforeAll(async () => {
  platform = await startPlatform(deaf(await openTestDatabase()))
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

/** Each test has an organization of its own, with one member of each role. */
beforeEach(async () => {
  const seed = seeder(platform)
  count += 1
  org = await seed.organization(`Organization ${count}`, await seed.billingAccount())
  const person = async (role: Seeded): Promise<{ id: string; session: string }> => {
    const id = await seed.user(`${role}${count}@example.com`)
    await seed.member(org, id, role)
    return { id, session: await seed.session(id) }
  }
  people = {
    primary_owner: await person("primary_owner"),
    owner: await person("owner"),
    member: await person("member"),
  }
})

const as = async (
  role: Seeded,
  method: string,
  path: string,
  body?: unknown,
  headers = {},
): Promise<Answer> =>
  await platform.send(method, `/v1/organizations/${org}${path}`, {
    bearer: people[role].session,
    body,
    headers,
  })

test("an organization shows what the contract lists, and the role of who asks", async () => {
  const detail = (await as("member", "GET", "")).body.data
  expect(detail).toEqual({
    id: org,
    name: `Organization ${count}`,
    billing_account_id: expect.stringMatching(/^ba_/),
    created_at: expect.stringMatching(/Z$/),
    updated_at: expect.stringMatching(/Z$/),
    is_personal: false,
    data_persistence: { stored_responses_days: null },
    role: "member",
    counts: { members: 3, primary_owners: 1 },
  })
  const list = await platform.send("GET", "/v1/organizations", { bearer: people.owner.session })
  const { counts: _, ...item } = detail
  expect(list.body).toEqual({ data: [{ ...item, role: "owner" }] })
})

test("a key sees its one organization as a member, and 404 once that is deleted", async () => {
  const { value } = await seeder(platform).key(org, ["api-read"])
  const list = async (): Promise<Answer> => await platform.send("GET", "/v1/organizations", { bearer: value })
  expect((await list()).body.data.map((one: { id: string; role: string }) => [one.id, one.role])).toEqual([
    [org, "member"],
  ])
  await operator().deleteOrganization({ params: { org_id: org } })
  expect((await list()).status).toBe(404)
  const detail = await platform.send("GET", `/v1/organizations/${org}`, { bearer: value })
  expect(detail.status).toBe(404)
  expect((await as("owner", "GET", "")).status).toBe(404)
})

test.each([
  [0, 200],
  [3650, 200],
  [null, 200],
  [-1, 422],
  [3651, 422],
  [1.5, 422],
  ["7", 422],
])("retention of %j days answers %s", async (days, status) => {
  const body = { data_persistence: { stored_responses_days: days } }
  const answer = await as("owner", "PATCH", "", body)
  expect(answer.status).toBe(status)
  if (status === 200) expect(answer.body.data.data_persistence).toEqual(body.data_persistence)
})

const keep = async (days: number | null): Promise<Answer> =>
  await as("owner", "PATCH", "", { data_persistence: { stored_responses_days: days } })

test("retention of 0 days deletes what is stored, for good, and nobody else's", async () => {
  const store = async (id: string, organizationId: string): Promise<boolean> =>
    await saveStoredResponse(
      platform.database,
      { id, organizationId, previousId: null, body: "{}", input: "[]", pieces: null, createdAt: new Date() },
      { items: [{ id: `item_${id}`, item: "{}" }], hasBegun: false },
    )
  const seed = seeder(platform)
  const other = await seed.organization("Other", await seed.billingAccount())
  await store(`mine${count}`, org)
  await store(`other${count}`, other)
  expect((await keep(7)).status).toBe(200)
  const find = async (id: string, organizationId: string): Promise<boolean> =>
    (await findStoredResponse(platform.database, organizationId, id, new Date())) !== null
  expect(await find(`mine${count}`, org)).toBe(true)
  await keep(0)
  await keep(30)
  expect([await find(`mine${count}`, org), await find(`other${count}`, other)]).toEqual([false, true])
})

test("two admins who read the same version cannot both change it", async () => {
  const etag = (await as("owner", "GET", "")).headers.get("etag") ?? ""
  const headers = { "if-match": etag }
  expect((await as("owner", "PATCH", "", { name: "First" }, headers)).status).toBe(200)
  expect((await as("primary_owner", "PATCH", "", { name: "Second" }, headers)).status).toBe(412)
  expect((await as("owner", "GET", "")).body.data.name).toBe("First")
})

test("resources name the visible regions, the rate limit and the counts", async () => {
  await as("owner", "POST", "/invites", { email: "new@example.com", role: "member" })
  expect((await as("member", "GET", "/resources")).body.data).toEqual({
    regions: [
      { id: "paris", country: "FR", latitude: 48.9, longitude: 2.4, home: true, models: [] },
      { id: "lyon", country: "FR", latitude: 45.8, longitude: 4.8, home: false, models: [] },
      { id: "oslo", country: "NO", latitude: 59.9, longitude: 10.8, home: false, models: [] },
    ],
    rate_limit: { requests_per_minute: 1_000_000, burst: 1_000_000 },
    counts: { members: 3, api_keys: 0, pending_invitations: 1, models: 1 },
  })
})

test.each<[Seeded, Seeded, Seeded, number]>([
  ["primary_owner", "owner", "primary_owner", 200],
  ["primary_owner", "member", "owner", 200],
  ["owner", "member", "owner", 200],
  ["owner", "owner", "member", 200],
  ["owner", "member", "primary_owner", 403],
  ["owner", "primary_owner", "member", 403],
  ["primary_owner", "primary_owner", "owner", 409],
  ["member", "member", "owner", 403],
])("%s making %s a %s answers %s", async (actor, target, role, status) => {
  const answer = await as(actor, "PATCH", `/members/${people[target].id}`, { role })
  expect(answer.status).toBe(status)
  const listed = (await as("member", "GET", "/members")).body.data as { user_id: string; role: string }[]
  const now = listed.find(({ user_id }) => user_id === people[target].id)?.role
  expect(now).toBe(status === 200 ? role : target)
})

test("the last primary owner can be neither demoted nor removed, the second to last can", async () => {
  const path = `/members/${people.primary_owner.id}`
  expect((await as("primary_owner", "DELETE", path)).status).toBe(409)
  await as("primary_owner", "PATCH", `/members/${people.owner.id}`, { role: "primary_owner" })
  expect((await as("owner", "DELETE", path)).status).toBe(204)
  expect((await as("owner", "PATCH", `/members/${people.owner.id}`, { role: "member" })).status).toBe(409)
})

test("an organization's key acts with the role member: it removes members, not owners", async () => {
  const { value } = await seeder(platform).key(org, ["api-admin"])
  const remove = async (id: string): Promise<number> =>
    (await platform.send("DELETE", `/v1/organizations/${org}/members/${id}`, { bearer: value })).status
  expect(await remove(people.owner.id)).toBe(403)
  expect(await remove(people.member.id)).toBe(204)
})

test("a removed member's session loses the organization at once, and their keys end", async () => {
  const key = await seeder(platform).key(org, ["api-read"], people.member.id)
  const reads = async (bearer: string): Promise<number> =>
    (await platform.send("GET", `/v1/organizations/${org}`, { bearer })).status
  expect([await reads(people.member.session), await reads(key.value)]).toEqual([200, 200])
  expect((await as("owner", "DELETE", `/members/${people.member.id}`)).status).toBe(204)
  expect([await reads(people.member.session), await reads(key.value)]).toEqual([404, 401])
  expect((await as("owner", "GET", "/api_keys")).body.data).toEqual([])
})

test("an invitation makes a new user who is signed in and a member", async () => {
  const email = `new${count}@example.com`
  const sent = await as("owner", "POST", "/invites", { email, role: "member" })
  const { accept_token, ...invitation } = sent.body.data
  expect(invitation).toEqual({
    id: expect.stringMatching(/^inv_/),
    email,
    role: "member",
    created_at: expect.any(String),
    expires_at: expect.any(String),
    invited_by: { id: people.owner.id, email: `owner${count}@example.com`, name: null },
  })
  expect((await as("member", "GET", "/invites")).body).toEqual({ data: [invitation] })
  const body = { token: accept_token, name: "New", password: "long enough" }
  const accepted = await platform.send("POST", "/v1/invites/accept", { body })
  expect(accepted.status).toBe(200)
  const { session, user } = accepted.body.data
  expect(user).toEqual({ id: expect.any(String), email, name: "New" })
  expect((await platform.send("GET", "/v1/organizations", { bearer: session.token })).body.data).toHaveLength(
    1,
  )
  expect((await platform.send("POST", "/v1/invites/accept", { body })).status).toBe(409)
  expect((await as("member", "GET", "/invites")).body.data).toEqual([])
  const signedIn = await platform.send("POST", "/v1/session", { body: { email, password: "long enough" } })
  expect(signedIn.status).toBe(200)
})

test("an invitation describes itself by its token, whatever became of it", async () => {
  const email = `joining${count}@example.com`
  const sent = (await as("owner", "POST", "/invites", { email, role: "member" })).body.data
  const describe = async (token: string): Promise<Answer> =>
    await platform.send("POST", "/v1/invites/describe", { body: { token } })
  expect((await describe(sent.accept_token)).body.data).toEqual({
    state: "open",
    organization_name: `Organization ${count}`,
    invited_by: { email: `owner${count}@example.com`, name: null },
    email,
    role: "member",
    expires_at: sent.expires_at,
    user_exists: false,
  })
  const accepting = { token: sent.accept_token, password: "long enough" }
  const accepted = await platform.send("POST", "/v1/invites/accept", { body: accepting })
  expect((await describe(sent.accept_token)).body.data).toMatchObject({
    state: "accepted",
    user_exists: true,
  })
  const entries = (await as("owner", "GET", "/audit_log?action=invitation.accept")).body.data
  const { id } = accepted.body.data.user
  expect(entries).toMatchObject([{ actor: { kind: "session", id, name: email } }])

  const other = (await as("owner", "POST", "/invites", { email: `x${email}`, role: "member" })).body.data
  const expire = "UPDATE invitations SET expires_at = now() WHERE id = $1"
  await platform.database.query(expire, [other.id])
  expect((await describe(other.accept_token)).body.data.state).toBe("expired")
  expect((await as("owner", "DELETE", `/invites/${other.id}`)).status).toBe(204)
  expect((await describe(other.accept_token)).body.data.state).toBe("revoked")
  expect((await describe("unknown")).status).toBe(404)
})

test("an existing user accepts with a session of the same address, and nobody else does", async () => {
  const seed = seeder(platform)
  const email = `known${count}@example.com`
  const id = await seed.user(email)
  const sent = await as("owner", "POST", "/invites", { email: email.toUpperCase(), role: "owner" })
  const body = { token: sent.body.data.accept_token, password: "long enough" }
  const accept = async (bearer?: string): Promise<Answer> =>
    await platform.send("POST", "/v1/invites/accept", { body, ...(bearer ? { bearer } : {}) })
  expect((await accept()).status).toBe(409)
  expect((await accept(people.member.session)).status).toBe(403)
  expect((await accept((await seed.key(org, ["api-admin"])).value)).body.error.code).toBe(
    "principal_not_accepted",
  )
  const accepted = await accept(await seed.session(id))
  expect(accepted.body.data).toMatchObject({ organization_id: org, role: "owner", session: null })
})

const accept = async (token: string): Promise<number> =>
  (await platform.send("POST", "/v1/invites/accept", { body: { token, password: "long enough" } })).status

test("a resent invitation has a new token and the old one is dead; a revoked one is gone", async () => {
  const sent = await as("owner", "POST", "/invites", { email: "again@example.com", role: "member" })
  const { id, accept_token } = sent.body.data
  const again = await as("owner", "POST", `/invites/${id}/resend`)
  expect(again.body.data.accept_token).not.toBe(accept_token)
  expect(await accept(accept_token)).toBe(404)
  expect((await as("owner", "DELETE", `/invites/${id}`)).status).toBe(204)
  expect(await accept(again.body.data.accept_token)).toBe(409)
  expect((await as("owner", "POST", `/invites/${id}/resend`)).status).toBe(404)
})

test("an expired invitation is not pending, cannot be accepted, and makes room for another", async () => {
  const body = { email: `late${count}@example.com`, role: "member" }
  const sent = await as("owner", "POST", "/invites", body)
  expect((await as("owner", "POST", "/invites", body)).status).toBe(409)
  await platform.database.query("UPDATE invitations SET expires_at = now() WHERE id = $1", [
    sent.body.data.id,
  ])
  expect((await as("owner", "GET", "/invites")).body.data).toEqual([])
  const late = { token: sent.body.data.accept_token, password: "long enough" }
  expect((await platform.send("POST", "/v1/invites/accept", { body: late })).status).toBe(409)
  expect((await as("owner", "POST", "/invites", body)).status).toBe(200)
})

test.each<[Seeded, Seeded, number]>([
  ["primary_owner", "primary_owner", 200],
  ["owner", "owner", 200],
  ["owner", "primary_owner", 403],
  ["member", "member", 403],
])("%s inviting a %s answers %s", async (actor, role, status) => {
  expect((await as(actor, "POST", "/invites", { email: "who@example.com", role })).status).toBe(status)
})

test("a member cannot be invited again, and a new user needs a password", async () => {
  const email = `member${count}@example.com`
  expect((await as("owner", "POST", "/invites", { email, role: "member" })).status).toBe(409)
  const sent = await as("owner", "POST", "/invites", { email: `bare${count}@example.com`, role: "member" })
  const bare = await platform.send("POST", "/v1/invites/accept", {
    body: { token: sent.body.data.accept_token },
  })
  expect([bare.status, bare.body.error.details[0].path]).toEqual([422, "password"])
})

test("an organization's key invites in the name of a primary owner", async () => {
  const { value } = await seeder(platform).key(org, ["api-admin"])
  const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, {
    bearer: value,
    body: { email: "bykey@example.com", role: "member" },
  })
  expect(sent.body.data.invited_by.id).toBe(people.primary_owner.id)
})

const modelStates = async (): Promise<Record<string, [string, string | null]>> => {
  const { data } = (await as("member", "GET", "/models")).body
  const models = data as { model_sku: string; status: string; access: string | null }[]
  return Object.fromEntries(models.map(({ model_sku, status, access }) => [model_sku, [status, access]]))
}

test("models show their effective status, and access goes from request to the operator's answer", async () => {
  expect(await modelStates()).toEqual({
    open: ["active", null],
    closed: ["access_required", null],
    off: ["disabled", null],
  })
  const ask = async (model_sku: string): Promise<Answer> =>
    await as("member", "POST", "/model_access_requests", { model_sku })
  const asked = await ask("closed")
  expect(asked.body.data).toMatchObject({
    model_sku: "closed",
    state: "pending",
    requested_by: people.member.id,
  })
  expect((await ask("closed")).body.data.id).toBe(asked.body.data.id)
  expect((await modelStates())["closed"]).toEqual(["access_pending", "pending"])
  expect((await ask("open")).status).toBe(409)
  expect((await ask("unheard of")).body.error.code).toBe("unknown_model")

  const { decideModelAccess: decide } = operator()
  await decide({ params: { org_id: org }, body: { model: "closed", state: "deny" } })
  expect((await modelStates())["closed"]).toEqual(["access_required", "deny"])
  expect((await ask("closed")).body.data.state).toBe("pending")
  await decide({ params: { org_id: org }, body: { model: "closed", state: "grant" } })
  expect((await modelStates())["closed"]).toEqual(["active", "grant"])
  expect((await ask("closed")).status).toBe(409)
  const requests = (await as("member", "GET", "/model_access_requests")).body
  expect(requests.data.map((one: { state: string }) => one.state)).toEqual(["grant"])
  expect(requests.next_cursor).toBeNull()
})

const operator = () => storeOperator(platform, [{ sku: "closed", public: false }])

const policy = async (): Promise<unknown> => (await as("member", "GET", "/routing_policy")).body.data
const put = async (body: unknown): Promise<number> =>
  (await as("owner", "PUT", "/routing_policy", body)).status

test("the routing policy starts with the defaults, is replaced whole, and resets what is left out", async () => {
  const defaults = { mode: "nearest", fallback: "visible_regions", regions: [] }
  expect(await policy()).toEqual(defaults)
  const full = { mode: "ordered", fallback: "same_country", regions: ["oslo", "paris"] }
  expect(await put(full)).toBe(204)
  expect(await policy()).toEqual(full)
  expect(await put({ fallback: "disabled" })).toBe(204)
  expect(await policy()).toEqual({ ...defaults, fallback: "disabled" })
  expect(await put({ regions: null })).toBe(204)
  expect(await policy()).toEqual(defaults)
})

test.each([
  [{ regions: ["atlantis"] }, "regions.0"],
  [{ regions: ["paris", "paris"] }, "regions.1"],
  [{ mode: "required" }, "regions"],
  [{ mode: "required", regions: [] }, "regions"],
  [{ mode: "farthest" }, "mode"],
  [{ fallback: "anywhere" }, "fallback"],
  [{ regions: "paris" }, "regions"],
  [{ speed: 1 }, "speed"],
])("the routing policy %j is refused at %s", async (body, path) => {
  const refused = await as("owner", "PUT", "/routing_policy", body)
  expect([refused.status, refused.body.error.details[0].path]).toEqual([422, path])
})

test("a region that the organization does not see is as unknown as one that does not exist", async () => {
  await operator().limitOrganization({ params: { org_id: org }, body: { regions: ["paris", "lyon"] } })
  const refused = await as("owner", "PUT", "/routing_policy", { regions: ["oslo"] })
  const unknown = await as("owner", "PUT", "/routing_policy", { regions: ["atlantis"] })
  expect([refused.status, refused.body]).toEqual([422, unknown.body])
  expect((await as("owner", "PUT", "/routing_policy", { regions: ["lyon"] })).status).toBe(204)
})

test("the audit log tells who did what, before and after, newest first, and holds no secret", async () => {
  const headers = { "user-agent": "audit test" }
  const key = (
    await as("owner", "POST", "/api_keys", { name: "audited", permissions: ["api-read"] }, headers)
  ).body.data
  await as("owner", "PATCH", `/api_keys/${key.id}`, { name: "renamed" })
  await as("primary_owner", "PATCH", `/members/${people.member.id}`, { role: "owner" })
  const { data } = (await as("owner", "GET", "/audit_log")).body
  expect(data.map((entry: { action: string }) => entry.action)).toEqual([
    "member.update",
    "api_key.update",
    "api_key.create",
  ])
  expect(data[0]).toMatchObject({
    actor: { kind: "session", id: people.primary_owner.id, name: `primary_owner${count}@example.com` },
    resource: { type: "member", id: people.member.id },
    before: { role: "member" },
    after: { role: "owner" },
  })
  expect(data[1]).toMatchObject({ before: { name: "audited" }, after: { name: "renamed" } })
  expect(data[2]).toMatchObject({ ip: "127.0.0.1", user_agent: "audit test", before: null })
  expect(JSON.stringify(data)).not.toContain(key.secret.split("_")[2])
})

test("the audit log is filtered by actor, action, resource and time, and paged", async () => {
  const key = (await as("owner", "POST", "/api_keys", { name: "one", permissions: ["api-read"] })).body.data
  await as("primary_owner", "PATCH", "", { name: "Renamed" })
  await as("primary_owner", "DELETE", `/api_keys/${key.id}`)
  const actions = async (query: string): Promise<string[]> =>
    (await as("owner", "GET", `/audit_log?${query}`)).body.data.map((one: { action: string }) => one.action)
  expect(await actions(`actor=${people.owner.id}`)).toEqual(["api_key.create"])
  expect(await actions("action=organization.update")).toEqual(["organization.update"])
  expect(await actions(`resource=${key.id}`)).toEqual(["api_key.delete", "api_key.create"])
  expect(await actions("resource=organization")).toEqual(["organization.update"])
  expect(await actions("from=2999-01-01T00:00:00Z")).toEqual([])
  expect(await actions("to=2999-01-01T00:00:00Z")).toHaveLength(3)
  const first = (await as("owner", "GET", "/audit_log?limit=2")).body
  const second = (await as("owner", "GET", `/audit_log?limit=2&cursor=${first.next_cursor}`)).body
  expect([...first.data, ...second.data].map((one) => one.action)).toEqual([
    "api_key.delete",
    "organization.update",
    "api_key.create",
  ])
  expect(second.next_cursor).toBeNull()
})

test("the audit log is filtered by names, says what can be filtered by, and is exported as CSV", async () => {
  const named = { name: '=cmd, "x"', permissions: ["api-admin"] }
  const key = (await as("owner", "POST", "/api_keys", named)).body.data
  const rename = { bearer: key.secret, body: { name: "By key" } }
  await platform.send("PATCH", `/v1/organizations/${org}`, rename)
  const actions = async (query: string): Promise<string[]> =>
    (await as("owner", "GET", `/audit_log?${query}`)).body.data.map((one: { action: string }) => one.action)
  expect(await actions(`actor=${encodeURIComponent(named.name)}`)).toEqual(["organization.update"])
  expect(await actions(`actor=OWNER${count}@example.com`)).toEqual(["api_key.create"])
  expect(await actions("actor=nobody@example.com")).toEqual([])
  expect((await as("owner", "GET", "/audit_log/filters")).body.data).toEqual({
    actors: [
      { kind: "key", id: key.id, name: named.name },
      { kind: "session", id: people.owner.id, name: `owner${count}@example.com` },
    ],
    actions: ["api_key.create", "organization.update"],
    resource_types: ["api_key", "organization"],
  })
  const exported = await as("owner", "GET", "/audit_log/export?action=organization.update")
  expect(exported.headers.get("content-type")).toContain("text/csv")
  const [head, row, ...rest] = (exported.body as string).split("\r\n")
  expect(head).toMatch(/^at,actor_kind,actor_id,actor_name,action,/)
  expect(row).toContain(`,key,${key.id},"'=cmd, ""x""",organization.update,organization,${org},`)
  expect(rest).toEqual([""])
})

test("a change that fails leaves no audit entry", async () => {
  await as("owner", "PATCH", `/members/${people.primary_owner.id}`, { role: "member" })
  await as("owner", "PUT", "/routing_policy", { regions: ["atlantis"] })
  expect((await as("owner", "GET", "/audit_log")).body.data).toEqual([])
})

test("umpire audit verify finds an intact log intact, and one with a changed entry broken", async () => {
  await as("owner", "PATCH", "", { name: "One" })
  await as("owner", "PATCH", "", { name: "Two" })
  const verify = async (): Promise<unknown> =>
    await operator().verifyAuditLogs({ query: { organization: org } })
  expect(await verify()).toEqual([{ organization_id: org, intact: true, position: 2, reason: null }])
  await platform.database.script("ALTER TABLE audit_log DISABLE TRIGGER append_only")
  await platform.database.query(
    `UPDATE audit_log SET actor_id = 'usr_forged' WHERE organization_id = $1 AND position = 1`,
    [org],
  )
  await platform.database.script("ALTER TABLE audit_log ENABLE TRIGGER append_only")
  expect(await verify()).toEqual([
    { organization_id: org, intact: false, position: 1, reason: "the entry was changed" },
  ])
})

test("the operator makes an organization with a new owner, who signs in by a link and finds it", async () => {
  const body = { name: "Made", owner: `made${count}@example.com` }
  const made = await operator().openOrganization({ body })
  const signedIn = await platform.send("POST", "/v1/session", { body: { link: made.link } })
  const list = await platform.send("GET", "/v1/organizations", { bearer: signedIn.body.data.token })
  expect(list.body.data.map((one: { id: string; role: string }) => [one.id, one.role])).toEqual([
    [made.id, "primary_owner"],
  ])
})
