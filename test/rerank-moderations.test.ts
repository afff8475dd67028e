/** POST /v1/rerank and /v1/moderations: the forms of Cohere's, Jina's and OpenAI's clients, on the included models. */
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Moderation, moderatedTextsMax, moderationCategories } from "../src/contract/openai/moderations.ts"
import { Reranking, documentsMax } from "../src/contract/openai/rerank.ts"
import { readBody } from "../src/gateway/openai/body.ts"
import { readRecords } from "./gateways.ts"
import { type TestServer, startServer } from "./server.ts"

const model = "umpire-decide"
const query = "When will my parcel arrive?"
const documents = [
  "Our restaurant serves fresh pasta every evening.",
  { text: "Parcels arrive two to three working days after they were sent." },
  "The museum is closed on Mondays.",
]

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => {
  await server.stop()
})

const client = (): OpenAI => new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 })
const rerank = async (body: Record<string, unknown>): Promise<Response> =>
  await server.post("/v1/rerank", { model, query, documents, ...body })

async function reranked(body: Record<string, unknown> = {}): Promise<Reranking> {
  const response = await rerank(body)
  expect(response.status).toBe(200)
  return Reranking.parse(await response.json())
}

describe("rerank", () => {
  test.each([model, "all-minilm-l6-v2"])("%s puts the document that answers first", async (named) => {
    const { results, usage, meta, model: answered } = await reranked({ model: named })
    expect(answered).toBe(named)
    expect(results[0]?.index).toBe(1)
    expect(results.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([0, 1, 2])
    const scores = results.map(({ relevance_score }) => relevance_score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(results[0]).not.toHaveProperty("document")
    expect(meta.tokens.input_tokens).toBe(usage.total_tokens)
  })

  test("top_n cuts the results, and return_documents brings the texts", async () => {
    const { results } = await reranked({ top_n: 1, return_documents: true })
    expect(results).toEqual([{ index: 1, relevance_score: expect.any(Number), document: documents[1] }])
    expect((await reranked({ top_n: 99 })).results).toHaveLength(documents.length)
  })

  test("what Cohere's and Jina's clients send beside it is taken", async () => {
    const cohere = { max_tokens_per_doc: 4096, rank_fields: ["text"], return_documents: false }
    expect((await rerank(cohere)).status).toBe(200)
    expect((await rerank({ truncation: true, return_embeddings: false })).status).toBe(200)
  })

  test("Cohere's address of today answers the same, and says its version", async () => {
    const response = await server.post("/v2/rerank", { model, query, documents })
    const { results, meta } = Reranking.parse(await response.json())
    expect([response.status, meta.api_version.version]).toEqual([200, "2"])
    const first = await reranked()
    expect([results, first.meta.api_version.version]).toEqual([first.results, "1"])
  })

  test("a score is the probability that a decision has, and the usage that of one decision for each document", async () => {
    const { results, usage } = await reranked({})
    let tokens = 0
    for (const [index, document] of documents.entries()) {
      const input = typeof document === "string" ? document : document.text
      const instructions = `Does the text help to answer this query: ${query}`
      const questions = [{ type: "predicate", instructions }]
      const decided = (await (await server.post("/v1/decisions", { model, input, questions })).json()) as {
        answers: { probability: number }[]
        usage: { input_tokens: number }
      }
      tokens += decided.usage.input_tokens
      const score = results.find((result) => result.index === index)?.relevance_score
      // A run that others share differs in the last digits.
      expect(score).toBeCloseTo(decided.answers[0]?.probability ?? Number.NaN, 3)
    }
    expect(usage.total_tokens).toBe(tokens)
  })

  test("it is recorded as one sequence with its tokens", async () => {
    const response = await rerank({})
    const { usage } = Reranking.parse(await response.json())
    const id = response.headers.get("x-umpire-sequence")
    const record = (await readRecords(server.dataDirectory)).find(({ seq_id }) => seq_id === id)
    expect(record).toMatchObject({
      call_source: "rerank",
      result: "success",
      model,
      input_tokens: usage.total_tokens,
      questions: documents.length,
    })
  })

  test.each([
    ["a blank document", { documents: ["a", " "] }, "invalid_request", "documents.1"],
    ["a blank query", { query: " " }, "invalid_request", "query"],
    ["no documents", { documents: [] }, "invalid_request", "documents"],
    ["other fields to rank by", { rank_fields: ["title"] }, "unsupported_parameter", "rank_fields"],
    ["a field that is not there", { nope: 1 }, "unknown_parameter", "nope"],
    ["a model that is not there", { model: "nobody" }, "model_not_found", "model"],
    ["top_n of none", { top_n: 0 }, "invalid_request", "top_n"],
  ])("%s is refused, and recorded", async (_, body, code, param) => {
    const response = await rerank(body)
    expect([response.status, await response.json()]).toMatchObject([
      code === "model_not_found" ? 404 : 400,
      { error: { code, param } },
    ])
    const id = response.headers.get("x-umpire-sequence")
    expect((await readRecords(server.dataDirectory)).find(({ seq_id }) => seq_id === id)?.error_code).toBe(
      code,
    )
  })

  test("a document that does not fit the context is refused, and the others are not charged", async () => {
    const long = "word ".repeat(200_000)
    const response = await rerank({ documents: ["short", long, "short"] })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { code: "context_length_exceeded" } },
    ])
    const id = response.headers.get("x-umpire-sequence")
    expect((await readRecords(server.dataDirectory)).find(({ seq_id }) => seq_id === id)).toMatchObject({
      input_tokens: 0,
      cost_ticks: "0",
    })
  })
})

