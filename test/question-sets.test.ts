/** Question sets through HTTP: versions, labels, files, limits, and what happens when they are deleted. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { questionSetLimits } from "../src/contract/question-sets/content.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, type Sent, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let bearer: string
let organizationId: string
let path: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

/** An organization of its own for each test. */
beforeEach(async () => {
  const seed = seeder(platform)
  organizationId = await seed.organization("Sets", await seed.billingAccount())
  const owner = await seed.user(`${organizationId}@example.com`)
  await seed.member(organizationId, owner, "primary_owner")
  bearer = await seed.session(owner)
  path = `/v1/organizations/${organizationId}/question_sets`
})

const send = async (method: string, rest: string, body?: unknown, sent: Sent = {}): Promise<Answer> =>
  await platform.send(method, path + rest, { bearer, ...sent, ...(body === undefined ? {} : { body }) })

const refund = { type: "predicate", name: "refund", instructions: "Does the customer want money back?" }
const team = {
  type: "choice",
  name: "team",
  instructions: "Which team?",
  choices: [{ value: "billing" }, { value: "shipping", description: "parcels" }],
}
const refunds = { name: "refunds", description: "Mail", model: "open", questions: [refund, team] }

test("a new set has version 1, the defaults of its settings, and is published, so that what answers never moves by itself", async () => {
  const { status, body } = await send("POST", "", refunds)
  expect(status).toBe(200)
  expect(body.data).toMatchObject({
    name: "refunds",
    model: "open",
    latest_version: 1,
    production_version: 1,
    question_names: ["refund", "team"],
    labels: [{ label: "production", version: 1 }],
    counts: { examples: 0, cases: 0 },
  })
  expect(body.data.questions[0]).toMatchObject({
    ...refund,
    threshold: null,
    below: "abstain",
    target_accuracy: null,
    calibration: null,
    artefact: null,
  })
  expect((await send("GET", `/${body.data.id}`)).body.data).toEqual(body.data)
  expect((await send("GET", "/refunds")).body.data).toEqual(body.data)
})

test("a changed content is a new version, the same content is none, and old versions stay", async () => {
  const created = (await send("POST", "", refunds)).body.data
  const same = await send("PATCH", "/refunds", { questions: refunds.questions })
  expect(same.body.data).toMatchObject({ latest_version: 1, revision: created.revision })
  const changed = await send("PATCH", "/refunds", {
    questions: [{ ...refund, threshold: 0.8 }, team],
    note: "stricter",
  })
  expect(changed.body.data.latest_version).toBe(2)
  const versions = (await send("GET", "/refunds/versions")).body.data
  expect(
    versions.map((one: { version: number; note: string; labels: string[] }) => [
      one.version,
      one.note,
      one.labels,
    ]),
  ).toEqual([
    [2, "stricter", ["latest"]],
    [1, "", ["production"]],
  ])
  const first = (await send("GET", "/refunds/versions/1")).body.data
  expect([first.hash, first.questions[0].threshold]).toEqual([created.hash, null])
  const compared = await send("GET", "/refunds/difference?from=1&to=latest")
  expect(compared.body.data).toEqual({
    from: 1,
    to: 2,
    changes: [{ path: "questions.refund.threshold", before: null, after: 0.8 }],
  })
})

test("the store refuses to change a version", async () => {
  await send("POST", "", refunds)
  await expect(platform.database.query("UPDATE question_set_versions SET content = '{}'")).rejects.toThrow(
    /cannot be changed/,
  )
})

test("questions that are added, removed and moved are named", async () => {
  await send("POST", "", refunds)
  const angry = { type: "predicate", name: "angry", instructions: "Is the customer angry?" }
  await send("PATCH", "/refunds", { questions: [team, angry] })
  await send("PATCH", "/refunds", { questions: [angry, team] })
  const paths = async (from: number, to: number): Promise<string[]> =>
    (await send("GET", `/refunds/difference?from=${from}&to=${to}`)).body.data.changes.map(
      (change: { path: string }) => change.path,
    )
  expect(await paths(1, 2)).toEqual(["questions.refund", "questions.angry"])
  expect(await paths(2, 3)).toEqual(["questions"])
})

test("publishing moves the label, is in the audit log, and If-Match sees it", async () => {
  const { id, revision } = (await send("POST", "", refunds)).body.data
  const changed = await send("PATCH", "/refunds", { model: "off" })
  expect(changed.body.data).toMatchObject({ production_version: 1, latest_version: 2 })
  const published = await send("PUT", "/refunds/labels/production", { version: 1 })
  expect(published.body.data).toMatchObject({ production_version: 1, latest_version: 2 })
  expect((await send("GET", "/refunds/versions/production")).body.data.version).toBe(1)
  await send("PUT", "/refunds/labels/production", { version: 2 })
  const log = await platform.send("GET", `/v1/organizations/${organizationId}/audit_log`, { bearer })
  const publications = log.body.data.filter(
    (entry: { action: string }) => entry.action === "question_set.publish",
  )
  expect(publications).toHaveLength(2)
  expect(publications[0]).toMatchObject({
    resource: { type: "question_set", id },
    before: { label: "production", version: 1 },
    after: { label: "production", version: 2 },
  })
  const stale = await send(
    "PATCH",
    "/refunds",
    { description: "x" },
    { headers: { "if-match": `"${revision}"` } },
  )
  expect([stale.status, stale.body.error.code]).toEqual([412, "precondition_failed"])
})

