/** Clients as they come from npm, unchanged but for the key and the base address, on the embedded model. */
import { createOpenAI } from "@ai-sdk/openai"
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool as agentTool } from "@openai/agents"
import { embed, embedMany, generateObject, generateText, isStepCount, streamText, tool } from "ai"
import OpenAI from "openai"
import { zodResponseFormat } from "openai/helpers/zod"
import { ResponsesWS } from "openai/resources/responses/ws"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { z } from "zod"
import { type TestServer, startServer } from "./server.ts"
import { testPackage } from "./test-packages.ts"

const model = "smollm2-135m-instruct"
const embedding = "all-minilm-l6-v2"
const Person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(130) })

let server: TestServer
const base = (): { apiKey: string; baseURL: string } => ({ apiKey: server.key, baseURL: `${server.url}/v1` })
beforeAll(async () => {
  server = await startServer({ env: { UMPIRE_ENGINE_THREADS: "1" } })
  setTracingDisabled(true)
})
afterAll(async () => {
  await server.stop()
})

const weather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 20 } },
      required: ["city"],
      additionalProperties: false,
    },
    strict: true,
  },
}

const client = (): OpenAI => new OpenAI({ ...base(), maxRetries: 0 })

describe("openai", () => {
  test("chat completions answer with usage", async () => {
    const completion = await client().chat.completions.create({
      model,
      messages: [{ role: "user", content: "Say hello." }],
      max_completion_tokens: 12,
    })
    const { message, finish_reason } = completion.choices[0] ?? {}
    expect(message?.content?.length).toBeGreaterThan(0)
    expect(["stop", "length"]).toContain(finish_reason)
    expect(completion.usage?.total_tokens).toBe(
      (completion.usage?.prompt_tokens ?? 0) + (completion.usage?.completion_tokens ?? 0),
    )
  })

  test("the stream helper accumulates what an unstreamed request answers", async () => {
    const request = {
      model,
      messages: [{ role: "user" as const, content: "Say hello." }],
      max_completion_tokens: 12,
      temperature: 0,
    }
    const whole = await client().chat.completions.create(request)
    const stream = client().chat.completions.stream({ ...request, stream_options: { include_usage: true } })
    const streamed = await stream.finalChatCompletion()
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content)
    expect(streamed.usage?.prompt_tokens).toBe(whole.usage?.prompt_tokens)
    expect(streamed.usage?.completion_tokens).toBe(whole.usage?.completion_tokens)
  })

  test("parse answers an object of the schema", async () => {
    const completion = await client().chat.completions.parse({
      model,
      messages: [{ role: "user", content: "Ada is 36 years old." }],
      response_format: zodResponseFormat(Person, "person"),
      max_completion_tokens: 60,
    })
    expect(Person.safeParse(completion.choices[0]?.message.parsed).success).toBe(true)
  })

  test("a forced tool call streams arguments of the schema", async () => {
    const stream = client().chat.completions.stream({
      model,
      messages: [{ role: "user", content: "Weather in Paris?" }],
      tools: [weather],
      tool_choice: "required",
      max_completion_tokens: 40,
    })
    const { choices } = await stream.finalChatCompletion()
    const call = choices[0]?.message.tool_calls?.[0]
    expect(choices[0]?.finish_reason).toBe("tool_calls")
    if (call?.type !== "function") throw new Error("no function was called")
    expect(call.function.name).toBe("get_weather")
    expect(Object.keys(JSON.parse(call.function.arguments) as object)).toEqual(["city"])
  })

  test("responses answer, stream and are kept", async () => {
    const api = client().responses
    const first = await api.create({
      model,
      input: "Hello",
      max_output_tokens: 8,
      metadata: { purpose: "test" },
    })
    expect(first.output_text.length).toBeGreaterThan(0)
    const stream = api.stream({
      model,
      input: "And you?",
      previous_response_id: first.id,
      max_output_tokens: 8,
    })
    const second = await stream.finalResponse()
    expect(second.previous_response_id).toBe(first.id)
    const stored = await api.retrieve(second.id)
    expect(stored.output_text).toBe(second.output_text)
    const items = await api.inputItems.list(first.id)
    expect(items.data[0]).toMatchObject({ type: "message", role: "user" })
    await api.delete(first.id)
    await expect(api.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
  })

  test("several turns over one socket", async () => {
    const socket = new ResponsesWS(client())
    const turn = async (event: Record<string, unknown>): Promise<OpenAI.Responses.Response> => {
      const ended = Promise.withResolvers<OpenAI.Responses.Response>()
      const done = ({ response }: { response: OpenAI.Responses.Response }): void => ended.resolve(response)
      socket.once("response.completed", done)
      socket.once("response.incomplete", done)
      socket.once("error", (error) => ended.reject(error))
      socket.send({ type: "response.create", model, max_output_tokens: 6, store: false, ...event } as never)
      return await ended.promise
    }
    const first = await turn({ input: "Hello" })
    const second = await turn({ input: "Again", previous_response_id: first.id })
    const third = await turn({ input: "More", previous_response_id: second.id })
    expect(third.usage?.input_tokens).toBeGreaterThan(second.usage?.input_tokens ?? 0)
    expect(second.usage?.input_tokens).toBeGreaterThan(first.usage?.input_tokens ?? 0)
    socket.close()
  })

  test("embeddings are the same as numbers and as base64", async () => {
    const input = ["A cat sits on the mat.", "Stocks fell today."]
    const numbers = await client().embeddings.create({ model: embedding, input, encoding_format: "float" })
    // The client asks for base64 by itself and decodes it.
    const decoded = await client().embeddings.create({ model: embedding, input })
    expect(numbers.data).toHaveLength(2)
    expect(decoded.data[0]?.embedding).toHaveLength(384)
    numbers.data[0]?.embedding.forEach((value, index) =>
      expect(decoded.data[0]?.embedding[index]).toBeCloseTo(value, 6),
    )
  })

  test("models are listed and looked up", async () => {
    const models = await client().models.list()
    expect(models.data.map(({ id }) => id)).toContain(model)
    expect((await client().models.retrieve(model)).object).toBe("model")
    await expect(client().models.retrieve("nothing")).rejects.toMatchObject({ status: 404 })
  })

  test("decisions are answered beside inference", async () => {
    const { answers } = await client().decisions.create({
      model,
      input: "Please refund my order.",
      questions: [{ type: "predicate", instructions: "Does the customer ask for a refund?" }],
    })
    expect(answers[0]?.type).toBe("predicate")
  })
})