describe("moderations", () => {
  const threat = "I will find you tonight and break every bone in your body."
  const greeting = "Good morning, the meeting starts at ten."

  test("openai's client reads a result for each text, with every category", async () => {
    const moderation = await client().moderations.create({ input: [threat, greeting] })
    expect(moderation.model).toBe(model)
    const [bad, good] = Moderation.parse(moderation).results
    for (const result of [bad, good])
      expect(Object.keys(result?.category_scores ?? {})).toEqual([...moderationCategories])
    expect([bad?.flagged, good?.flagged]).toEqual([true, false])
    expect(bad?.categories["harassment/threatening"]).toBe(true)
  })

  test("a text, and parts of one text, have one result; OpenAI's names mean the default model", async () => {
    const whole = await client().moderations.create({ input: threat, model: "omni-moderation-latest" })
    expect(whole.results).toHaveLength(1)
    const parts = await client().moderations.create({
      input: [
        { type: "text", text: greeting },
        { type: "text", text: threat },
      ],
    })
    expect(parts.results).toHaveLength(1)
    expect(parts.results[0]?.flagged).toBe(true)
  })

  test.each([
    ["an image", { input: [{ type: "image_url", image_url: { url: "data:," } }] }, "unsupported_parameter"],
    ["a blank text", { input: " " }, "invalid_request"],
    ["texts and parts mixed", { input: ["a", { type: "text", text: "a" }] }, "invalid_request"],
    ["no text", { input: [] }, "invalid_request"],
    ["a model for embeddings", { input: "a", model: "all-minilm-l6-v2" }, "model_not_found"],
  ])("%s is refused", async (_, body, code) => {
    const response = await server.post("/v1/moderations", body)
    expect([response.status, await response.json()]).toMatchObject([
      code === "model_not_found" ? 404 : 400,
      { error: { code } },
    ])
  })

  test("it is recorded as one sequence with the tokens that it tells", async () => {
    const response = await server.post("/v1/moderations", { input: [threat, greeting] })
    const { usage } = Moderation.parse(await response.json())
    const id = response.headers.get("x-umpire-sequence")
    expect((await readRecords(server.dataDirectory)).find(({ seq_id }) => seq_id === id)).toMatchObject({
      call_source: "moderations",
      input_tokens: usage.total_tokens,
      questions: 2 * moderationCategories.length,
    })
  })
})

test.each([
  ["rerank", (count: number) => ({ model, query, documents: many(count) }), documentsMax, "documents"],
  ["moderations", (count: number) => ({ input: many(count) }), moderatedTextsMax, "input"],
] as const)("%s takes as many texts as its limit, and not one more", (wire, body, max, param) => {
  const outcome = (count: number) =>
    readBody({ wire, bytes: new TextEncoder().encode(JSON.stringify(body(count))) }).outcome
  expect(outcome(max)).toHaveProperty("request")
  expect(outcome(max + 1)).toMatchObject({ code: "invalid_request", param })
})

const many = (count: number): string[] => Array.from({ length: count }, () => "a")
