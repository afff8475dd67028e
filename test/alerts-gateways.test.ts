/** Two gateways on one PostgreSQL: deliveries are claimed once, none is lost, and each change of a rule is told once. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import { ticksPerCent } from "../src/base/money.ts"
import { evaluateRules } from "../src/control/alerts/evaluate.ts"
import { startDeliverer } from "../src/control/webhooks/deliverer.ts"
import { createWebhookSender } from "../src/control/webhooks/send.ts"
import { claimDelivery, insertDelivery } from "../src/store/alerts/deliveries.ts"
import { migrate } from "../src/store/migrate.ts"
import { takeTask } from "../src/store/work-queue.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { cipher } from "./kept-content.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { type Receiver, startReceiver } from "./webhook-receiver.ts"

const organizationsCount = 5
const perOrganization = 12
const deliveriesCount = organizationsCount * perOrganization
const eventually = { timeout: 60_000, interval: 20 }

let fresh: FreshDatabase
let gateways: [Database, Database]
let platform: Platform
let receiver: Receiver
let scenes: Scene[]

interface Scene {
  readonly org: string
  readonly account: string
  readonly bearer: string
  readonly webhookId: string
}

beforeAll(async () => {
  fresh = await freshDatabase()
  gateways = [await openPostgres({ url: fresh.url }), await openPostgres({ url: fresh.url })]
  await migrate(gateways[0])
  platform = await startPlatform(gateways[0], { deps: { allowPrivateWebhooks: true } })
  receiver = await startReceiver()
  scenes = []
  for (let at = 0; at < organizationsCount; at++) scenes.push(await organization(`org-${at}`))
})

afterEach(async () => {
  await gateways[0].query("DELETE FROM deliveries")
})

afterAll(async () => {
  await receiver.close()
  await platform.close()
  for (const database of gateways) await database.close()
  await fresh.drop()
})

async function organization(name: string): Promise<Scene> {
  const seed = seeder(platform)
  const account = await seed.billingAccount()
  const org = await seed.organization(name, account)
  const owner = await seed.user(`${name}@gateways.test`)
  await seed.member(org, owner, "primary_owner")
  const bearer = await seed.session(owner)
  const body = { url: `${receiver.url}/${name}` }
  const made = await platform.send("POST", `/v1/organizations/${org}/webhooks`, { bearer, body })
  return { org, account, bearer, webhookId: made.body.data.id }
}

/** Some of every organization; answers the ids of their events. */
async function addDeliveries(): Promise<string[]> {
  const events: string[] = []
  for (let at = 0; at < deliveriesCount; at++) {
    const { org, webhookId } = scenes[at % scenes.length] as Scene
    const eventId = platform.ids.next("evt")
    const created = { id: platform.ids.next("dlv"), eventId, createdAt: new Date() }
    const body = JSON.stringify({ id: eventId })
    const event = { organizationId: org, webhookId, address: null, type: "alert.firing", body }
    await insertDelivery(gateways[0], { ...created, ...event }, 2 * deliveriesCount)
    events.push(eventId)
  }
  return events.toSorted()
}

test("gateways that claim at once share the deliveries: each is claimed once, and all are", async () => {
  const events = await addDeliveries()
  const now = new Date(Date.now() + 1000)
  const lease = { now, until: new Date(now.getTime() + 60_000), withRetries: true }
  const claim = async (database: Database): Promise<string[]> => {
    const claims = scenes.map(async ({ org }) => await claimDelivery(database, org, lease))
    return (await Promise.all(claims)).flatMap((claimed) => claimed?.eventId ?? [])
  }
  const claimed: string[] = []
  // While another gateway holds all that this one chose, a claim may be empty; the rest is for the next.
  for (let found = -1; found !== 0;) {
    const rounds = await Promise.all([...gateways, ...gateways, ...gateways].map(claim))
    found = rounds.flat().length
    claimed.push(...rounds.flat())
  }
  expect(claimed.toSorted()).toEqual(events)
})