test("labels point at versions that exist, latest cannot be moved, and a removed label is gone", async () => {
  await send("POST", "", refunds)
  expect((await send("PUT", "/refunds/labels/stable", { version: 2 })).status).toBe(404)
  expect((await send("PUT", "/refunds/labels/latest", { version: 1 })).status).toBe(409)
  await send("PUT", "/refunds/labels/stable", { version: 1 })
  expect((await send("DELETE", "/refunds/labels/stable")).status).toBe(204)
  const gone = await send("GET", "/refunds/versions/stable")
  expect([gone.status, gone.body.error.message]).toEqual([
    404,
    "Cannot find the version: refunds has no version or label stable",
  ])
  expect((await send("DELETE", "/refunds/labels/stable")).status).toBe(404)
  const unknown = await send("GET", "/returns")
  expect([unknown.status, unknown.body.error.message]).toEqual([
    404,
    "Cannot find the question set: the organization has none of this name or id",
  ])
})

test("publishing again and again opens at most ten checks", async () => {
  await send("POST", "", refunds)
  await send("POST", "/refunds/cases", { cases: [{ input: "Money!", expected: { refund: true } }] })
  for (let n = 0; n < 11; n++)
    expect((await send("PUT", "/refunds/labels/production", { version: 1 })).status).toBe(200)
  expect((await send("GET", "/refunds/jobs?limit=100")).body.data).toHaveLength(10)
})

test("a file that is exported and imported again changes nothing", async () => {
  await send("POST", "", { ...refunds, questions: [{ ...refund, threshold: 0.8, below: "answer" }, team] })
  const file = await send("GET", "/refunds/file")
  expect(file.headers.get("content-type")).toMatch(/^application\/yaml/)
  expect(file.body).toContain(`$schema=${platform.url}/schemas/question-set.json`)
  const again = await send("POST", "/import", { yaml: file.body })
  expect([again.body.data.result, again.body.data.set.latest_version]).toEqual(["unchanged", 1])
  const changed = await send("POST", "/import", { yaml: file.body.replace("0.8", "0.9"), note: "from git" })
  expect([changed.body.data.result, changed.body.data.set.latest_version]).toEqual(["changed", 2])
  const created = await send("POST", "/import", { yaml: file.body.replace("name: refunds", "name: other") })
  expect([created.body.data.result, created.body.data.set.name]).toEqual(["created", "other"])
})

test.each([
  ["no YAML", "a: [", /not YAML/],
  ["aliases", "name: &a x\nmodel: *a\nquestions: []", /not YAML/],
  ["a key twice", "name: a\nname: b\nmodel: open\nquestions: []", /not YAML/],
  ["an unknown field", "name: a\nmodel: open\nquestions: []\nextra: 1", /extra/],
  ["no questions", "name: a\nmodel: open", /questions/],
])("a file with %s is refused with a reason", async (_, yaml, reason) => {
  const { status, body } = await send("POST", "/import", { yaml })
  expect([status, body.error.code]).toEqual([422, "invalid_body"])
  expect(body.error.message).toMatch(reason)
})

const smallKeys = (): string => {
  let yaml = ""
  for (let n = 0; yaml.length < questionSetLimits.fileCharactersMax - 8; n++) yaml += `a${n.toString(36)}:\n`
  return yaml
}

test("a file of as many keys as fit is read in seconds, in a thread: others are answered meanwhile", async () => {
  const [refusal, list] = await Promise.all([send("POST", "/import", { yaml: smallKeys() }), send("GET", "")])
  expect([refusal.status, refusal.body.error.message, list.status]).toEqual([
    422,
    expect.stringMatching(/^Cannot use the file: /),
    200,
  ])
})

const predicates = (count: number): unknown[] =>
  Array.from({ length: count }, (_, at) => ({ ...refund, name: `q${at}` }))
const longest = "x".repeat(16 * 1024 - 128 - " - ".length)

describe("limits", () => {
  test.each<[string, unknown, number]>([
    ["256 questions", { questions: predicates(questionSetLimits.questionsMax) }, 200],
    ["257 questions", { questions: predicates(questionSetLimits.questionsMax + 1) }, 422],
    ["two questions of one name", { questions: [refund, refund] }, 422],
    ["a name of 64", { name: "a".repeat(64) }, 200],
    ["a name of 65", { name: "a".repeat(65) }, 422],
    ["a name with a space", { name: "a b" }, 422],
    ["a branch of 16 KiB", { questions: [{ ...refund, instructions: longest }] }, 200],
    ["a branch over 16 KiB", { questions: [{ ...refund, instructions: `${longest}xxxx` }] }, 422],
    ["a threshold of 1", { questions: [{ ...refund, threshold: 1 }] }, 200],
    ["a threshold over 1", { questions: [{ ...refund, threshold: 1.01 }] }, 422],
    ["a model that is not there", { model: "none" }, 422],
    ["an artefact of nowhere", { questions: [{ ...refund, artefact: "0".repeat(64) }] }, 422],
    ["U+0000 in a question", { questions: [{ ...refund, instructions: "a\u0000b" }] }, 200],
    ["U+0000 in the description", { description: "a\u0000b" }, 422],
  ])("%s", async (_, changes, status) => {
    const { name = "limits", ...rest } = changes as { name?: string }
    const answer = await send("POST", "", { name, model: "open", questions: [], ...rest })
    expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  })

  test("a name is free once per organization", async () => {
    await send("POST", "", refunds)
    expect((await send("POST", "", refunds)).status).toBe(409)
    await send("POST", "", { ...refunds, name: "other" })
    expect((await send("PATCH", "/other", { name: "refunds" })).status).toBe(409)
  })
})

test("a deleted set is gone with everything that belongs to it, and its name is free", async () => {
  await send("POST", "", refunds)
  await send("PUT", "/refunds/labels/production", { version: 1 })
  expect((await send("DELETE", "/refunds")).status).toBe(204)
  expect((await send("GET", "/refunds")).status).toBe(404)
  expect((await send("POST", "", refunds)).body.data.latest_version).toBe(1)
})
