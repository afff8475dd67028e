/** Question sets are asked where models are: by the contract's endpoints, by the openai client, and at their own address. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { prepareDirectory } from "./database.ts"
import { makeOrganization } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
let dataDirectory: string
let org: string
let client: ReturnType<typeof createClient>

const letter = "My parcel is a week late and I want my money back."
const refund = {
  type: "predicate" as const,
  name: "refund",
  instructions: "Does the customer want money back?",
}
const team = {
  type: "choice" as const,
  name: "team",
  instructions: "Which team should answer?",
  choices: [{ value: "billing" }, { value: true, description: "legal" }, { value: "shipping" }],
}
const mood = {
  type: "score" as const,
  name: "mood",
  instructions: "How annoyed is the customer?",
  levels: [{ label: "calm" }, { label: "annoyed" }, { label: "furious" }],
}

beforeAll(async () => {
  dataDirectory = mkdtempSync(join(tmpdir(), "umpire-sets-"))
  await prepareDirectory(join(dataDirectory, "database"))
  server = await startServer({ dataDirectory })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  org = (await client.listOrganizations())[0]?.id ?? ""
  const content = { model: "umpire-decide", questions: [refund, team, mood] }
  await client.createQuestionSet({ params: { org_id: org }, body: { name: "letters", ...content } })
  const at = { org_id: org, set_id: "letters" }
  const strict = [{ ...refund, threshold: 1 }, { ...team, threshold: 0 }, mood]
  await client.updateQuestionSet({ params: at, body: { questions: strict } })
  await client.createQuestionSet({
    params: { org_id: org },
    body: {
      name: "warm",
      model: "umpire-decide",
      questions: [],
      calibration: { temperature: 2, bias: 1 },
    },
  })
})
afterAll(async () => {
  await server.stop()
  rmSync(dataDirectory, { recursive: true, force: true })
})

interface Answered {
  readonly status: number
  readonly headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of every shape
  readonly body: any
}

async function ask(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answered> {
  const response = await server.post(path, body, headers)
  return { status: response.status, headers: response.headers, body: await response.json() }
}
const decide = async (model: string, questions: unknown, headers = {}): Promise<Answered> =>
  await ask("/v1/decisions", { model, input: letter, questions }, headers)

/** As the contract has them. */
const withoutVerdicts = (answers: readonly Record<string, unknown>[]): unknown[] =>
  answers.map((answer) => Object.fromEntries(Object.entries(answer).filter(([field]) => field !== "verdict")))

test("a set without what was taught answers as its model does, in its own order, under the name it was asked by", async () => {
  const plain = await decide("umpire-decide", [refund, team, mood])
  const set = await decide("set:letters@latest", [])
  expect(set.status).toBe(200)
  const answers = withoutVerdicts(set.body.answers)
  expect({ ...set.body, answers }).toEqual({ ...plain.body, model: "set:letters@latest" })
  expect(set.headers.get("x-umpire-question-set")).toBe("letters@2")
})

test("some questions are asked by name, in the order of the request", async () => {
  const some = await decide("set:letters@1", [{ name: "mood" }, { type: "predicate", name: "refund" }])
  const plain = await decide("umpire-decide", [mood, refund])
  expect(withoutVerdicts(some.body.answers)).toEqual(plain.body.answers)
})

test("System One asks with an empty map, or with names", async () => {
  const all = await ask("/v1/systemone", { model: "set:letters@1", state: letter, questions: {} })
  expect(Object.keys(all.body.answers)).toEqual(["refund", "team", "mood"])
  const some = await ask("/v1/systemone", { model: "set:letters@1", state: letter, questions: { team: {} } })
  const { choice, probabilities } = (await decide("umpire-decide", [team])).body.answers[0]
  const byName = probabilities.map((one: { value: unknown; probability: number }) => [
    String(one.value),
    one.probability,
  ])
  expect(some.body.answers).toEqual({
    team: expect.objectContaining({ choice, probabilities: Object.fromEntries(byName) }),
  })
})

