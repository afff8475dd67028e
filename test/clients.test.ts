/** Real clients, unchanged but for the key and the base address. */
import { createTypeSafeAi } from "@ai-sdk/typesafe-ai"
import { TypeSafeClient, choice, noul, score } from "@typesafe-ai/sdk"
import { type Experimental_EvaluationModel, experimental_evaluate as evaluate } from "ai"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"

const model = "umpire-decide"
const letter = "I was charged twice for the same order. Please refund the duplicate as soon as possible."

let server: TestServer
beforeAll(async () => {
  server = await startServer({ env: { UMPIRE_COMPAT_SYSTEMONE_NULL_DESCRIPTIONS: "true" } })
})
afterAll(async () => {
  await server.stop()
})

const openai = (): OpenAI => new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 })
const typesafe = (): TypeSafeClient =>
  new TypeSafeClient({ apiKey: server.key, baseURL: server.url, defaultModel: model })
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

describe("openai", () => {
  test("decisions.create answers every kind of question in order", async () => {
    const decision = await openai().decisions.create({
      model,
      input: letter,
      questions: [
        { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
        {
          type: "choice",
          instructions: "What is the complaint about?",
          choices: [{ value: "billing" }, { value: "delivery" }, { value: true }, { value: "true" }],
        },
        {
          type: "score",
          name: "anger",
          instructions: "How angry is the customer?",
          levels: [
            { label: "calm" },
            { label: "annoyed", description: "unhappy, polite" },
            { label: "furious" },
          ],
        },
      ],
    })
    const [refund, topic, anger] = decision.answers
    expect(refund).toMatchObject({ type: "predicate", name: "refund" })
    if (refund?.type === "predicate") expect(refund.probability).toBeGreaterThan(0.5)
    if (topic?.type !== "choice" || anger?.type !== "score")
      throw new Error("the answers have the wrong types")
    expect(topic.name).toBeNull()
    expect(topic.probabilities.map(({ value }) => value)).toEqual(["billing", "delivery", true, "true"])
    expect(sum(topic.probabilities.map(({ probability }) => probability))).toBeCloseTo(1, 12)
    expect(anger.probabilities.map(({ label, value }) => [label, value])).toEqual([
      ["calm", 0],
      ["annoyed", 1],
      ["furious", 2],
    ])
    expect(decision.usage).toEqual({
      input_tokens: decision.usage.total_tokens,
      input_tokens_details: { cache_write_tokens: 0, cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: expect.any(Number),
    })
  })

  test("a wrong key is the client's AuthenticationError, a bad request its 422 with our code", async () => {
    const wrong = new OpenAI({
      apiKey: "ump_nobody_0123456789abcdef",
      baseURL: `${server.url}/v1`,
      maxRetries: 0,
    })
    await expect(wrong.decisions.create({ model, input: letter, questions: [] })).rejects.toBeInstanceOf(
      OpenAI.AuthenticationError,
    )
    await expect(
      openai().decisions.create({ model: "no-such-model", input: letter, questions: [] }),
    ).rejects.toMatchObject({
      status: 422,
      code: "unknown_model",
    })
  })
})

describe("@typesafe-ai/sdk", () => {
  test("systemOne answers under the question's own keys, also with its null descriptions", async () => {
    const { answers, usage } = await typesafe().systemOne({
      state: { document: letter, history: [{ order: 12345678901234567890n.toString() }] },
      questions: {
        refund: noul("Does the customer ask for a refund?", {
          true: "asks for money back",
          false: "does not",
        }),
        category: choice("What is this about?", { billing: null, technical: null, other: null }),
        urgency: score("How urgent is it?", ["can wait", "soon", "at once"]),
      },
    })
    expect(answers.refund.noul).toBeGreaterThan(0.5)
    expect(Object.keys(answers.category.probabilities)).toEqual(["billing", "technical", "other"])
    expect(answers.urgency.legend).toEqual({ "0": "can wait", "1": "soon", "2": "at once" })
    expect(usage.output_tokens).toBe(0)
  })
})

describe("ai with @ai-sdk/typesafe-ai", () => {
  test("experimental_evaluate accepts our probabilities as they are", async () => {
    const provider = createTypeSafeAi({ apiKey: server.key, baseURL: `${server.url}/v1` })
    const { answers } = await evaluate({
      // The two packages name different releases of one interface.
      model: provider.evaluationModel(model) as Experimental_EvaluationModel,
      state: letter,
      questions: {
        department: {
          type: "choice",
          instructions: "Which team should handle this?",
          criteria: { billing: "Charges and refunds", support: "Other requests" },
        },
        urgent: { type: "boolean", instructions: "Is the customer in a hurry?" },
        anger: {
          type: "score",
          instructions: "How angry is the customer?",
          criteria: ["calm", "annoyed", "furious"],
        },
      },
    })
    expect(answers.department.choice).toBe("billing")
    expect(answers.urgent.probability).toBeGreaterThan(0)
    expect(answers.anger.score).toBeLessThanOrEqual(2)
  })
})
