/** Kept content as time passes and as it is deleted: retention, the organization's end, the journal, and two reviewers. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { reviewCountMax } from "../src/contract/question-sets/review.ts"
import { silentLog } from "../src/base/log.ts"
import { purgeExpired } from "../src/control/upkeep.ts"
import { ContentApplier, contentConsumer } from "../src/gateway/content/applier.ts"
import { DroppedCounts } from "../src/gateway/content/dropped.ts"
import { findContentStates } from "../src/store/content/content.ts"
import type { ContentRecord } from "../src/store/content/journal.ts"
import { openJournal } from "../src/store/journal/journal.ts"
import { openTestDatabase } from "./database.ts"
import { type SeededContent, cipher, seedContent } from "./kept-content.ts"
import { storeOperator } from "./operator.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"
import { bytesUnder } from "./written-files.ts"

const dayMs = 24 * 3_600_000
const eventually = { timeout: 60_000, interval: 50 }

let platform: Platform
let org: string
let bearer: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

beforeEach(async () => {
  const seed = seeder(platform)
  org = await seed.organization("Keeps", await seed.billingAccount())
  bearer = await person("first")
})

async function person(name: string): Promise<string> {
  const seed = seeder(platform)
  const id = await seed.user(`${name}-${org}@content.test`)
  await seed.member(org, id, "owner")
  return await seed.session(id)
}

const call = async (method: string, rest: string, body?: unknown, who = bearer): Promise<Answer> =>
  await platform.send(method, `/v1/organizations/${org}${rest}`, {
    bearer: who,
    ...(body === undefined ? {} : { body }),
  })
const seeded = async (given: Omit<SeededContent, "organizationId">) =>
  await seedContent(platform, { organizationId: org, ...given })
const stateAt = async (seqId: string, now: Date): Promise<string> =>
  (await findContentStates(platform.database, org, [seqId], now)).get(seqId) ?? "none"
const isStored = async (seqId: string): Promise<boolean> => {
  const text = "SELECT sealed FROM content WHERE seq_id = $1 AND sealed IS NOT NULL"
  return (await platform.database.query(text, [seqId])).length > 0
}

test("the sweep deletes content at its day and not before; a shorter retention holds for what is stored", async () => {
  const at = new Date()
  const { seqId: month } = await seeded({ evidence: "Kept for 30 days", at })
  const later = (days: number, ms = 0): Date => new Date(at.getTime() + days * dayMs + ms)
  /** After a sweep at that time: whether it is stored, and what the request log says of it. */
  const sweep = async (seqId: string, now: Date): Promise<[boolean, string]> => {
    await purgeExpired(platform.database, now)
    return [await isStored(seqId), await stateAt(seqId, now)]
  }
  expect(await stateAt(month, later(30))).toBe("expired")
  expect(await sweep(month, later(30, -1))).toEqual([true, "evidence_and_answers"])
  expect(await sweep(month, later(30))).toEqual([false, "expired"])
  // Sessions have expired too by then.
  bearer = await person("later")
  expect((await call("GET", `/sequences/${month}/content`)).status).toBe(404)
  const { seqId: week } = await seeded({ evidence: "Kept for 30 days, then for 7", at })
  const settings = await call("PUT", "/content_settings", { keep: "answers", retention_days: 7 })
  expect(settings.status).toBe(200)
  expect(await sweep(week, later(7, -1))).toEqual([true, "evidence_and_answers"])
  expect(await sweep(week, later(7))).toEqual([false, "expired"])
})

test("an organization that is deleted leaves no row, and its content leaves the journal too", async () => {
  const { database, ids, invalidate } = platform
  const directory = mkdtempSync(join(tmpdir(), "umpire-content-"))
  const times = { aheadMs: 0 }
  const clock = {
    nowMs: () => Date.now() + times.aheadMs,
    monotonicMs: () => performance.now() + times.aheadMs,
  }
  const journal = await openJournal<ContentRecord>({
    directory,
    consumers: [contentConsumer],
    newGatewayId: () => ids.next("gw"),
    clock,
  })
  const applier = await ContentApplier.open({
    database,
    journal,
    dropped: new DroppedCounts(clock),
    onRedacting: () => undefined,
    clock,
    ids,
    log: silentLog,
  })
  const record = (): ContentRecord => {
    const seqId = ids.next("seq")
    return {
      seq_id: seqId,
      organization_id: org,
      api_key_id: null,
      at: Date.now(),
      expires_at: Date.now() + dayMs,
      level: "answers",
      reference_hash: null,
      redact_with: null,
      review: null,
      sealed: cipher.seal({ organizationId: org, seqId }, "{}").toString("base64"),
    }
  }
  await call("PUT", "/content_settings", { keep: "evidence_and_answers" })
  await call("POST", "/content/delete", { reference: "nobody" })
  const stored = record()
  await journal.append(stored)
  await applier.drain()
  expect(await isStored(stored.seq_id)).toBe(true)
  // Answered before the deletion and stored after it.
  await journal.append(record())
  await storeOperator({ database, ids, invalidate }).deleteOrganization({ params: { org_id: org } })
  await applier.drain()
  const tables = ["content", "content_settings", "key_content_settings", "content_deletions", "review_items"]
  for (const table of tables) {
    const rows = await database.query(`SELECT FROM ${table} WHERE organization_id = $1`, [org])
    expect([table, rows.length]).toEqual([table, 0])
  }
  const journalled = (): string => Buffer.concat(bytesUnder(directory)).toString()
  expect(journalled()).toContain(org)
  applier.start()
  // As docs/content.md says.
  times.aheadMs = 10 * 60_000
  await expect.poll(journalled, eventually).not.toContain(org)
  await applier.close()
  await journal.close()
  rmSync(directory, { recursive: true })
})