const provider = () => createOpenAI(base())

describe("AI SDK", () => {
  test("generateText on both APIs", async () => {
    for (const one of [provider()(model), provider().chat(model)]) {
      const { text, usage } = await generateText({ model: one, prompt: "Say hello.", maxOutputTokens: 8 })
      expect(text.length).toBeGreaterThan(0)
      expect(usage.outputTokens).toBeGreaterThan(0)
    }
  })

  test("streamText gives the text in pieces", async () => {
    const result = streamText({ model: provider()(model), prompt: "Say hello.", maxOutputTokens: 8 })
    let text = ""
    for await (const piece of result.textStream) text += piece
    expect(text).toBe(await result.text)
    expect((await result.usage).outputTokens).toBeGreaterThan(0)
  })

  test("generateObject answers an object of the schema", async () => {
    for (const one of [provider()(model), provider().chat(model)]) {
      const { object } = await generateObject({
        model: one,
        schema: Person,
        prompt: "Ada, 36",
        maxOutputTokens: 60,
      })
      expect(Person.safeParse(object).success).toBe(true)
    }
  })

  test("a tool is called and its result goes back into the conversation", async () => {
    const cities: string[] = []
    const result = await generateText({
      model: provider()(model),
      prompt: "Weather in Paris?",
      tools: {
        get_weather: tool({
          inputSchema: z.object({ city: z.string().max(20) }),
          execute: async ({ city }) => {
            cities.push(city)
            return "sunny"
          },
        }),
      },
      toolChoice: "required",
      maxOutputTokens: 40,
      stopWhen: isStepCount(2),
    })
    expect(cities).toHaveLength(2)
    expect(result.steps[0]?.toolResults[0]?.output).toBe("sunny")
  })

  test("embed and embedMany", async () => {
    const one = await embed({ model: provider().embeddingModel(embedding), value: "hello" })
    const many = await embedMany({ model: provider().embeddingModel(embedding), values: ["hello", "world"] })
    expect(one.embedding).toHaveLength(384)
    expect(many.embeddings[0]?.[0]).toBeCloseTo(one.embedding[0] ?? NaN, 5)
  })
})

