/** Webhooks over real HTTP: receivers that fail, hang, redirect, answer slowly, are gone, or see an event twice. */
import { createHmac, timingSafeEqual } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Writable } from "node:stream"
import { pathToFileURL } from "node:url"
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest"
import { createLog } from "../src/base/log.ts"
import { alertLimits } from "../src/contract/alerts/webhooks.ts"
import { sealTask } from "../src/control/upkeep.ts"
import { type Deliverer, retryDelaysMs, startDeliverer } from "../src/control/webhooks/deliverer.ts"
import { createWebhookSender } from "../src/control/webhooks/send.ts"
import { insertDelivery } from "../src/store/alerts/deliveries.ts"
import { createContentCipher, sealText } from "../src/store/content/cipher.ts"
import { cipher } from "./kept-content.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, platformCipher, seeder, startPlatform } from "./platform.ts"
import { type Receiver, answerWith, startReceiver } from "./webhook-receiver.ts"
import { column, row } from "../src/store/rows.ts"

/** Only the test of a receiver that hangs waits for it. */
const hangMs = 300
/** A machine that is busy may take its time; what is waited for is an event, not a duration. */
const eventually = { timeout: 60_000, interval: 20 }

let platform: Platform
let receiver: Receiver
let org: string
let bearer: string
let deliverer: Deliverer | null = null
/** Added to the real time, so that retries become due when a test says so. */
let aheadMs = 0
const clock = {
  nowMs: () => Date.now() + aheadMs,
  monotonicMs: () => performance.now(),
}
let logged = ""
const log = createLog(
  "trace",
  new Writable({
    write: (chunk, _, done) => {
      logged += String(chunk)
      done()
    },
  }),
)

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase(), { log, deps: { allowPrivateWebhooks: true } })
  receiver = await startReceiver()
  ;({ org, bearer } = await organization("first"))
})

afterAll(async () => {
  await receiver.close()
  await platform.close()
  await platform.database.close()
})

afterEach(async () => {
  await deliverer?.close()
  deliverer = null
  aheadMs = 0
})

async function organization(name: string): Promise<{ org: string; bearer: string }> {
  const seed = seeder(platform)
  const id = await seed.organization(name, await seed.billingAccount())
  const owner = await seed.user(`${name}@webhooks.test`)
  await seed.member(id, owner, "primary_owner")
  return { org: id, bearer: await seed.session(owner) }
}

async function deliver(timeoutMs = 600_000): Promise<void> {
  const webhooks = createWebhookSender({ allowPrivate: true, timeoutMs })
  const started = await startDeliverer({
    database: platform.database,
    clock,
    ids: platform.ids,
    log,
    webhooks,
    cipher,
    mail: null,
    recipients: "members",
  })
  deliverer = {
    ...started,
    close: async () => {
      await started.close()
      await webhooks.close()
    },
  }
}

/** Moves the time of the deliverer, and lets it look. */
function advanceTo(ms: number): void {
  aheadMs = ms
  deliverer?.invalidate({ table: "deliveries", id: "" })
}

const call = async (method: string, path: string, body?: unknown, owner = { org, bearer }) =>
  await platform.send(method, `/v1/organizations/${owner.org}/webhooks${path}`, {
    bearer: owner.bearer,
    ...(body === undefined ? {} : { body }),
  })

async function webhookAt(path: string, owner?: { org: string; bearer: string }) {
  const made = await call("POST", "", { url: receiver.url + path }, owner)
  expect(made.status).toBe(200)
  return made.body.data as { id: string; secret: string }
}

async function testOf(id: string, owner?: { org: string; bearer: string }): Promise<string> {
  return (await call("POST", `/${id}/test`, undefined, owner)).body.data.id
}

/** Waits until the delivery is as described, and answers it. */
async function waitFor(
  webhook: string,
  delivery: string,
  wanted: Record<string, unknown>,
  owner?: { org: string; bearer: string },
) {
  return await vi.waitFor(async () => {
    const { data } = (await call("GET", `/${webhook}/deliveries/${delivery}`, undefined, owner)).body
    expect(data).toMatchObject(wanted)
    return data
  }, eventually)
}

/** As docs/alerts.md tells receivers to do it; the test below holds the page to it. */
function isSigned(secret: string, header: string, body: string): boolean {
  const parts = header.split(",").map((part) => part.split("="))
  const time = parts.find(([name]) => name === "t")?.[1] ?? ""
  const expected = createHmac("sha256", secret).update(`${time}.${body}`).digest()
  return parts
    .filter(([name]) => name === "v1")
    .some(([, value = ""]) => {
      const given = Buffer.from(value, "hex")
      return given.length === expected.length && timingSafeEqual(given, expected)
    })
}

