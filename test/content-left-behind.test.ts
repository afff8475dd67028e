/** What is left of kept content: after a repeated request, a label that was taken back, a deletion that breaks off, and time. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { questionSetLimits } from "../src/contract/question-sets/content.ts"
import { contentHandlers } from "../src/control/content/content.ts"
import { purgeExpired } from "../src/control/upkeep.ts"
import { openTestDatabase } from "./database.ts"
import { cipher, seedContent } from "./kept-content.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"

const dayMs = 24 * 3_600_000
let platform: Platform
let org: string
let bearer: string
let set: string
let made = 0

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }

beforeEach(async () => {
  const seed = seeder(platform)
  org = await seed.organization(`org-${++made}`, await seed.billingAccount())
  bearer = await session("owner", "primary_owner")
  const questions = [rude, { ...rude, name: "loud" }]
  set = (await send("POST", "/question_sets", { name: "set", model: "open", questions })).body.data.id
})

async function session(name: string, role: "primary_owner" | "member"): Promise<string> {
  const seed = seeder(platform)
  const user = await seed.user(`${name}-${made}@content.test`)
  await seed.member(org, user, role)
  return await seed.session(user)
}

const send = async (method: string, path: string, body?: unknown, headers = {}, who = bearer) =>
  await platform.send(method, `/v1/organizations/${org}${path}`, {
    bearer: who,
    headers,
    ...(body === undefined ? {} : { body }),
  })

test("the evidence of a reviewed item is not remembered with the answer to a repeated request", async () => {
  const evidence = "marker-reviewed-4713"
  const { itemId } = await seedContent(platform, { organizationId: org, evidence, setId: set })
  const path = `/question_sets/${set}/review/${itemId}`
  const decide = async () => await send("POST", path, { label: true }, { "idempotency-key": "decide" })
  const undo = async () => await send("DELETE", `${path}/label`, undefined, { "idempotency-key": "undo" })
  for (const repeated of [decide, undo]) {
    const first = await repeated()
    expect(first.body.data).toMatchObject({ id: itemId, evidence })
    const { evidence: _, ...rest } = first.body.data
    expect((await repeated()).body.data).toEqual({ ...rest, evidence: null })
  }
  const rows = await platform.database.query("SELECT 1 FROM idempotency_keys WHERE body LIKE $1", [
    `%${evidence}%`,
  ])
  expect(rows).toEqual([])
})

test("an example of deleted content is deleted, also when the label that made it was taken back", async () => {
  const evidence = "marker-learned-4714"
  const { seqId, itemId } = await seedContent(platform, { organizationId: org, evidence, setId: set })
  const other = platform.ids.next("rev")
  await platform.database.query(
    `INSERT INTO review_items (id, set_id, organization_id, seq_id, question, version, reason, second_look, created_at)
     VALUES ($1, $2, $3, $4, 'loud', 1, 'audit', false, now())`,
    [other, set, org, seqId],
  )
  const path = `/question_sets/${set}/review`
  await send("POST", `${path}/${itemId}`, { label: true })
  await send("POST", `${path}/${other}`, { label: true }, {}, await session("second", "member"))
  await send("DELETE", `${path}/${itemId}/label`)
  const examples = async () => (await send("GET", `/question_sets/${set}/examples`)).body.data
  expect(await examples()).toMatchObject([{ input: evidence, labels: { loud: true } }])
  expect((await send("DELETE", `/sequences/${seqId}/content`)).status).toBe(204)
  expect(await examples()).toEqual([])
})

test("reading the review queue is in the audit log with the sequences that it showed", async () => {
  const path = `/question_sets/${set}/review`
  expect((await send("GET", path)).body.data).toEqual([])
  const { seqId } = await seedContent(platform, { organizationId: org, evidence: "shown", setId: set })
  expect((await send("GET", path)).body.data).toHaveLength(1)
  const { data } = (await send("GET", "/audit_log?action=review.read")).body
  expect(data).toMatchObject([{ resource: { type: "question_set", id: set }, after: { sequences: [seqId] } }])
})

test("a label is an example: an organization that stores as much as it may is refused one more", async () => {
  const { itemId } = await seedContent(platform, { organizationId: org, evidence: "one more", setId: set })
  const full = await send("POST", "/question_sets", { name: "full", model: "open", questions: [rude] })
  const { organizationRowsMax } = questionSetLimits
  await platform.database.query(
    `INSERT INTO question_set_examples (id, set_id, input, input_hash, split, labels, created_at, updated_at)
     SELECT 'ex_' || $1 || n, $1, 'x', n, 'train', '{}', now(), now() FROM generate_series(1, $2::int) AS n`,
    [full.body.data.id, organizationRowsMax],
  )
  const label = async () => await send("POST", `/question_sets/${set}/review/${itemId}`, { label: true })
  const refused = await label()
  expect(refused.status).toBe(409)
  expect(refused.body.error.message).toContain(`would hold ${organizationRowsMax + 1} examples`)
  await platform.database.query("DELETE FROM question_set_examples WHERE input_hash = '1'")
  expect((await label()).status).toBe(200)
})

test("labels of what the set abstained from count as corrections, so that teaching pays", async () => {
  for (let at = 0; at < 20; at++) {
    const { itemId } = await seedContent(platform, {
      organizationId: org,
      evidence: `Text ${at}`,
      setId: set,
    })
    await send("POST", `/question_sets/${set}/review/${itemId}`, { label: true })
  }
  // Taught long ago: for a set that never was, every label counts.
  await platform.database.query(
    `INSERT INTO question_set_jobs (id, set_id, organization_id, kind, state, input, principal, created_at, finished_at)
     VALUES ($1, $2, $3, 'teach', 'succeeded', '{}', '{}', '2020-01-01', '2020-01-01')`,
    [platform.ids.next("job"), set, org],
  )
  const { data } = (await send("GET", `/question_sets/${set}/review/summary`)).body
  expect(data).toMatchObject({
    labelled_since_taught: 20,
    corrected_since_taught: 20,
    teaching_would_pay: true,
  })
})

test("a deletion that breaks off is in the audit log", async () => {
  await seedContent(platform, { organizationId: org, evidence: "deleted" })
  const { database, ids } = platform
  const content = { cipher, dropped: () => [], settle: async () => undefined }
  const { deleteContents } = contentHandlers({
    database,
    ids,
    content,
    clock: systemClock,
    invalidate: () => undefined,
  })
  const call = {
    principal: { kind: "key", id: "key_1", userId: null },
    membership: { organizationId: org },
    params: { org_id: org },
    body: { before: new Date().toISOString() },
    request: { ip: "127.0.0.1", userAgent: null, signal: AbortSignal.abort() },
    idempotency: null,
  }
  // As much of a call as the handler reads.
  await expect(deleteContents(call as never)).rejects.toThrow()
  const { data } = (await send("GET", "/audit_log?action=content.delete")).body
  expect(data).toHaveLength(1)
})

test("what only says that content was there is removed after 400 days, however much it is", async () => {
  const count = async () =>
    await platform.database.query("SELECT count(*)::int AS count FROM content WHERE organization_id = $1", [
      org,
    ])
  await platform.database.query(
    `INSERT INTO content (seq_id, organization_id, at, level, expires_at, state)
     SELECT 'seq_' || $1 || n, $1, now() - interval '400 days', 'answers', now(), 'expired'
     FROM generate_series(1, 1001) AS n`,
    [org],
  )
  await purgeExpired(platform.database, new Date(Date.now() - dayMs))
  expect(await count()).toEqual([{ count: 1001 }])
  await purgeExpired(platform.database, new Date(Date.now() + dayMs))
  expect(await count()).toEqual([{ count: 0 }])
})

test.each(["0000-12-31T23:59:59Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-00:01"])(
  "a time that the store cannot hold is refused: %s",
  async (time) => {
    const query = encodeURIComponent(time)
    const key = { name: "key", permissions: ["api-read"], expires_at: time }
    const answers = [
      await send("POST", "/content/delete", { before: time }),
      await send("GET", `/content/export?from=${query}`),
      await send("GET", `/audit_log?to=${query}`),
      await send("POST", "/api_keys", key),
    ]
    expect(answers.map(({ status }) => status)).toEqual([422, 400, 400, 422])
  },
)

const monitor = async (start: number, end: number) =>
  await send("GET", `/question_sets/${set}/monitoring?range_start=${start}&range_end=${end}`)

test("a range of monitoring ends with the year 9999", async () => {
  const endMs = Date.parse("9999-12-31T00:00:00Z")
  expect((await monitor(endMs - dayMs, endMs)).status).toBe(200)
  expect((await monitor(endMs, endMs + dayMs)).status).toBe(400)
})