test("two gateways deliver each event once, also those that come while they work, and lose none", async () => {
  const before = await addDeliveries()
  const senders = gateways.map(() => createWebhookSender({ allowPrivate: true, timeoutMs: 60_000 }))
  const deps = {
    clock: systemClock,
    ids: platform.ids,
    log: silentLog,
    cipher,
    mail: null,
    recipients: "members",
  } as const
  const deliverers = await Promise.all(
    gateways.map(async (database, at) => {
      const webhooks = senders[at] as ReturnType<typeof createWebhookSender>
      return await startDeliverer({ ...deps, database, webhooks })
    }),
  )
  const events = [...before, ...(await addDeliveries())].toSorted()
  const counted = async (): Promise<unknown> =>
    await gateways[0].query("SELECT state, attempts, count(*)::int AS count FROM deliveries GROUP BY 1, 2")
  await expect.poll(counted, eventually).toEqual([{ state: "succeeded", attempts: 1, count: events.length }])
  for (const deliverer of deliverers) await deliverer.close()
  for (const sender of senders) await sender.close()
  const received = receiver.received.map(({ body }) => (JSON.parse(body) as { id: string }).id)
  expect(received.toSorted()).toEqual(events)
})

const evaluate = async (database: Database): Promise<void> =>
  await evaluateRules({
    publicUrl: () => "https://umpire.test",
    database,
    clock: systemClock,
    ids: platform.ids,
    log: silentLog,
    facts: { requests: null },
    invalidate: () => undefined,
  })

test("two gateways that evaluate at once tell each change once, to every channel once", async () => {
  for (const { org, bearer, webhookId } of scenes) {
    const channels = [{ type: "webhook", webhook_id: webhookId }]
    const body = { name: "Rule", kind: "balance_below", threshold: 500, channels }
    const made = await platform.send("POST", `/v1/organizations/${org}/alert_rules`, { bearer, body })
    expect(made.status).toBe(200)
  }
  // Of the accounts' own warnings, which the first evaluation makes rules of.
  await gateways[0].query("UPDATE billing_accounts SET low_balance_warning_cents = 700")
  for (const cents of [1n, 1000n, 1n, 1000n]) {
    await gateways[0].query("UPDATE billing_accounts SET balance_ticks = $1", [cents * ticksPerCent])
    await Promise.all([...gateways, ...gateways].map(evaluate))
  }
  const rules = "SELECT count(*)::int AS count, count(managed_by)::int AS managed FROM alert_rules"
  expect(await gateways[0].query(rules)).toEqual([{ count: 10, managed: 5 }])
  const alerts = "SELECT array_agg(state ORDER BY at, id) AS states FROM alerts GROUP BY rule_id"
  const states = ["firing", "resolved", "firing", "resolved"]
  expect(await gateways[0].query(alerts)).toEqual(Array.from({ length: 10 }, () => ({ states })))
  const told = "SELECT count(*)::int AS count, count(DISTINCT event_id)::int AS events FROM deliveries"
  expect(await gateways[0].query(told)).toEqual([{ count: 20, events: 20 }])
})

test("a periodic task that is due is taken by one gateway, and by another when that one is dead", async () => {
  const name = "alerts.evaluate"
  const now = new Date()
  const heldUntil = new Date(now.getTime() + 60_000)
  const take = async (at: Date): Promise<number> => {
    const later = new Date(at.getTime() + 60_000)
    const taken = await Promise.all(
      [...gateways, ...gateways, ...gateways].map((database) =>
        takeTask(database, name, { now: at, until: later }),
      ),
    )
    return taken.filter(Boolean).length
  }
  expect(await take(now)).toBe(1)
  expect(await take(new Date(heldUntil.getTime() - 1))).toBe(0)
  expect(await take(heldUntil)).toBe(1)
})