test("an answer below its threshold is given as ever; a header and a field of the answer say that the set abstains", async () => {
  const set = await decide("set:letters@2", [])
  expect(set.headers.get("x-umpire-abstained")).toBe("refund")
  const [first, second] = set.body.answers
  expect(first.verdict).toEqual({
    value: "abstain",
    abstained: true,
    confidence: Math.max(first.probability, 1 - first.probability),
    threshold: 1,
    taught: false,
  })
  expect(second.verdict).toMatchObject({ value: second.choice, abstained: false, threshold: 0 })
  const system = await ask("/v1/systemone", { model: "set:letters@2", state: letter, questions: {} })
  expect(system.body.answers.refund.verdict).toEqual(first.verdict)
  const plain = await ask("/v1/systemone", {
    model: "umpire-decide",
    state: letter,
    questions: { refund: { type: "noul", instructions: refund.instructions } },
  })
  expect([
    plain.body.answers.refund.verdict,
    (await decide("umpire-decide", [refund])).body.answers[0].verdict,
  ]).toEqual([undefined, undefined])
  expect(withoutVerdicts(set.body.answers)).toEqual(
    withoutVerdicts((await decide("set:letters@1", [])).body.answers),
  )
  const calm = await decide("set:letters@1", [])
  expect(calm.headers.get("x-umpire-abstained")).toBeNull()
})

test("the set's own address answers verdicts beside the contract's answers", async () => {
  const at = { org_id: org, set_id: "letters" }
  const { answers, version, usage } = await client.decideQuestionSet({
    params: at,
    body: { input: letter, version: "latest" },
  })
  const contract = (await decide("set:letters@2", [])).body
  expect([version, usage]).toEqual([2, contract.usage])
  expect(answers.map(({ answer }) => answer)).toEqual(withoutVerdicts(contract.answers))
  expect(answers[0]).toMatchObject({
    name: "refund",
    verdict: "abstain",
    abstained: true,
    threshold: 1,
    taught: false,
  })
  expect(answers[1]).toMatchObject({ verdict: contract.answers[1].choice, abstained: false, threshold: 0 })
  const levels = contract.answers[2].probabilities.map(
    ({ probability }: { probability: number }) => probability,
  )
  expect(answers[2]).toMatchObject({
    verdict: levels.indexOf(Math.max(...levels)),
    confidence: Math.max(...levels),
  })
  const one = await client.decideQuestionSet({
    params: at,
    body: { input: letter, questions: ["refund"], version: "1" },
  })
  expect(one.answers.map(({ verdict }) => verdict)).toEqual([
    contract.answers[0].probability >= 0.5 ? "yes" : "no",
  ])
})

test("the first version is published when it is created; a later one once it is; without any the latest answers", async () => {
  const asked = async (): Promise<string | null> =>
    (await decide("set:letters", [{ name: "refund" }])).headers.get("x-umpire-question-set")
  const label = { org_id: org, set_id: "letters", label: "production" }
  expect(await asked()).toBe("letters@1")
  await client.putQuestionSetLabel({ params: label, body: { version: 2 } })
  expect(await asked()).toBe("letters@2")
  await client.putQuestionSetLabel({ params: label, body: { version: 1 } })
  expect((await decide("set:letters@production", [])).headers.get("x-umpire-question-set")).toBe("letters@1")
  expect((await decide("set:letters@latest", [])).headers.get("x-umpire-question-set")).toBe("letters@2")
  await client.deleteQuestionSetLabel({ params: label })
  expect(await asked()).toBe("letters@2")
})

test("a request that tries a set does not count in its monitoring; another does", async () => {
  const own = { name: "counted", model: "umpire-decide", questions: [refund] }
  await client.createQuestionSet({ params: { org_id: org }, body: own })
  await decide("set:counted", [], { "x-umpire-trial": "true" })
  await decide("set:counted", [])
  const rows = async (): Promise<number | undefined> => {
    const params = { org_id: org, set_id: "counted" }
    return (await client.getQuestionSetMonitoring({ params })).questions[0]?.rows
  }
  await expect.poll(rows, { timeout: 60_000, interval: 500 }).toBe(1)
})

