/** What a user makes without an owner's help: keys of their own, and organizations. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { fromCents } from "../src/base/money.ts"
import { createdOrganizationsMax } from "../src/contract/platform/organizations.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let org: string
let member: { id: string; session: string }
let owner: { id: string; session: string }
let count = 0

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})
beforeEach(async () => {
  const seed = seeder(platform)
  count += 1
  org = await seed.organization(`Organization ${count}`, await seed.billingAccount())
  const person = async (role: "owner" | "member"): Promise<{ id: string; session: string }> => {
    const id = await seed.user(`${role}${count}@own-keys.test`)
    await seed.member(org, id, role)
    return { id, session: await seed.session(id) }
  }
  owner = await person("owner")
  member = await person("member")
})

const as = async (who: { session: string }, method: string, path: string, body?: unknown): Promise<Answer> =>
  await platform.send(method, `/v1/organizations${path}`, { bearer: who.session, body })
const own = { name: "mine", permissions: ["inference", "api-read"], scope: "user" }

test("a member creates, changes, rotates and deletes a key of their own", async () => {
  const made = await as(member, "POST", `/${org}/api_keys`, own)
  expect(made.body.data).toMatchObject({ scope: "user", user_id: member.id })
  const path = `/${org}/api_keys/${made.body.data.id}`
  expect((await as(member, "PATCH", path, { name: "renamed" })).status).toBe(200)
  const rotated = await as(member, "POST", `${path}/rotate`, {})
  const read = await platform.send("GET", `/v1/organizations/${org}`, { bearer: rotated.body.data.secret })
  expect(read.status).toBe(200)
  expect((await as(member, "DELETE", path)).status).toBe(204)
})

test("a member creates no key of the organization, and none with a permission that they lack", async () => {
  const organizations = await as(member, "POST", `/${org}/api_keys`, { ...own, scope: "organization" })
  expect([organizations.status, organizations.body.error.code]).toEqual([403, "permission_denied"])
  const admin = await as(member, "POST", `/${org}/api_keys`, { ...own, permissions: ["api-admin"] })
  expect([admin.status, admin.body.error.code]).toEqual([403, "permission_denied"])
})

test("a member changes neither the organization's keys nor those of others; an owner ends a member's", async () => {
  const foreign = [
    (await as(owner, "POST", `/${org}/api_keys`, { ...own, scope: "organization" })).body.data,
    (await as(owner, "POST", `/${org}/api_keys`, own)).body.data,
  ]
  for (const { id } of foreign) {
    const path = `/${org}/api_keys/${id}`
    const refused = [
      await as(member, "PATCH", path, { name: "taken" }),
      await as(member, "POST", `${path}/rotate`, {}),
      await as(member, "DELETE", path),
    ]
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403])
  }
  const mine = (await as(member, "POST", `/${org}/api_keys`, own)).body.data
  expect((await as(owner, "DELETE", `/${org}/api_keys/${mine.id}`)).status).toBe(204)
})

test("a user creates organizations up to the limit, with a billing account and an audit entry for each", async () => {
  const made = await as(member, "POST", "", { name: " Side project " })
  expect(made.body.data).toMatchObject({ name: "Side project", role: "primary_owner", is_personal: false })
  const { id, billing_account_id } = made.body.data
  const accounts = await platform.database.query(
    "SELECT email, balance_ticks, auto_refill_enabled FROM billing_accounts WHERE id = $1",
    [billing_account_id],
  )
  // At the local provider, which moves no money; nothing is bought unasked.
  expect(accounts).toEqual([
    { email: `member${count}@own-keys.test`, balance_ticks: fromCents(10_000), auto_refill_enabled: false },
  ])
  const [entry] = (await as(member, "GET", `/${id}/audit_log`)).body.data
  expect(entry).toMatchObject({ action: "organization.create", actor: { id: member.id } })
  for (let more = 1; more < createdOrganizationsMax; more++)
    expect((await as(member, "POST", "", { name: `Number ${more}` })).status).toBe(200)
  const refused = await as(member, "POST", "", { name: "One too many" })
  expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"])
  expect((await as(member, "GET", "")).body.data).toHaveLength(createdOrganizationsMax + 1)
})