test("an event is delivered once, signed with the secret that was shown", async () => {
  const { id, secret } = await webhookAt("/good")
  await deliver()
  const delivery = await testOf(id)
  const done = await waitFor(id, delivery, { state: "succeeded", attempts: 1, status: 204, error: null })
  expect(done.next_attempt_at).toBeNull()
  const [got, ...more] = receiver.at("/good")
  expect(more).toEqual([])
  expect(got?.body).toBe(done.body)
  expect(JSON.parse(got?.body ?? "")).toMatchObject({
    id: done.event_id,
    type: "webhook.test",
    organization_id: org,
    data: { webhook_id: id },
  })
  const signature = String(got?.headers["umpire-signature"])
  expect(isSigned(secret, signature, got?.body ?? "")).toBe(true)
  expect(isSigned(secret, signature, `${got?.body} `)).toBe(false)
  expect(isSigned("whsec_other", signature, got?.body ?? "")).toBe(false)
})

test("a webhook for Slack or Teams gets a message of theirs, signed too, in which markup of others is text", async () => {
  const url = `${receiver.url}/chat`
  const made = (await call("POST", "", { url, format: "slack" })).body.data as { id: string; secret: string }
  await deliver()
  await waitFor(made.id, await testOf(made.id), { state: "succeeded" })
  const slack = receiver.at("/chat")[0]
  expect(JSON.parse(slack?.body ?? "")).toEqual({
    text: "Test from Umpire",
    blocks: [
      { type: "header", text: { type: "plain_text", text: "Test from Umpire", emoji: false } },
      {
        type: "section",
        text: {
          type: "mrkdwn",
          text: `This webhook works: alerts will come here.\n<${platform.url}/o/${org}/alerts|Open the alerts>`,
        },
      },
    ],
  })
  expect(isSigned(made.secret, String(slack?.headers["umpire-signature"]), slack?.body ?? "")).toBe(true)
  expect((await call("PATCH", `/${made.id}`, { format: "teams" })).body.data.format).toBe("teams")
  await waitFor(made.id, await testOf(made.id), { state: "succeeded" })
  expect(JSON.parse(receiver.at("/chat")[1]?.body ?? "")).toMatchObject({
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        content: {
          type: "AdaptiveCard",
          body: [
            { type: "TextBlock", text: "Test from Umpire" },
            { type: "TextBlock", wrap: true },
          ],
          actions: [{ type: "Action.OpenUrl", url: `${platform.url}/o/${org}/alerts` }],
        },
      },
    ],
  })
  expect((await call("PATCH", `/${made.id}`, { format: "discord" })).status).toBe(422)
})

/** The columns of a webhook's row. */
const secretsOf = async (id: string): Promise<(string | null)[]> =>
  (
    await row({ secret: column.text, previous_secret: column.text.nullable() }).all(
      platform.database,
    )`SELECT secret, previous_secret FROM webhooks WHERE id = ${id}`
  ).flatMap(({ secret, previous_secret }) => [secret, previous_secret])

test("secrets are encrypted in the store, also after a rotation", async () => {
  const { id } = await webhookAt("/sealed")
  await call("POST", `/${id}/rotate`, { grace_seconds: 600 })
  for (const stored of await secretsOf(id)) expect(stored).toMatch(/^sealed:[A-Za-z0-9+/=]{80,}$/)
})

test("a secret that was stored before there was a key signs, also once it is encrypted; one whose key is gone ends its delivery", async () => {
  const { id, secret } = await webhookAt("/plain")
  await platform.database.query(
    "UPDATE webhooks SET secret = $2, previous_secret = $2, previous_secret_expires_at = created_at WHERE id = $1",
    [id, secret],
  )
  await deliver()
  await waitFor(id, await testOf(id), { state: "succeeded" })
  const [got] = receiver.at("/plain")
  expect(isSigned(secret, String(got?.headers["umpire-signature"]), got?.body ?? "")).toBe(true)
  await sealTask(platform.database, platformCipher).run()
  for (const stored of await secretsOf(id)) expect(stored).toMatch(/^sealed:/)
  await waitFor(id, await testOf(id), { state: "succeeded" })
  const lost = sealText(
    createContentCipher([Buffer.alloc(32, 9)]),
    { organizationId: org, seqId: id },
    secret,
  )
  await platform.database.query("UPDATE webhooks SET secret = $2 WHERE id = $1", [id, lost])
  await waitFor(id, await testOf(id), { state: "failed", attempts: 1 })
})

