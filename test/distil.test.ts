/** A set learns from a larger model: `umpire distil` asks it within a budget, goes on where it stopped, and teaches. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import type { DistilResult } from "../src/contract/question-sets/distil.ts"
import type { TeachResult } from "../src/contract/question-sets/jobs.ts"
import { type ChatServer, startChatServer } from "./chat-servers.ts"
import { type TestServer, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const folder = mkdtempSync(join(tmpdir(), "umpire-distil-"))
/** What a text costs: 100 tokens at $10,000 a million. */
const costUsd = 1

const isRefund = (text: string): boolean => text.includes("refund")
const asked: string[] = []
/** What a server is asked before the first decision, to see that it answers. */
const probed = "The sky is blue today."
const refused = new Set<string>()
const teacher = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    response.setHeader("content-type", "application/json")
    if (request.method === "GET") return response.end("{}")
    const { state = "", questions = {} } = JSON.parse(Buffer.concat(chunks).toString()) as {
      state?: string
      questions?: object
    }
    if (state !== probed) asked.push(state)
    if (refused.has(state)) return response.writeHead(400).end('{"error":{"message":"blocked"}}')
    const noul = isRefund(state) ? 0.95 : 0.05
    const usage = { input_tokens: 100, output_tokens: 0 }
    const answers = Object.fromEntries(Object.keys(questions).map((name) => [name, { type: "noul", noul }]))
    return response.end(JSON.stringify({ answers, usage }))
  })
})

let talker: ChatServer
let server: TestServer
let client: ReturnType<typeof createClient>
let at: { org_id: string; set_id: string }

beforeAll(async () => {
  await new Promise<void>((resolve) => teacher.listen(0, "127.0.0.1", resolve))
  // True for a TCP server that listens.
  const url = `http://127.0.0.1:${(teacher.address() as AddressInfo).port}`
  const config = join(folder, "umpire.yaml")
  const large = {
    sku: "large",
    context_tokens_max: 4096,
    price_m_input_tokens_usd: "10000",
    workers: [{ url, dialect: "systemone" }],
  }
  talker = await startChatServer("plain")
  const plain = {
    sku: "talker",
    context_tokens_max: 4096,
    price_m_input_tokens_usd: "1000",
    price_m_output_tokens_usd: "1000",
    workers: [{ url: talker.url, dialect: "openai", key: { env: "TALKER_KEY" } }],
  }
  const cascade = { sku: "both", cascade: { models: ["umpire-decide", "large"] } }
  writeFileSync(config, JSON.stringify({ models: [large, plain, cascade] }))
  server = await startServer({ env: { UMPIRE_CONFIG: config, TALKER_KEY: talker.key } })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  at = { org_id: (await client.listOrganizations())[0]?.id ?? "", set_id: "mail" }
  const question = { type: "predicate" as const, name: "refund", instructions: "Which is it?" }
  await client.createQuestionSet({
    params: at,
    body: { name: "mail", model: "umpire-decide", questions: [question] },
  })
})
afterAll(async () => {
  await server.stop()
  await talker.close()
  teacher.closeAllConnections()
  teacher.close()
  rmSync(folder, { recursive: true })
})