const runAgent = async (useResponsesWebSocket: boolean): Promise<{ calls: number; output: unknown }> => {
  let calls = 0
  const look = agentTool({
    name: "get_weather",
    description: "The weather in a city",
    parameters: z.object({ city: z.string().max(20) }),
    execute: async () => {
      calls++
      return "sunny"
    },
  })
  const agent = new Agent({
    name: "assistant",
    model,
    instructions: "Answer briefly.",
    tools: [look],
    // The agent resets a forced choice after its first call, and then answers in its form, which ends where words may not.
    outputType: z.object({ weather: z.string().max(20) }),
    modelSettings: { toolChoice: "required", maxTokens: 100 },
  })
  const provider = new OpenAIProvider({ ...base(), useResponses: true, useResponsesWebSocket })
  const result = await new Runner({ modelProvider: provider }).run(agent, "Weather in Paris?")
  await provider.close()
  return { calls, output: result.finalOutput }
}

describe("OpenAI Agents", () => {
  test("a tool loop over HTTP", async () => {
    const { calls, output } = await runAgent(false)
    expect(calls).toBe(1)
    expect(output).toEqual({ weather: expect.any(String) as string })
  })

  test("a tool loop over WebSocket", async () => {
    const { calls, output } = await runAgent(true)
    expect(calls).toBe(1)
    expect(output).toEqual({ weather: expect.any(String) as string })
  })
})

/** Of LangChain's classes what is used here: it is too large for every clone, so its own types are not there. */
interface LangChainModel {
  invoke(input: unknown): Promise<LangChainMessage>
  stream(input: string): Promise<AsyncIterable<LangChainMessage>>
  bindTools(tools: readonly unknown[], options: object): LangChainModel
  withStructuredOutput(schema: unknown): { invoke(input: string): Promise<unknown> }
}

interface LangChainMessage {
  readonly text: string
  readonly tool_calls?: readonly { readonly name: string; readonly args: unknown }[]
}

interface LangChain {
  ChatOpenAI: new (options: object) => LangChainModel
  OpenAIEmbeddings: new (options: object) => { embedQuery(text: string): Promise<number[]> }
  HumanMessage: new (text: string) => unknown
  tool(run: () => Promise<string>, options: object): unknown
}

describe("LangChain", () => {
  let langchain: LangChain
  beforeAll(async () => {
    const place = await testPackage("@langchain/openai", "1.6.0", ["@langchain/core@1.2.13"])
    const files = ["openai/dist/index.js", "core/dist/messages/index.js", "core/dist/tools/index.js"]
    const parts = await Promise.all(
      files.map(async (file) => (await import(join(place, "..", file))) as object),
    )
    // Each name is exported by one of the files.
    langchain = Object.assign({}, ...parts) as LangChain
  })

  const chat = (options: Record<string, unknown> = {}): LangChainModel =>
    new langchain.ChatOpenAI({
      model,
      apiKey: server.key,
      configuration: base(),
      maxTokens: 40,
      maxRetries: 0,
      ...options,
    })

  test("invoke and stream", async () => {
    const answer = await chat({ maxTokens: 8 }).invoke([new langchain.HumanMessage("Say hello.")])
    expect(answer.text.length).toBeGreaterThan(0)
    let streamed = ""
    for await (const piece of await chat({ maxTokens: 8 }).stream("Say hello.")) streamed += piece.text
    expect(streamed.length).toBeGreaterThan(0)
  })

  test("bindTools calls the tool", async () => {
    const look = langchain.tool(async () => "sunny", {
      name: "get_weather",
      description: "The weather",
      schema: z.object({ city: z.string().max(20) }),
    })
    const answer = await chat().bindTools([look], { tool_choice: "get_weather" }).invoke("Weather in Paris?")
    expect(answer.tool_calls?.[0]?.name).toBe("get_weather")
    expect(answer.tool_calls?.[0]?.args).toEqual({ city: expect.any(String) as string })
  })

  test("withStructuredOutput answers an object of the schema", async () => {
    const structured = chat({ maxTokens: 60 }).withStructuredOutput(Person)
    expect(Person.safeParse(await structured.invoke("Ada is 36.")).success).toBe(true)
  })

  test("the Responses API and embeddings", async () => {
    const answer = await chat({ useResponsesApi: true, maxTokens: 8 }).invoke("Say hello.")
    expect(answer.text.length).toBeGreaterThan(0)
    const embeddings = new langchain.OpenAIEmbeddings({
      model: embedding,
      apiKey: server.key,
      configuration: base(),
    })
    expect(await embeddings.embedQuery("hello")).toHaveLength(384)
  })
})