test("after a rotation with grace, both secrets verify; after the grace only the new one", async () => {
  const { id, secret: old } = await webhookAt("/rotated")
  const rotated = (await call("POST", `/${id}/rotate`, { grace_seconds: 600 })).body.data.secret as string
  await deliver()
  await waitFor(id, await testOf(id), { state: "succeeded" })
  advanceTo(601_000)
  await waitFor(id, await testOf(id), { state: "succeeded" })
  const verified = receiver
    .at("/rotated")
    .map(({ headers, body }) =>
      [old, rotated].map((one) => isSigned(one, String(headers["umpire-signature"]), body)),
    )
  expect(verified).toEqual([
    [true, true],
    [false, true],
  ])
})

test("a receiver that fails is tried again with backoff, with the same id, until it answers", async () => {
  const { id } = await webhookAt("/failing")
  receiver.behave("/failing", answerWith(500))
  await deliver()
  const delivery = await testOf(id)
  const first = await waitFor(id, delivery, { state: "pending", attempts: 1, status: 500 })
  expect(first.error).toBe("the receiver answered 500")
  const waitsMs = Date.parse(first.next_attempt_at) - Date.parse(first.last_attempt_at)
  expect(waitsMs).toBeGreaterThanOrEqual(retryDelaysMs[0] ?? 0)
  receiver.behave("/failing", answerWith(200))
  advanceTo(2 * (retryDelaysMs[0] ?? 0))
  await waitFor(id, delivery, { state: "succeeded", attempts: 2, status: 200 })
  const ids = receiver.at("/failing").map(({ body }) => JSON.parse(body).id)
  expect(ids).toEqual([first.event_id, first.event_id])
})

test("after the last attempt the delivery has failed, and can be sent again", async () => {
  const { id } = await webhookAt("/dead")
  receiver.behave("/dead", answerWith(503))
  await deliver()
  const delivery = await testOf(id)
  for (const [at, delayMs] of retryDelaysMs.entries()) {
    const nextMs = await vi.waitFor(async () => {
      const { data } = (await call("GET", `/${id}/deliveries/${delivery}`)).body
      expect(data).toMatchObject({ state: "pending", attempts: at + 1, status: 503 })
      // While an attempt is under way, the time of the next one is that of this one.
      const waitsMs = Date.parse(data.next_attempt_at) - Date.parse(data.last_attempt_at)
      expect(waitsMs).toBeGreaterThanOrEqual(delayMs)
      return Date.parse(data.next_attempt_at)
    }, eventually)
    advanceTo(nextMs - Date.now())
  }
  await waitFor(id, delivery, { state: "failed", attempts: retryDelaysMs.length + 1, next_attempt_at: null })
  receiver.behave("/dead", answerWith(200))
  await call("POST", `/${id}/deliveries/${delivery}/resend`)
  const done = await waitFor(id, delivery, { state: "succeeded" })
  expect(done.attempts).toBe(retryDelaysMs.length + 2)
  expect(new Set(receiver.at("/dead").map(({ body }) => body)).size).toBe(1)
})

test("redirects are not followed", async () => {
  const { id } = await webhookAt("/moved")
  receiver.behave("/moved", answerWith(302, { location: `${receiver.url}/elsewhere` }))
  await deliver()
  const failed = await waitFor(id, await testOf(id), { state: "pending", status: 302 })
  expect(failed.error).toContain("redirects are not followed")
  expect(receiver.at("/elsewhere")).toEqual([])
})

test("a receiver that hangs is given up after the timeout", async () => {
  receiver.behave("/hangs", () => undefined)
  const { id } = await webhookAt("/hangs")
  await deliver(hangMs)
  const error = `no answer within ${hangMs} ms`
  await waitFor(id, await testOf(id), { state: "pending", attempts: 1, status: null, error })
})

test("the status decides: an answer whose body is long, or never ends, is not waited for", async () => {
  receiver.behave("/drips", (response) => void response.writeHead(200).write("and so on"))
  receiver.behave("/floods", (response) => void response.writeHead(200).end(Buffer.alloc(8 * 1024 * 1024)))
  const [drips, floods] = [await webhookAt("/drips"), await webhookAt("/floods")]
  await deliver()
  await waitFor(drips.id, await testOf(drips.id), { state: "succeeded", status: 200 })
  await waitFor(floods.id, await testOf(floods.id), { state: "succeeded", status: 200 })
})

