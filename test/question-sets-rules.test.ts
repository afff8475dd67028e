/** Rules over the fields of evidence: refused when they cannot be read, a prior before any label, weighed anew by labels. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { Document } from "../src/contract/endpoint.ts"
import type { TeachResult } from "../src/contract/question-sets/jobs.ts"
import { type TestServer, startServer } from "./server.ts"

const levels = ["Low", "Medium", "High"].map((label) => ({ label }))
const priority = { type: "score" as const, name: "priority", instructions: "Which priority has it?", levels }
const gold = {
  when: 'input.tier in ["gold", "enterprise"]',
  answer: "High",
  compare: "at_least" as const,
  weight: 6,
}
const ticket = (tier: string, n: number): string =>
  JSON.stringify({ tier, subject: `Question ${n} about a bill` })

let server: TestServer
let client: ReturnType<typeof createClient>
let at: { org_id: string; set_id: string }

beforeAll(async () => {
  server = await startServer()
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  at = { org_id: (await client.listOrganizations())[0]?.id ?? "", set_id: "tickets" }
})
afterAll(async () => await server.stop())

const create = async (name: string, question: object): Promise<unknown> =>
  await client.createQuestionSet({
    params: { org_id: at.org_id },
    body: { name, model: "umpire-decide", questions: [{ ...priority, ...question }] },
  })

const decide = async (input: string, version: string): Promise<{ verdict: unknown; confidence: number }> => {
  const { answers } = await client.decideQuestionSet({ params: at, body: { input, version } })
  const { verdict = null, confidence = 0 } = answers[0] ?? {}
  return { verdict, confidence }
}

test.each([
  [{ rules: [{ ...gold, when: 'input.tier = "gold"' }] }, /a rule cannot be used/],
  [{ rules: [{ ...gold, when: 'input.tags.exists(t, t == "x")' }] }, /loops cannot be used/],
  [{ rules: [{ ...gold, answer: "Highest" }] }, /an answer that its question does not have/],
  [{ rules: Array.from({ length: 11 }, () => gold) }, /rules/],
  [{ rules: [{ ...gold, weight: 0 }] }, /weight/],
])("rules that cannot be used are refused: %j", async (question, why) => {
  const failure: unknown = await create("refused", question).catch((error: unknown) => error)
  expect(failure).toMatchObject({ status: 422 })
  expect(JSON.stringify(failure) + String(failure)).toMatch(why)
})

test("a rule moves the answer of a text that meets it, and of no other", async () => {
  await create("tickets", { rules: [] })
  await client.updateQuestionSet({ params: at, body: { questions: [{ ...priority, rules: [gold] }] } })
  expect((await decide(ticket("gold", 1), "2")).verdict).toBeGreaterThanOrEqual(1)
  expect((await decide(ticket("gold", 1), "2")).confidence).not.toBe(
    (await decide(ticket("gold", 1), "1")).confidence,
  )
  expect(await decide(ticket("free", 1), "2")).toEqual(await decide(ticket("free", 1), "1"))
  expect(await decide("Tier: gold. No field of that name.", "2")).toEqual(
    await decide("Tier: gold. No field of that name.", "1"),
  )
})

test("labels that contradict a rule take it back, and the report says so", async () => {
  const rows = Array.from({ length: 40 }, (_, n) => {
    const tier = n % 2 === 0 ? "gold" : "free"
    return { input: ticket(tier, n), labels: { priority: tier === "gold" ? "Low" : "High" } }
  })
  await client.addQuestionSetExamples({ params: at, body: { rows } })
  const { id } = await client.teachQuestionSet({ params: at, body: {} })
  const read = async () => await client.getQuestionSetJob({ params: { ...at, job_id: id } })
  await expect.poll(async () => (await read()).state).toBe("succeeded")
  const [taught] = ((await read()).result as TeachResult).questions
  expect(taught?.rules).toMatchObject([{ when: gold.when, met: 20, right: 0 }])
  expect(taught?.rules?.[0]?.weight).toBeLessThan(3)
  expect((await decide(ticket("gold", 100), "3")).verdict).toBe(0)
  expect((await decide(ticket("free", 100), "3")).verdict).toBe(2)
  const hash = taught?.artefact ?? ""
  const artefact = await client.getQuestionSetArtefact({ params: { ...at, hash } })
  expect(artefact.rules).toMatchObject([{ met: 20, right: 0 }])
})

test("rules travel in the file, and a question whose rules change is not taught any more", async () => {
  const kept = await client.updateQuestionSet({
    params: at,
    body: { questions: [{ ...priority, threshold: 0.1, rules: [gold] }] },
  })
  expect(kept.questions[0]?.artefact).not.toBeNull()
  const { questions } = await client.updateQuestionSet({
    params: at,
    body: { questions: [{ ...priority, rules: [{ ...gold, answer: 1 }] }] },
  })
  expect(questions[0]?.artefact).toBeNull()
  const file = await client.exportQuestionSet({ params: at })
  if (!(file instanceof Document)) throw new Error("not a file")
  expect(Buffer.from(file.bytes).toString()).toContain(gold.when)
})
