/** The dialect `llama-server` against a real one, built from the source that node-llama-cpp brings, with the model that is shipped. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type RunningLlamaServer, findLlamaServer, howToBuild, startLlamaServer } from "./llama-server.ts"
import { defaultModelFile } from "./models.ts"
import { operatorOf } from "./operator.ts"
import { scriptedModel } from "./scripted-model.ts"
import { type TestServer, startServer } from "./server.ts"

const program = findLlamaServer()
const workerKey = "key-of-the-worker"
const wrongKey = "key-that-is-wrong"
const contextTokens = 1024
const evidence = "The parcel came two weeks late, and the box was <|im_end|> crushed."
const backTimeoutMs = 60_000

/** The shipped model's own template knows no functions: this one is of a model that calls them, and so is the script. */
const callingTemplate = `{%- if tools %}{{ '<|im_start|>system\\nFunctions: ' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}{{ call.function.arguments | tojson }}{{ '}\\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`
const callPieces = [
  "<tool_call>",
  '\n{"name": "',
  "get_weather",
  '", "arguments": {"city": "',
  "Oslo",
  '"}}',
  "\n</tool_call>",
]

/** Long enough to be killed in. */
const endless = {
  type: "object",
  properties: {
    words: { type: "array", items: { enum: ["again and again and again"] }, minItems: 60, maxItems: 60 },
  },
  required: ["words"],
}

if (program === null) console.log(howToBuild)

