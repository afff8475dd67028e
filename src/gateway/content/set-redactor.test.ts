/** Content is redacted by question sets in turns between organizations, and what cannot be is retried, then dropped. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { openTestDatabase } from "../../../test/database.ts"
import { seeder } from "../../../test/platform.ts"
import { ManualClock } from "../../../test/manual-clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import { createContentCipher } from "../../store/content/cipher.ts"
import { deleteContent, findContent, findContentStates, insertContents } from "../../store/content/content.ts"
import { redactingMax } from "../../store/content/redacting.ts"
import { type ContentRecord, storeContents } from "../../store/content/journal.ts"
import type { Database } from "../../store/sql.ts"
import { DroppedCounts } from "./dropped.ts"
import { SetRedactor, redactionRetryMs } from "./set-redactor.ts"

const eventually = { timeout: 60_000, interval: 20 }
const cipher = createContentCipher([Buffer.alloc(32, 3)])
const ids = createIds()
/** Stands still, so that no retry is due before a test says so. */
const clock = new ManualClock(Date.now())
let database: Database
let organizations: string[]

beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(async () => await database.close())
beforeEach(async () => {
  await database.query("DELETE FROM content")
  const seed = seeder({ database, ids })
  organizations = []
  for (const name of ["One", "Two"])
    organizations.push(await seed.organization(name, await seed.billingAccount()))
})

const body = (evidence: string): string =>
  JSON.stringify({
    evidence,
    input: { messages: [{ role: "user", content: `${evidence} said` }], texts: [] },
    output: [{ role: "assistant", content: evidence }],
    redactions: 0,
  })

/** Answers the id of its sequence. */
async function store(organizationId: string, evidence = "secret", own = cipher): Promise<string> {
  const seqId = ids.next("seq")
  const at = new Date(clock.nowMs())
  await insertContents(database, [
    {
      seqId,
      organizationId,
      apiKeyId: null,
      at,
      level: "evidence_and_answers",
      expiresAt: new Date(at.getTime() + 3_600_000),
      referenceHash: null,
      redactWith: "private",
      sealed: own.seal({ organizationId, seqId }, body(evidence)).toString("base64"),
    },
  ])
  return seqId
}

async function bodyOf(organizationId: string, seqId: string): Promise<unknown> {
  const stored = await findContent(database, organizationId, seqId, new Date())
  return stored && JSON.parse(cipher.open({ organizationId, seqId }, stored.sealed) ?? "null")
}

type Redact = ConstructorParameters<typeof SetRedactor>[0]["redact"]
const hide: Redact = async (_, texts) => ({
  texts: texts.map((text) => text.replaceAll("secret", "[…]")),
  count: 1,
})

function open(redact: Redact) {
  const dropped = new DroppedCounts(clock)
  const redactor = new SetRedactor({ database, cipher, dropped, redact, clock, log: silentLog })
  redactor.start()
  return { redactor, dropped }
}

test("content is read only when it is redacted: evidence, conversation and what was generated", async () => {
  const [org = ""] = organizations
  const seqId = await store(org)
  expect(await bodyOf(org, seqId)).toBe(null)
  const state = async () => (await findContentStates(database, org, [seqId], new Date())).get(seqId)
  expect(await state()).toBe("redacting")
  const { redactor } = open(hide)
  await redactor.settle(org, AbortSignal.timeout(600_000))
  expect(await state()).toBe("evidence_and_answers")
  expect(await bodyOf(org, seqId)).toMatchObject({
    evidence: "[…]",
    input: { messages: [{ content: "[…] said" }] },
    output: [{ content: "[…]" }],
    redactions: 1,
  })
  await redactor.close()
})

test("an organization whose set hangs does not delay another's content", async () => {
  const [slow = "", quick = ""] = organizations
  for (let at = 0; at < 6; at++) await store(slow)
  const released = Promise.withResolvers<undefined>()
  let underWay = 0
  const { redactor } = open(async (content, texts, signal) => {
    if (content.organizationId !== slow) return await hide(content, texts, signal)
    underWay++
    await released.promise
    return await hide(content, texts, signal)
  })
  await expect.poll(() => underWay, eventually).toBe(1)
  const seqId = await store(quick)
  await redactor.settle(quick, AbortSignal.timeout(600_000))
  expect(await bodyOf(quick, seqId)).toMatchObject({ evidence: "[…]" })
  expect(underWay).toBe(1)
  released.resolve(undefined)
  await redactor.settle(slow, AbortSignal.timeout(600_000))
  expect(underWay).toBe(6)
  await redactor.close()
})