test("a receiver that answers 410 is disabled, and what waits for it is cancelled", async () => {
  const { id } = await webhookAt("/gone")
  const waiting = await Promise.all(Array.from({ length: 10 }, async () => await testOf(id)))
  receiver.behave("/gone", answerWith(410))
  await deliver()
  await vi.waitFor(async () => {
    const { data } = (await call("GET", `/${id}/deliveries`)).body
    expect(data.filter(({ state }: { state: string }) => state === "pending")).toEqual([])
    expect(data).toHaveLength(waiting.length)
  }, eventually)
  const { data } = (await call("GET", `/${id}`)).body
  expect(data).toMatchObject({ enabled: false, disabled_reason: "gone" })
  expect((await call("POST", `/${id}/test`)).status).toBe(409)
  const log = await platform.send("GET", `/v1/organizations/${org}/audit_log?limit=10`, { bearer })
  expect(JSON.stringify(log.body)).toContain("webhook.disable")
})

test("a 410 from an address that the webhook no longer has does not disable it: the event goes to the new one", async () => {
  const { id } = await webhookAt("/old-place")
  const answered = Promise.withResolvers<() => void>()
  receiver.behave("/old-place", (response) => answered.resolve(() => response.writeHead(410).end()))
  const delivery = await testOf(id)
  await deliver()
  const answer = await answered.promise
  expect((await call("PATCH", `/${id}`, { url: `${receiver.url}/new-place` })).status).toBe(200)
  answer()
  await waitFor(id, delivery, { state: "succeeded", status: 204, attempts: 2 })
  expect(receiver.at("/new-place")).toHaveLength(1)
  expect((await call("GET", `/${id}`)).body.data).toMatchObject({ enabled: true, disabled_reason: null })
})

test("a gateway that dies while it sends is replaced: the receiver sees the same event twice", async () => {
  const { id } = await webhookAt("/twice")
  const delivery = await testOf(id)
  // As the dead gateway left it: claimed, and perhaps sent.
  await platform.database.query(
    "UPDATE deliveries SET attempts = 1, tries = 1, leased_until = $2, last_attempt_at = now() WHERE id = $1",
    [delivery, new Date(Date.now() + 600_000)],
  )
  await deliver()
  const other = await testOf(id)
  await waitFor(id, other, { state: "succeeded" })
  // The lease of the dead one still holds.
  expect((await call("GET", `/${id}/deliveries/${delivery}`)).body.data.state).toBe("pending")
  advanceTo(601_000)
  const done = await waitFor(id, delivery, { state: "succeeded", attempts: 2 })
  const seen = receiver.at("/twice").map(({ body }) => JSON.parse(body).id)
  expect(seen.filter((one) => one === done.event_id)).toHaveLength(1)
})

test("a receiver of one organization that hangs does not delay another's", async () => {
  const slow = await organization("slow")
  const hanging = await webhookAt("/hangs-on", slow)
  const released: (() => void)[] = []
  receiver.behave("/hangs-on", (response) => void released.push(() => response.writeHead(204).end()))
  const sent = await Promise.all(Array.from({ length: 50 }, async () => await testOf(hanging.id, slow)))
  const { id } = await webhookAt("/prompt")
  const webhooks = createWebhookSender({ allowPrivate: true, timeoutMs: 600_000 })
  deliverer = await startDeliverer({
    database: platform.database,
    clock,
    ids: platform.ids,
    log,
    webhooks,
    cipher,
    mail: null,
    recipients: "members",
  })
  await vi.waitFor(() => expect(released.length).toBeGreaterThan(0), eventually)
  // All of the slow one's are due before this one, and none of those under way will end by itself.
  await waitFor(id, await testOf(id), { state: "succeeded" })
  expect(released.length).toBeLessThan(sent.length)
  await deliverer.close()
  deliverer = null
  await webhooks.close()
  const { data } = (await call("GET", `/${hanging.id}/deliveries?state=pending`, undefined, slow)).body
  expect(data).toHaveLength(sent.length)
  await call("DELETE", `/${hanging.id}`, undefined, slow)
})

