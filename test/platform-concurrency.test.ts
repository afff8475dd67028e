/** What happens when several do it at once, on PostgreSQL with two gateways and many connections. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { verifyAudit } from "../src/store/audit.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { column, row } from "../src/store/rows.ts"

let fresh: FreshDatabase
let databases: Database[]
let gateways: [Platform, Platform]
let seed: ReturnType<typeof seeder>
let account: string

beforeAll(async () => {
  fresh = await freshDatabase()
  const open = async (): Promise<Database> => await openPostgres({ url: fresh.url })
  const [first, second] = [await open(), await open()]
  databases = [first, second]
  // What is at once may take long on a busy machine.
  const patient = { repeatWaitMs: 600_000 }
  gateways = [await startPlatform(first, patient), await startPlatform(second, patient)]
  seed = seeder(gateways[0])
  account = await seed.billingAccount()
})

afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
  for (const database of databases) await database.close()
  await fresh.drop()
})

/** Every other request goes to the other gateway. */
const spread = async (times: number, request: (gateway: Platform, index: number) => Promise<Answer>) =>
  await Promise.all(
    Array.from({ length: times }, async (_, index) => await request(gateways[index % 2] as Platform, index)),
  )

const statuses = (answers: readonly Answer[]): number[] =>
  answers.map(({ status }) => status).toSorted((a, b) => a - b)

async function primaryOwners(org: string): Promise<number> {
  const [found] = await row({ count: column.integer }).all(
    gateways[0].database,
  )`SELECT count(*)::int AS count FROM memberships WHERE organization_id = ${org} AND role = 'primary_owner'`
  return found?.count ?? 0
}

test("two primary owners who demote each other at once leave one", async () => {
  for (let round = 0; round < 10; round++) {
    const org = await seed.organization("Duel", account)
    const ids = [await seed.user(`a${round}@duel.test`), await seed.user(`b${round}@duel.test`)]
    for (const id of ids) await seed.member(org, id, "primary_owner")
    const sessions = [await seed.session(ids[0] ?? ""), await seed.session(ids[1] ?? "")]
    const answers = await spread(2, async (gateway, index) =>
      gateway.send("PATCH", `/v1/organizations/${org}/members/${ids[1 - index]}`, {
        bearer: sessions[index] ?? "",
        body: { role: "member" },
      }),
    )
    expect(await primaryOwners(org)).toBe(1)
    const [won, lost] = statuses(answers)
    expect(won).toBe(200)
    expect([403, 409]).toContain(lost)
  }
})

test("two primary owners who leave at once: one stays", async () => {
  for (let round = 0; round < 10; round++) {
    const org = await seed.organization("Exit", account)
    const ids = [await seed.user(`a${round}@exit.test`), await seed.user(`b${round}@exit.test`)]
    for (const id of ids) await seed.member(org, id, "primary_owner")
    const sessions = [await seed.session(ids[0] ?? ""), await seed.session(ids[1] ?? "")]
    const answers = await spread(2, async (gateway, index) =>
      gateway.send("DELETE", `/v1/organizations/${org}/members/${ids[index]}`, {
        bearer: sessions[index] ?? "",
      }),
    )
    expect(statuses(answers)).toEqual([204, 409])
    expect(await primaryOwners(org)).toBe(1)
  }
})

async function organizationWithOwner(name: string): Promise<{ org: string; session: string }> {
  const org = await seed.organization(name, account)
  const id = await seed.user(`owner@${name.toLowerCase()}.test`)
  await seed.member(org, id, "primary_owner")
  return { org, session: await seed.session(id) }
}

test("one invitation accepted many times at once makes one user and one member", async () => {
  const { org, session } = await organizationWithOwner("Invite")
  const sent = await gateways[0].send("POST", `/v1/organizations/${org}/invites`, {
    bearer: session,
    body: { email: "invited@invite.test", role: "member" },
  })
  const body = { token: sent.body.data.accept_token, password: "long enough" }
  const answers = await spread(8, async (gateway) => gateway.send("POST", "/v1/invites/accept", { body }))
  expect(statuses(answers)).toEqual([200, ...Array<number>(7).fill(409)])
  const detail = await gateways[0].send("GET", `/v1/organizations/${org}`, { bearer: session })
  expect(detail.body.data.counts.members).toBe(2)
})

test("fifty creates at once with one Idempotency-Key make one key, and one answer shows its secret", async () => {
  const { org, session } = await organizationWithOwner("Fifty")
  const answers = await spread(50, async (gateway) =>
    gateway.send("POST", `/v1/organizations/${org}/api_keys`, {
      bearer: session,
      body: { name: "only", permissions: ["api-read"] },
      headers: { "idempotency-key": "fifty" },
    }),
  )
  expect(statuses(answers)).toEqual(Array<number>(50).fill(200))
  expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(1)
  expect(answers.filter(({ body }) => body.data.secret !== null)).toHaveLength(1)
  const listed = await gateways[1].send("GET", `/v1/organizations/${org}/api_keys`, { bearer: session })
  expect(listed.body.data).toHaveLength(1)
})

test("a key rotated with grace while it is used never fails, and without grace stops where it was rotated", async () => {
  const { org, session } = await organizationWithOwner("Rotate")
  const path = `/v1/organizations/${org}/api_keys`
  const made = await gateways[0].send("POST", path, {
    bearer: session,
    body: { name: "used", permissions: ["api-read"] },
  })
  const { id, secret } = made.body.data
  const use = async (gateway: Platform, bearer: string): Promise<number> =>
    (await gateway.send("GET", `/v1/organizations/${org}`, { bearer })).status
  const rotate = async (grace_seconds: number): Promise<string> =>
    (await gateways[0].send("POST", `${path}/${id}/rotate`, { bearer: session, body: { grace_seconds } }))
      .body.data.secret
  const [rotated, ...used] = await Promise.all([
    rotate(600),
    ...Array.from({ length: 60 }, async (_, index) => await use(gateways[index % 2] as Platform, secret)),
  ])
  expect(new Set(used)).toEqual(new Set([200]))
  expect(await use(gateways[0], rotated)).toBe(200)
  await rotate(0)
  expect([await use(gateways[0], rotated), await use(gateways[0], secret)]).toEqual([401, 401])
  // Elsewhere within 30 seconds: the database tells, so it is much sooner.
  await expect.poll(async () => await use(gateways[1], rotated)).toBe(401)
})

test("changes at once on two gateways leave one unbroken audit chain with an entry for each", async () => {
  const { org, session } = await organizationWithOwner("Chain")
  const answers = await spread(40, async (gateway, index) =>
    gateway.send("PATCH", `/v1/organizations/${org}`, { bearer: session, body: { name: `Name ${index}` } }),
  )
  expect(statuses(answers)).toEqual(Array<number>(40).fill(200))
  expect(await verifyAudit(gateways[0].database, org)).toEqual({ intact: true, entries: 40n })
})

test("of two changes at once to the version that both read, one is made", async () => {
  const { org, session } = await organizationWithOwner("Version")
  const read = await gateways[0].send("GET", `/v1/organizations/${org}`, { bearer: session })
  const headers = { "if-match": read.headers.get("etag") ?? "" }
  const answers = await spread(8, async (gateway, index) =>
    gateway.send("PATCH", `/v1/organizations/${org}`, {
      bearer: session,
      headers,
      body: { name: `N ${index}` },
    }),
  )
  expect(statuses(answers)).toEqual([200, ...Array<number>(7).fill(412)])
})