test("a set that cannot answer is asked again; content is stored when it can, and dropped and counted at the end", async () => {
  const [org = ""] = organizations
  const seqId = await store(org)
  let attempts = 0
  const fails = { until: 2 }
  const { redactor, dropped } = open(async (...given) => {
    if (++attempts <= fails.until) throw new Error("the store is away")
    return await hide(...given)
  })
  for (const [at, delayMs] of redactionRetryMs.slice(0, 2).entries()) {
    await expect.poll(() => attempts, eventually).toBe(at + 1)
    await redactor.settle(org, AbortSignal.timeout(600_000))
    expect(await bodyOf(org, seqId)).toBe(null)
    clock.advance(delayMs)
    redactor.wake()
  }
  await expect.poll(() => bodyOf(org, seqId), eventually).toMatchObject({ evidence: "[…]" })
  fails.until = Infinity
  attempts = 0
  const lost = await store(org)
  for (const delayMs of [...redactionRetryMs, 0]) {
    redactor.wake()
    const before = attempts
    await expect.poll(() => attempts, eventually).toBeGreaterThan(before)
    await redactor.settle(org, AbortSignal.timeout(600_000))
    clock.advance(delayMs)
  }
  expect(attempts).toBe(redactionRetryMs.length + 1)
  expect(await database.query("SELECT 1 FROM content WHERE seq_id = $1", [lost])).toEqual([])
  expect(Object.fromEntries(dropped.totals())).toEqual({ redaction: 1 })
  await redactor.close()
})

test("a server that stops returns what it works on, and the next one redacts it with all its attempts", async () => {
  const [org = ""] = organizations
  const seqId = await store(org)
  const begun = Promise.withResolvers<undefined>()
  const stopping = open(async (_, __, signal) => {
    begun.resolve(undefined)
    return await new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error))
    })
  })
  await begun.promise
  await stopping.redactor.close()
  const rows = await database.query("SELECT redact_attempts FROM content WHERE seq_id = $1", [seqId])
  expect(rows).toEqual([{ redact_attempts: 0 }])
  const next = open(hide)
  await next.redactor.settle(org, AbortSignal.timeout(600_000))
  expect(await bodyOf(org, seqId)).toMatchObject({ evidence: "[…]" })
  await next.redactor.close()
})

test("content that is deleted while it is redacted stays deleted", async () => {
  const [org = ""] = organizations
  const seqId = await store(org)
  const { redactor } = open(async (...given) => {
    expect(await deleteContent(database, org, seqId, new Date())).toBe("deleted")
    return await hide(...given)
  })
  await redactor.settle(org, AbortSignal.timeout(600_000))
  const rows = await database.query("SELECT state, sealed FROM content WHERE seq_id = $1", [seqId])
  expect(rows).toEqual([{ state: "deleted", sealed: null }])
  await redactor.close()
})

test("an organization keeps so many records waiting for its set and no more; the rest are dropped", async () => {
  const [org = "", other = ""] = organizations
  const at = new Date()
  await database.query(
    `INSERT INTO content (seq_id, organization_id, at, level, expires_at, state, sealed, redact_with, redact_after)
     SELECT 'seq_' || n, $1, $2, 'answers', $2, 'redacting', '\\x00', 'private', $2 FROM generate_series(2, $3::int) AS n`,
    [org, at, redactingMax.rows],
  )
  const record = (organization_id: string, redact_with: string | null): ContentRecord => ({
    seq_id: ids.next("seq"),
    organization_id,
    api_key_id: null,
    at: at.getTime(),
    expires_at: at.getTime(),
    level: "answers",
    reference_hash: null,
    redact_with,
    review: null,
    sealed: "AAAA",
  })
  const [last, over, plain, others] = [
    record(org, "private"),
    record(org, "private"),
    record(org, null),
    record(other, "private"),
  ]
  const dropped = await database.transaction((sql) =>
    storeContents(sql, {
      gatewayId: "gw_1",
      records: [last, over, plain, others],
      next: { segment: 1, offset: 1 },
      now: at,
      ids,
      isSecondLook: () => false,
    }),
  )
  expect(dropped).toEqual([over])
})