test("two reviewers label without seeing each other; their agreement is Cohen's kappa, a dispute teaches nothing", async () => {
  const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const set = await call("POST", "/question_sets", { name: "mail", model: "open", questions: [rude] })
  const setId = set.body.data.id as string
  const other = await person("second")
  const path = "/question_sets/mail/review"
  const given = [
    ["yes", "yes"],
    ["yes", "no"],
    ["no", "no"],
    ["no", "no"],
  ] as const
  for (const [at, [one, two]] of given.entries()) {
    const { itemId } = await seeded({ evidence: `Text ${at}`, setId, secondLook: true, verdict: "yes" })
    const first = await call("POST", `${path}/${itemId}`, { label: one })
    expect(first.body.data).toMatchObject({ state: "open", reviews: [{ mine: true, label: one }] })
    expect((await call("GET", path)).body.data).toEqual([])
    const [open] = (await call("GET", path, undefined, other)).body.data
    expect(open).toMatchObject({ id: itemId, second_look: true, reviews: [] })
    const second = await call("POST", `${path}/${itemId}`, { label: two }, other)
    expect(second.body.data).toMatchObject({
      state: "done",
      reviews: [
        { mine: false, label: one },
        { mine: true, label: two },
      ],
    })
  }
  const { data } = (await call("GET", `${path}/summary`)).body
  // They agree on 3 of 4, and would by chance on half.
  expect(data).toMatchObject({
    open: 0,
    done: 4,
    labelled_since_taught: 8,
    corrected_since_taught: 5,
    agreement: { pairs: 4, kappa: 0.5, questions: [{ question: "rude", pairs: 4, kappa: 0.5 }] },
  })
  const examples = (await call("GET", "/question_sets/mail/examples")).body.data
  expect(
    examples.map(({ input, labels }: { input: string; labels: unknown }) => [input, labels]).toSorted(),
  ).toEqual([
    ["Text 0", { rude: true }],
    ["Text 2", { rude: false }],
    ["Text 3", { rude: false }],
  ])
})

test("equal texts wait for review once, and not once they are labelled", async () => {
  const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const set = await call("POST", "/question_sets", { name: "mail", model: "open", questions: [rude] })
  const setId = set.body.data.id as string
  const path = "/question_sets/mail/review"
  const waiting = async (): Promise<string[]> =>
    (await call("GET", path)).body.data.map(({ evidence }: { evidence: string }) => evidence)
  for (const evidence of ["Go away", "Thank you", "Go away", "Get lost"])
    await seeded({ evidence, setId, verdict: "yes" })
  expect((await waiting()).toSorted()).toEqual(["Get lost", "Go away", "Thank you"])
  expect((await call("GET", `${path}/summary`)).body.data.open).toBe(3)
  expect((await call("GET", "/review")).body.data).toEqual([{ set_id: setId, set_name: "mail", open: 3 }])
  // Labelled elsewhere.
  const rows = [{ input: "Thank you", labels: { rude: false } }]
  expect((await call("POST", "/question_sets/mail/examples", { rows })).status).toBe(200)
  expect((await waiting()).toSorted()).toEqual(["Get lost", "Go away"])
  const [first] = (await call("GET", path)).body.data
  await call("POST", `${path}/${first.id}`, { label: "yes" })
  expect(await waiting()).toHaveLength(1)
  expect((await call("GET", `${path}/summary`)).body.data.open).toBe(1)
})

test("the review over all sets counts what waits for the caller, up to a most, and names no set without", async () => {
  const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const makeSet = async (name: string): Promise<string> =>
    (await call("POST", "/question_sets", { name, model: "open", questions: [rude] })).body.data.id
  const [short, long] = [await makeSet("b-short"), await makeSet("a-long")]
  await makeSet("c-empty")
  const one = await seeded({ evidence: "One", setId: short, verdict: "yes" })
  await seeded({ evidence: "Two", setId: short, verdict: "yes" })
  for (let n = 0; n <= reviewCountMax; n++)
    await seeded({ evidence: `Text ${n}`, setId: long, verdict: "yes" })
  const queues = async (who = bearer): Promise<unknown> =>
    (await call("GET", "/review", undefined, who)).body.data
  const all = { set_id: long, set_name: "a-long", open: reviewCountMax }
  expect(await queues()).toEqual([all, { set_id: short, set_name: "b-short", open: 2 }])
  // What one has skipped still waits for others.
  await call("POST", `/question_sets/${short}/review/${one.itemId}`, { decision: "skip" })
  expect(await queues()).toEqual([all, { set_id: short, set_name: "b-short", open: 1 }])
  expect(await queues(await person("second"))).toEqual([all, { set_id: short, set_name: "b-short", open: 2 }])
})