test.each([
  ["http://127.0.0.1/", "HTTPS is needed"],
  ["https://127.0.0.1/", "the address is private"],
  ["https://169.254.169.254/latest/meta-data", "the address is private"],
  ["https://[::ffff:10.0.0.1]/", "the address is private"],
  ["https://0x7f.1/", "the address is private"],
])("without webhooks.allow_private, %s is refused: %s", async (url, reason) => {
  const strict = await startPlatform(platform.database)
  const answer = await strict.send("POST", `/v1/organizations/${org}/webhooks`, { bearer, body: { url } })
  await strict.close()
  expect(answer.status).toBe(422)
  expect(answer.body.error.message).toContain(reason)
  // One that was allowed when it was made is checked again when it is used.
  const sender = createWebhookSender({ allowPrivate: false })
  const sent = await sender.send(url, "{}", {}, new AbortController().signal)
  await sender.close()
  expect(sent).toEqual({ status: null, error: reason })
})

test("a name that resolves to a private address is refused when it is connected to, and HTTP to a public one", async () => {
  const before = receiver.received.length
  const { port } = new URL(receiver.url)
  const strict = createWebhookSender({ allowPrivate: false })
  const named = await strict.send(`https://localhost:${port}/`, "{}", {}, new AbortController().signal)
  await strict.close()
  expect(named).toEqual({ status: null, error: "the address is private" })
  const lax = createWebhookSender({ allowPrivate: true })
  const plain = await lax.send("http://8.8.8.8/", "{}", {}, new AbortController().signal)
  await lax.close()
  expect(plain).toEqual({ status: null, error: "HTTP is for private addresses only" })
  expect(receiver.received.length).toBe(before)
})

test("an organization has as many webhooks and waiting deliveries as the limits say, and not one more", async () => {
  const owner = await organization("bounded")
  const url = "https://receiver.example/"
  const made = []
  for (let at = 0; at < alertLimits.webhooksMax; at++) made.push(await call("POST", "", { url }, owner))
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([200]))
  expect((await call("POST", "", { url }, owner)).status).toBe(409)
  const webhookId = made[0]?.body.data.id as string
  const insert = async () =>
    await insertDelivery(
      platform.database,
      {
        id: platform.ids.next("dlv"),
        organizationId: owner.org,
        webhookId,
        address: null,
        eventId: platform.ids.next("evt"),
        type: "alert.firing",
        body: "{}",
        createdAt: new Date(),
      },
      3,
    )
  const states = [await insert(), await insert(), await insert(), await insert()].map(({ state }) => state)
  expect(states).toEqual(["pending", "pending", "pending", "failed"])
})

test("secrets are shown once, and stand in no log and no audit entry", async () => {
  const made = await webhookAt("/secret")
  const shown = JSON.stringify((await call("GET", `/${made.id}`)).body)
  const audit = JSON.stringify(
    (await platform.send("GET", `/v1/organizations/${org}/audit_log?limit=200`, { bearer })).body,
  )
  for (const text of [shown, audit, logged]) expect(text).not.toContain("whsec_")
})

type Verify = (secret: string, header: string, body: string, nowMs: number) => boolean

test("the page for receivers verifies as this test does", async () => {
  const page = readFileSync(new URL("../docs/alerts.md", import.meta.url), "utf8")
  const [, code = ""] = /```js\n([\s\S]*?)```/.exec(page) ?? []
  expect(code).toContain("timingSafeEqual")
  const folder = mkdtempSync(join(tmpdir(), "umpire-verify-"))
  writeFileSync(join(folder, "verify.mjs"), code)
  const { verify }: { verify: Verify } = await import(pathToFileURL(join(folder, "verify.mjs")).href)
  rmSync(folder, { recursive: true })
  const body = '{"id":"evt_1"}'
  const sign = (secret: string, time: number) =>
    `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`
  expect(verify("whsec_a", sign("whsec_a", 1000), body, 1_000_000)).toBe(true)
  expect(verify("whsec_a", sign("whsec_a", 1000), `${body} `, 1_000_000)).toBe(false)
  expect(verify("whsec_a", sign("whsec_b", 1000), body, 1_000_000)).toBe(false)
  expect(verify("whsec_a", "t=1000,v1=00", body, 1_000_000)).toBe(false)
  expect(verify("whsec_a", "", body, 1_000_000)).toBe(false)
  // A body that is older than five minutes may be a replay.
  expect(verify("whsec_a", sign("whsec_a", 1000), body, 1_000_000 + 301_000)).toBe(false)
})