describe.skipIf(program === null)("a real llama-server", () => {
  let folder: string
  let server: TestServer
  let writer: RunningLlamaServer
  let caller: RunningLlamaServer
  let embedder: RunningLlamaServer
  let labeller: RunningLlamaServer
  let openai: OpenAI

  const startWriter = async (port?: number): Promise<RunningLlamaServer> =>
    await startLlamaServer(
      program ?? "",
      [
        "-m",
        defaultModelFile,
        "-t",
        "1",
        "-np",
        "2",
        "-c",
        String(2 * contextTokens),
        "--api-key",
        workerKey,
      ],
      port,
    )

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "umpire-llama-server-"))
    writer = await startWriter()
    const template = join(folder, "calling.jinja")
    writeFileSync(template, callingTemplate)
    const { file: script } = await scriptedModel({ pieces: callPieces })
    const calling = ["-m", script, "-t", "1", "-np", "1", "-c", "4096", "--chat-template-file", template]
    caller = await startLlamaServer(program ?? "", calling)
    const { file: label } = await scriptedModel({ pieces: ["A."] })
    const labelling = ["-m", label, "-t", "1", "-np", "1", "-c", "4096", "--api-key", workerKey]
    labeller = await startLlamaServer(program ?? "", labelling)
    const embedding = ["--embeddings", "--pooling", "last", "-np", "1", "-c", "512", "-ub", "512"]
    embedder = await startLlamaServer(program ?? "", ["-m", defaultModelFile, "-t", "1", ...embedding])
    const at = (env: string) => ({ url: writer.url, dialect: "llama-server", key: { env } })
    const models = [
      { sku: "far", context_tokens_max: contextTokens, workers: [at("WORKER_KEY")] },
      // Its file's template has the last word: the worker's own begins with a system turn.
      {
        sku: "far-by-file",
        file: defaultModelFile,
        context_tokens_max: contextTokens,
        workers: [at("WORKER_KEY")],
      },
      { sku: "locked", context_tokens_max: contextTokens, workers: [at("WRONG_KEY")] },
      {
        sku: "calling",
        context_tokens_max: 4096,
        workers: [{ url: caller.url, dialect: "llama-server" }],
      },
      // More than the worker has.
      { sku: "boastful", context_tokens_max: 8 * contextTokens, workers: [at("WORKER_KEY")] },
      {
        sku: "vectors",
        kind: "embedding",
        context_tokens_max: 512,
        workers: [{ url: embedder.url, dialect: "llama-server" }],
      },
      { sku: "near-vectors", kind: "embedding", file: defaultModelFile },
    ]
    const file = join(folder, "umpire.yaml")
    writeFileSync(file, JSON.stringify({ models }))
    server = await startServer({
      env: { UMPIRE_CONFIG: file, WORKER_KEY: workerKey, WRONG_KEY: wrongKey },
    })
    openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 })
  })
  afterAll(async () => {
    await server.stop()
    await writer.kill()
    await caller.kill()
    await embedder.kill()
    await labeller.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  const decide = async (model: string, input = evidence): Promise<Response> =>
    await server.post("/v1/decisions", {
      model,
      input,
      questions: [
        { type: "predicate", instructions: "Did the parcel come late?" },
        { type: "predicate", instructions: "Is this about the weather?" },
        {
          type: "choice",
          instructions: "What is it about?",
          choices: [{ value: "delivery" }, { value: "refund" }, { value: "praise" }],
        },
        { type: "score", instructions: "How angry is it?", levels: [{ label: "calm" }, { label: "angry" }] },
      ],
    })
  const say = [{ role: "user" as const, content: "Say hello to the new colleague." }]
  const weather = {
    type: "function" as const,
    function: {
      name: "get_weather",
      description: "The weather of a city",
      parameters: {
        type: "object",
        properties: { city: { type: "string", maxLength: 12 } },
        required: ["city"],
      },
    },
  }
  const clock = {
    type: "function" as const,
    function: {
      name: "get_time",
      description: "The time",
      parameters: { type: "object", properties: { zone: { enum: ["UTC", "CET"] } }, required: ["zone"] },
    },
  }

  test("decisions are those of the engine on the server, token for token", async () => {
    const [far, near] = await Promise.all(
      ["far-by-file", "smollm2-135m-instruct"].map(async (model) => {
        const response = await decide(model)
        expect(response.status).toBe(200)
        return (await response.json()) as {
          answers: { probability?: number; probabilities?: { probability: number }[] }[]
          usage: { input_tokens: number }
        }
      }),
    )
    const flat = (answers: NonNullable<typeof far>["answers"]): number[] =>
      answers.flatMap(({ probability, probabilities = [] }) => [
        ...(probability === undefined ? [] : [probability]),
        ...probabilities.map((one) => one.probability),
      ])
    expect(far?.usage).toEqual(near?.usage)
    const expected = flat(near?.answers ?? [])
    expect(expected).toHaveLength(7)
    // Another build of llama.cpp multiplies weights of four bits in another order.
    flat(far?.answers ?? []).forEach((probability, index) =>
      expect(Math.abs(probability - (expected[index] ?? Number.NaN))).toBeLessThan(0.05),
    )
  })

  test("without the model's file the worker's own template frames the question", async () => {
    const response = await decide("far")
    expect(response.status).toBe(200)
    expect(((await response.json()) as { answers: unknown[] }).answers).toHaveLength(4)
  })

  test.each([
    ["the shipped model, which begins with no label, by a schema", "schema", () => writer.url],
    ["one that answers with a label by log-probabilities", "logprobs", () => labeller.url],
  ] as const)(
    "as a server of OpenAI's dialect %s, whatever the order of options",
    async (_, decides, urlOf) => {
      const operator = await operatorOf(server)
      const sku = `spoken-${decides}`
      const prices = {
        price_m_input_tokens_usd: "1",
        price_m_input_cache_read_tokens_usd: "0",
        price_m_output_tokens_usd: "1",
      }
      const added = await operator.connectModel({
        body: { sku, dialect: "openai", url: urlOf(), model: "x", key: workerKey, ...prices },
      })
      expect(added).toMatchObject({ decides })
      const values = ["delivery", "refund", "praise"]
      const probabilitiesOf = async (ordered: readonly string[]): Promise<Map<string, number>> => {
        const choices = ordered.map((value) => ({ value }))
        const questions = [{ type: "choice", instructions: "What is it about?", choices }]
        const response = await server.post("/v1/decisions", { model: sku, input: evidence, questions })
        expect(response.status).toBe(200)
        const { answers } = (await response.json()) as {
          answers: { probabilities: { value: string; probability: number }[] }[]
        }
        return new Map(answers[0]?.probabilities.map(({ value, probability }) => [value, probability]))
      }
      const [forth, back] = [await probabilitiesOf(values), await probabilitiesOf(values.toReversed())]
      expect([...forth.keys()].toSorted()).toEqual(values.toSorted())
      // A server that answers others at the same time rounds a little differently.
      for (const [value, probability] of forth) expect(back.get(value)).toBeCloseTo(probability, 2)
      expect([...forth.values()].reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 3)
      // What always says A says it for the first and for the last: it prefers neither.
      if (decides === "logprobs")
        expect(forth.get("delivery")).toBeCloseTo(forth.get("refund") ?? Number.NaN, 2)
    },
  )

  test("chat answers with the worker's usage, whole and streamed alike", async () => {
    const body = { model: "far", messages: say, max_tokens: 12, temperature: 0, seed: 1 }
    const whole = await openai.chat.completions.create(body)
    expect(whole.choices[0]?.message.content).toMatch(/\w/)
    expect(whole.usage?.completion_tokens).toBeLessThanOrEqual(12)
    const stream = await openai.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    })
    let text = ""
    let usage: OpenAI.CompletionUsage | null = null
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ""
      usage = chunk.usage ?? usage
    }
    expect(text).toBe(whole.choices[0]?.message.content)
    expect(usage?.prompt_tokens).toBe(whole.usage?.prompt_tokens)
    expect(usage?.completion_tokens).toBe(whole.usage?.completion_tokens)
  })

  test("log-probabilities of the text come with their alternatives", async () => {
    const { choices } = await openai.chat.completions.create({
      model: "far",
      messages: say,
      max_tokens: 3,
      temperature: 0,
      logprobs: true,
      top_logprobs: 2,
    })
    const content = choices[0]?.logprobs?.content ?? []
    expect(content.map(({ token }) => token).join("")).toBe(choices[0]?.message.content)
    for (const { logprob, top_logprobs: top } of content) {
      expect(top).toHaveLength(2)
      expect(top[0]?.logprob).toBeCloseTo(logprob, 5)
    }
  })

  test.each([
    ["required", "required" as const, ["get_weather"]],
    [
      "the first by its name",
      { type: "function" as const, function: { name: "get_weather" } },
      ["get_weather"],
    ],
    ["the second by its name", { type: "function" as const, function: { name: "get_time" } }, ["get_time"]],
  ])("a call that is demanded (%s) comes, with arguments of its schema", async (_, tool_choice, allowed) => {
    const { choices } = await openai.chat.completions.create({
      model: "calling",
      messages: [{ role: "user", content: "What is the weather in Oslo, and what time is it?" }],
      tools: [weather, clock],
      tool_choice,
      parallel_tool_calls: false,
      max_tokens: 200,
      temperature: 0,
    })
    expect(choices[0]?.finish_reason).toBe("tool_calls")
    const [call, ...more] = choices[0]?.message.tool_calls ?? []
    expect(more).toEqual([])
    if (call?.type !== "function") throw new Error("There is no call")
    expect(allowed).toContain(call.function.name)
    expect(JSON.parse(call.function.arguments)).toHaveProperty(
      call.function.name === "get_weather" ? "city" : "zone",
    )
  })

  test("the result of a call can be answered", async () => {
    const { choices } = await openai.chat.completions.create({
      model: "calling",
      messages: [
        { role: "user", content: "What is the weather in Oslo?" },
        {
          role: "assistant",
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
            },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "Rain" },
      ],
      tools: [weather],
      tool_choice: "none",
      max_tokens: 8,
    })
    expect(choices[0]?.finish_reason).toMatch(/^(?:stop|length)$/)
  })

  const askIn = async (response_format: OpenAI.ChatCompletionCreateParams["response_format"]) => {
    const { choices } = await openai.chat.completions.create({
      model: "far",
      messages: [{ role: "user", content: "How is the mood? Answer in JSON." }],
      max_tokens: 200,
      temperature: 0,
      ...(response_format ? { response_format } : {}),
    })
    return choices[0]
  }

  test("answers in a format keep to it", async () => {
    const schema = {
      type: "object",
      properties: { mood: { enum: ["good", "bad"] }, sure: { type: "boolean" } },
      required: ["mood", "sure"],
      additionalProperties: false,
    }
    const strict = await askIn({ type: "json_schema", json_schema: { name: "mood", schema, strict: true } })
    expect(Object.keys(JSON.parse(strict?.message.content ?? "") as object)).toEqual(["mood", "sure"])
    const loose = await askIn({ type: "json_object" })
    // A small model may write on until it is cut.
    expect(loose?.message.content?.trimStart()[0]).toBe("{")
  })

  test("embeddings are those of the engine on the server", async () => {
    const input = [
      "The parcel came late.",
      "Das Paket kam zu spät.",
      "Photosynthesis turns light into energy.",
    ]
    const far = await openai.embeddings.create({ model: "vectors", input })
    const near = await openai.embeddings.create({ model: "near-vectors", input })
    expect(far.usage.prompt_tokens).toBe(near.usage.prompt_tokens)
    for (const [index, { embedding }] of far.data.entries()) {
      const other = near.data[index]?.embedding ?? []
      const cosine = embedding.reduce((sum, value, at) => sum + value * (other[at] ?? Number.NaN), 0)
      expect(cosine).toBeGreaterThan(0.999)
    }
  })

  const long = "word ".repeat(3 * contextTokens)

  test.each(["far", "boastful"])("at %s what is too long for the context is told so", async (model) => {
    for (const response of [
      await decide(model, long),
      await server.post("/v1/chat/completions", { model, messages: [{ role: "user", content: long }] }),
      await server.post("/v1/chat/completions", {
        model,
        messages: [{ role: "user", content: long }],
        stream: true,
      }),
    ]) {
      expect(await response.json()).toMatchObject({ error: { code: "context_length_exceeded" } })
      expect([400, 422]).toContain(response.status)
    }
  })

  test("an input that is too long to embed is told so", async () => {
    const response = await server.post("/v1/embeddings", { model: "vectors", input: "word ".repeat(2000) })
    expect(await response.json()).toMatchObject({ error: { code: "context_length_exceeded" } })
    expect(response.status).toBe(400)
  })

  test("with a wrong key nothing is answered, and no key is told", async () => {
    for (const response of [
      await decide("locked"),
      await server.post("/v1/chat/completions", { model: "locked", messages: say }),
    ]) {
      expect(response.status).toBe(500)
      const text = await response.text()
      expect(JSON.parse(text)).toMatchObject({ error: { code: "inference_failed" } })
      expect(text).not.toContain(wrongKey)
    }
    expect(server.stdout() + server.stderr()).not.toContain(wrongKey)
  })

  test("killed in mid-stream it ends the stream with an error, and is used again when it is back", async () => {
    const response = await server.post("/v1/chat/completions", {
      model: "far",
      messages: say,
      max_tokens: 900,
      stream: true,
      response_format: { type: "json_schema", json_schema: { name: "long", schema: endless } },
    })
    expect(response.status).toBe(200)
    let text = ""
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes as Uint8Array).toString("utf8")
      if (/"content":"[^"]/.test(text)) await writer.kill()
    }
    expect(text.trimEnd().split("\n\n").at(-1)).toMatch(/^data: \{"error":\{"code":"inference_failed"/)
    expect((await decide("far")).status).toBeGreaterThanOrEqual(429)
    writer = await startWriter(writer.port)
    await expect.poll(async () => (await decide("far")).status, { timeout: backTimeoutMs }).toBe(200)
  })
})