interface Run {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

async function distil(...args: string[]): Promise<Run> {
  const env = { PATH: process.env["PATH"] ?? "", UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const run = promisify(execFile)(process.execPath, [umpire, "distil", "mail", ...args], { env, cwd: folder })
  return await run.then(
    (out) => ({ status: 0, ...out }),
    (error: { code: number; stdout: string; stderr: string }) => ({ ...error, status: error.code }),
  )
}
const from = (file: string, budget: string, ...more: string[]): Promise<Run> =>
  distil("--from", "large", "--rows", file, "--budget", budget, "--no-teach", "--json", ...more)

type Shown = DistilResult & { readonly taught: TeachResult | null }
const shown = ({ stdout, stderr }: Run): Shown => {
  if (stdout === "") throw new Error(stderr)
  return JSON.parse(stdout) as Shown
}
const examples = async () =>
  (await client.listQuestionSetExamples({ params: at, query: { limit: 200 } })).data

const texts = Array.from({ length: 12 }, (_, n) =>
  n % 2 === 0 ? `Please refund order ${n}.` : `The weather on day ${n} is sunny.`,
)

test("a file is answered as far as the budget goes, which is never exceeded, and the same command goes on", async () => {
  writeFileSync(join(folder, "rows.txt"), texts.join("\n"))
  // 100 tokens are known only afterwards: what a text may cost at most is more.
  const first = shown(await from("rows.txt", "30"))
  expect(Number(first.spent_usd)).toBe(first.labelled * costUsd)
  expect(Number(first.spent_usd)).toBeLessThanOrEqual(30)
  expect([first.labelled + first.left, first.known]).toEqual([12, 0])
  expect(asked).toHaveLength(first.labelled)
  const again = shown(await from("rows.txt", "1000"))
  expect(again).toMatchObject({
    known: first.labelled,
    labelled: 12 - first.labelled,
    left: 0,
    spent_usd: "12",
  })
  // Each text once.
  expect(asked.toSorted()).toEqual(texts.toSorted())
  const kept = await examples()
  expect(kept).toHaveLength(12)
  for (const { input, labels, teacher_labels, source } of kept)
    expect([labels, teacher_labels["refund"], source]).toEqual([
      {},
      {
        label: isRefund(input),
        model: "large",
        confidence: expect.closeTo(0.95, 3),
        cost_usd: "1",
        asked: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
      "teacher",
    ])
})

test("with what was spent before nothing more is asked within the same budget", async () => {
  const before = asked.length
  writeFileSync(join(folder, "more.txt"), [...texts, "One text more, no refund."].join("\n"))
  const run = shown(await from("more.txt", "12.5"))
  expect(run).toMatchObject({ known: 12, labelled: 0, left: 1, spent_usd: "12" })
  expect(asked).toHaveLength(before)
})

test("rows that cannot be used are named, and the others are answered", async () => {
  const long = "x".repeat(64 * 1024 + 1)
  refused.add("Which the model cannot answer.")
  const rows = [
    { input: "A refund, please." },
    { other: 1 },
    { input: " " },
    { text: long },
    { text: [...refused][0] },
  ]
  writeFileSync(join(folder, "bad.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"))
  const run = await from("bad.jsonl", "1000")
  expect(run.status).toBe(1)
  const { failed, labelled } = shown(run)
  expect(labelled).toBe(1)
  expect(failed.map(({ row, reason }) => [row, reason])).toEqual([
    [2, "it has no field input or text"],
    [3, "its text is blank"],
    [4, "its text is over 64 KiB"],
    [5, expect.stringMatching(/refuses it: blocked/)],
  ])
})

test.each([
  [["--from", "large", "--rows", "rows.txt", "--budget", "0"], /--budget takes USD above 0/],
  [["--from", "large", "--rows", "rows.txt"], /how much may it cost/],
  [["--from", "nobody", "--rows", "rows.txt", "--budget", "1"], /no model "nobody" can classify/],
  [["--from", "both", "--rows", "rows.txt", "--budget", "1"], /it is a cascade/],
  [["--from", "large", "--rows", "none.txt", "--budget", "1"], /none\.txt/],
])("%j is refused", async (args, reason) => {
  const { status, stderr } = await distil(...args)
  expect([status > 0, stderr]).toEqual([true, expect.stringMatching(reason)])
})

test("without labels of people nothing is taught; with them the set learns, and the report says what it saves", async () => {
  const args = ["--from", "large", "--rows", "rows.txt", "--budget", "1000", "--target", "0.8", "--json"]
  const [alone] = shown(await distil(...args)).taught?.questions ?? []
  expect(alone?.reason).toMatch(/0 examples that people labelled/)
  const rows = Array.from({ length: 30 }, (_, n) => {
    const input = n % 2 === 0 ? `I want a refund for invoice ${n}.` : `Rain and wind over Porto at ${n}.`
    return { input, labels: { refund: isRefund(input) } }
  })
  await client.addQuestionSetExamples({ params: at, body: { rows } })
  writeFileSync(
    join(folder, "people.txt"),
    rows
      .slice(0, 4)
      .map(({ input }) => input)
      .join("\n"),
  )
  expect(shown(await from("people.txt", "100")).labelled).toBe(4)
  const [taught] = shown(await distil(...args)).taught?.questions ?? []
  expect(taught?.promise).toMatchObject({ promised: true, rows: 30 })
  expect(taught?.teacher).toMatchObject({
    models: ["large"],
    labels: 13,
    judged: 4,
    right: 4,
    share: taught?.promise?.coverage,
  })
  expect(taught?.teacher?.cost_before_usd).toBe("1000")
  expect(Number(taught?.teacher?.cost_after_usd)).toBeLessThan(
    1000 * (1 - (taught?.promise?.coverage ?? 0)) + 1,
  )
  expect(taught?.teacher?.sentence).toMatch(
    /of decisions need no large; 1,000 cost \$.* instead of \$1000; it agrees with people on 4 of 4 texts/,
  )
})

/** How often it answered beside the set, and what the days say once they are written down. */
const reportOf = async (set_id: string) =>
  await client.getQuestionSetShadowReport({ params: { ...at, set_id } })
const decide = async (set_id: string, input: string): Promise<string> => {
  const response = await server.post(`/v1/organizations/${at.org_id}/question_sets/${set_id}/decide`, {
    input,
  })
  expect(response.status).toBe(200)
  const seq_id = response.headers.get("x-umpire-sequence") ?? ""
  // Reading the content waits until it is stored.
  await client.getContent({ params: { org_id: at.org_id, seq_id } })
  return seq_id
}
const shadowsOnRecord = async () =>
  (await client.listSequences({ params: { org_id: at.org_id }, query: { endpoint: "shadow" } })).data
async function learnKept(set_id: string, budget_usd: string): Promise<DistilResult> {
  const params = { ...at, set_id }
  let job = await client.distilQuestionSet({ params, body: { model: "large", budget_usd } })
  await expect
    .poll(
      async () => (job = await client.getQuestionSetJob({ params: { ...params, job_id: job.id } })).state,
      {
        timeout: 60_000,
      },
    )
    .toBe("succeeded")
  return job.result as DistilResult
}
const question = { type: "predicate" as const, name: "refund", instructions: "Which is it?" }

test("a shadow asks the large model beside, up to its budget of the day, and what it answered is learnt from", async () => {
  const keep = { keep: "evidence_and_answers" as const }
  await client.putContentSettings({ params: { org_id: at.org_id }, body: keep })
  const params = { ...at, set_id: "beside" }
  await client.createQuestionSet({
    params: at,
    body: { name: "beside", model: "umpire-decide", questions: [question] },
  })
  await client.putQuestionSetLabel({ params: { ...params, label: "production" }, body: { version: 1 } })
  // The most that a text can cost is above 10 USD, for its tokens are not known before; two that cost one each leave no room for a third.
  const shadow = { model: "large", share: 1, cost_max_day_usd: "12.4" }
  await client.updateQuestionSet({ params, body: { shadow } })
  const before = asked.length
  const sequences = [await decide("beside", "Please refund 1.")]
  const compared = async () => (await reportOf("beside")).questions[0]?.answers
  await expect.poll(compared, { timeout: 60_000 }).toBe(1)
  sequences.push(await decide("beside", "It is raining 2."))
  await expect.poll(compared, { timeout: 60_000 }).toBe(2)
  sequences.push(await decide("beside", "Please refund 3."), await decide("beside", "It is raining 4."))
  // Counts are written down every few seconds.
  await expect
    .poll(async () => (await reportOf("beside")).days[0], { timeout: 60_000 })
    .toMatchObject({ requests: 4, questions: 2, unanswered: 2, cost_usd: "2" })
  expect(asked.slice(before)).toEqual(["Please refund 1.", "It is raining 2."])
  const [report] = (await reportOf("beside")).questions
  expect(report).toMatchObject({ shadow_model: "large", agreement: 1 - (report?.flips ?? 0) / 2 })
  expect(report?.confusion.reduce((sum, one) => sum + one.answers, 0)).toBe(2)
  // Each is on record as a request of its own, with what the worker counted.
  await expect
    .poll(async () => (await shadowsOnRecord()).map(({ model, cost }) => [model, cost]), { timeout: 60_000 })
    .toEqual([
      ["large", "1"],
      ["large", "1"],
    ])

  const learnt = await learnKept("beside", "0")
  expect(learnt).toMatchObject({ texts: 4, known: 2, labelled: 0, left: 2, spent_usd: "2" })
  expect(asked).toHaveLength(before + 2)
  const made = async () => {
    const { data } = await client.listQuestionSetExamples({ params, query: { limit: 200 } })
    return Object.fromEntries(
      data.map(({ input, labels, teacher_labels, source }) => [
        input,
        [labels, teacher_labels["refund"]?.label, teacher_labels["refund"]?.cost_usd, source],
      ]),
    )
  }
  expect(await made()).toEqual({
    "It is raining 2.": [{}, false, "1", "teacher"],
    "Please refund 1.": [{}, true, "1", "teacher"],
  })
  // Those that it was not asked about are asked now; an example goes with the content that it was made of.
  expect(await learnKept("beside", "100")).toMatchObject({ texts: 4, known: 2, labelled: 2, spent_usd: "4" })
  const [first = ""] = sequences
  await client.deleteContent({ params: { org_id: at.org_id, seq_id: first } })
  expect(Object.keys(await made()).toSorted()).toEqual([
    "It is raining 2.",
    "It is raining 4.",
    "Please refund 3.",
  ])
})

test("what a cascade escalated is learnt from too, and not after the question has changed", async () => {
  const params = { ...at, set_id: "staged" }
  // Nothing is so sure: every answer is sent on.
  const doubtful = { ...question, threshold: 1 }
  await client.createQuestionSet({
    params: at,
    body: { name: "staged", model: "both", questions: [doubtful] },
  })
  const before = asked.length
  await decide("staged", "I want this refund at once.")
  await decide("staged", "It snows.")
  expect(asked).toHaveLength(before + 2)
  await expect
    .poll(async () => (await learnKept("staged", "0")).known, { timeout: 60_000, interval: 500 })
    .toBe(2)
  expect(asked).toHaveLength(before + 2)
  const { data } = await client.listQuestionSetExamples({ params, query: { limit: 10 } })
  const told = {
    model: "large",
    confidence: expect.closeTo(0.95, 3) as number,
    cost_usd: "1",
    asked: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
  }
  expect(Object.fromEntries(data.map((one) => [one.input, one.teacher_labels["refund"]]))).toEqual({
    "I want this refund at once.": { label: true, ...told },
    "It snows.": { label: false, ...told },
  })
  await decide("staged", "A third one, no refund.")
  const changed = [{ ...doubtful, instructions: "Is it about money?" }]
  await client.updateQuestionSet({ params, body: { questions: changed } })
  const after = await learnKept("staged", "0")
  expect(after).toMatchObject({ texts: 3, known: 0, left: 3, spent_usd: "0" })
})

test("a text that must wait for what others give back is asked all the same", async () => {
  const few = ["A refund for one.", "A refund for two.", "A refund for three.", "No refund for four."]
  writeFileSync(join(folder, "few.txt"), few.join("\n"))
  // Two may cost 3.84 at most, so that a third waits; all four cost 4.
  const run = shown(await from("few.txt", "5"))
  expect(run).toMatchObject({ labelled: few.length, left: 0 })
})

test("an answer that cannot be used counts in the budget: it was paid", async () => {
  // How it is asked is found out with an answer that can be used.
  const questions = [{ type: "predicate", instructions: "Is the word order there?" }]
  const probed = await server.post("/v1/decisions", { model: "talker", input: "An order.", questions })
  expect(probed.status).toBe(200)
  writeFileSync(join(folder, "talk.txt"), "A text about an order.")
  talker.malformed = 2
  const before = talker.chats.length
  const run = shown(
    await distil("--from", "talker", "--rows", "talk.txt", "--budget", "12", "--no-teach", "--json"),
  )
  expect(run).toMatchObject({ labelled: 0, left: 0, failed: [{ row: 1 }] })
  expect(talker.chats.length - before).toBe(2)
  expect(Number(run.spent_usd)).toBeGreaterThan(0)
  expect(Number(run.spent_usd)).toBeLessThanOrEqual(12)
})

const aboutOf = (input: string) => ({ about: isRefund(input) ? "refund" : "other" })

test("answers to other words of a question are left out, and said to be; people's labels stay", async () => {
  const params = { ...at, set_id: "worded" }
  const choices = [{ value: "refund", description: "Money back." }, { value: "other" }]
  const asks = { type: "choice" as const, name: "about", instructions: "What is it about?" }
  await client.createQuestionSet({
    params: at,
    body: { name: "worded", model: "umpire-decide", questions: [{ ...asks, choices }] },
  })
  const people = Array.from({ length: 8 }, (_, n) =>
    n % 2 === 0 ? `A refund for case ${n}.` : `Snow at ${n}.`,
  )
  const rows = [
    ...people.map((input) => ({ input, labels: aboutOf(input) })),
    ...texts.map((input) => ({ input, labels: aboutOf(input), teacher: "large" })),
  ]
  await client.addQuestionSetExamples({ params, body: { rows } })
  const teach = async () => {
    let job = await client.teachQuestionSet({ params, body: {} })
    const ended = async () =>
      (job = await client.getQuestionSetJob({ params: { ...params, job_id: job.id } })).state
    await expect.poll(ended, { timeout: 120_000 }).toBe("succeeded")
    const [question] = (job.result as TeachResult).questions
    return question
  }
  // Neither another order of the options nor a setting is another question.
  const reworded = async (changes: object) =>
    await client.updateQuestionSet({ params, body: { questions: [{ ...asks, choices, ...changes }] } })
  await reworded({ choices: choices.toReversed(), threshold: 0.5 })
  expect((await teach())?.teacher).toMatchObject({ models: ["large"], labels: texts.length, outdated: 0 })
  for (const changes of [
    { instructions: "What does the customer want?" },
    { choices: [{ value: "refund", description: "Any complaint." }, { value: "other" }] },
    { choices: [...choices, { value: "weather" }] },
  ]) {
    await reworded(changes)
    const taught = await teach()
    expect(taught?.reason).toBeNull()
    expect(taught?.teacher).toMatchObject({ models: [], labels: 0, outdated: texts.length })
    expect(taught?.teacher?.sentence).toMatch(/^12 answers to other words of the question are left out/)
  }
  const anew = texts.slice(0, 5).map((input) => ({ input, labels: aboutOf(input), teacher: "large" }))
  await client.addQuestionSetExamples({ params, body: { rows: anew } })
  expect((await teach())?.teacher).toMatchObject({ models: ["large"], labels: 5, outdated: 7 })
}, 300_000)