test("the openai client asks a set", async () => {
  const openai = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1` })
  const { data, response } = await openai.decisions
    .create({ model: "set:letters@2", input: letter, questions: [] })
    .withResponse()
  expect(data.answers.map(({ type }) => type)).toEqual(["predicate", "choice", "score"])
  expect(response.headers.get("x-umpire-abstained")).toBe("refund")
})

test("a set without questions calibrates those of the request", async () => {
  const plain = (await decide("umpire-decide", [refund])).body.answers[0].probability
  const warm = (await decide("set:warm", [refund])).body.answers[0].probability
  const margin = Math.log(plain / (1 - plain)) / 2 + 1
  expect(warm).toBeCloseTo(1 / (1 + Math.exp(-margin)), 6)
})

describe("refusals", () => {
  test.each<[string, string, unknown, string, RegExp]>([
    ["a set that is not there", "set:nothing", [], "unknown_model", /no question set/],
    ["a version that is not there", "set:letters@9", [], "unknown_model", /letters@9/],
    ["a label that is not there", "set:letters@gone", [], "unknown_model", /letters@gone/],
    ["no name", "set:", [], "unknown_model", /set:/],
    [
      "a question that is not there",
      "set:letters",
      [{ name: "other" }],
      "invalid_request",
      /no question "other"/,
    ],
    ["a question of one's own", "set:letters", [refund], "invalid_request", /questions of its own/],
    [
      "a name for a set without questions",
      "set:warm",
      [{ name: "refund" }],
      "invalid_request",
      /no question/,
    ],
    ["an unknown field", "set:letters", [{ name: "refund", threshold: 1 }], "unknown_field", /threshold/],
    ["a name for a model", "umpire-decide", [{ name: "refund" }], "invalid_request", /type is missing/],
  ])("%s", async (_, model, questions, code, sentence) => {
    const { status, body } = await decide(model, questions)
    expect([status, body.error.code]).toEqual([422, code])
    expect(body.error.message).toMatch(sentence)
  })

  test("System One still needs a question for a model", async () => {
    const { body } = await ask("/v1/systemone", { model: "umpire-decide", state: letter, questions: {} })
    expect(body.error.code).toBe("invalid_request")
  })

  test("a set that is not there is 404 at its own address", async () => {
    const path = `/v1/organizations/${org}/question_sets`
    for (const rest of ["/nothing/decide", "/letters@9/decide"])
      expect((await ask(path + rest, { input: letter })).status).toBe(404)
    expect((await ask(`${path}/letters/decide`, { input: letter, version: "9" })).status).toBe(404)
  })
})

const address = (set: string): string => `/v1/organizations/${org}/question_sets/${set}/decide`
const recordOf = async ({ headers }: Answered): Promise<Record<string, unknown>> => {
  const seqId = headers.get("x-umpire-sequence") ?? ""
  const found = await fetch(`${server.url}/v1/organizations/${org}/sequences/${seqId}`, {
    headers: { authorization: `Bearer ${server.key}` },
  })
  return ((await found.json()) as { data: Record<string, unknown> }).data
}

describe("a request at a set's own address", () => {
  test("costs what the same decision does, and the answer says so", async () => {
    const answered = await ask(address("letters"), { input: letter })
    const asModel = await decide("set:letters", [])
    const cost = answered.headers.get("x-umpire-cost")
    expect(cost).toMatch(/^0\.\d*[1-9]$/)
    expect(cost).toBe(asModel.headers.get("x-umpire-cost"))
    await expect.poll(async () => await recordOf(answered)).toMatchObject({ result: "success", cost })
  })

  test.each([
    ["whose body does not match the schema", { input: 5 }, {}, "invalid_body"],
    ["whose tags are malformed", { input: letter }, { "x-umpire-tags": "team" }, "invalid_header"],
    ["whose set is not there", { input: letter, version: "9" }, {}, "not_found"],
  ])("%s is refused, and the refusal is recorded", async (_, body, headers, code) => {
    const refused = await ask(address("letters"), body, headers)
    expect(refused.body.error.code).toBe(code)
    const recorded = { call_source: "decisions", result: "error", error_code: code, cost: "0" }
    await expect.poll(async () => await recordOf(refused)).toMatchObject(recorded)
  })
})

test("another organization's set is unknown, and a set of the same name is its own", async () => {
  const given = { name: "Other", owner: "other@example.com" }
  const { id: org_id, secret } = await makeOrganization(server, given, ["inference", "api-read", "api-write"])
  const other = createClient(server.url, { authorization: `Bearer ${secret}` })
  const asked = other.createDecision({ body: { model: "set:letters", input: letter, questions: [] } })
  await expect(asked).rejects.toMatchObject({ status: 422, code: "unknown_model" })
  const own = { name: "letters", model: "umpire-decide", questions: [refund] }
  await other.createQuestionSet({ params: { org_id }, body: own })
  const { answers } = await other.createDecision({
    body: { model: "set:letters", input: letter, questions: [] },
  })
  expect(answers).toHaveLength(1)
  expect((await decide("set:letters", [])).body.answers).toHaveLength(3)
})

test("sets survive a restart", async () => {
  const before = (await decide("set:letters@1", [])).body.answers
  await server.stop()
  server = await startServer({ dataDirectory })
  expect((await decide("set:letters@1", [])).body.answers).toEqual(before)
})
