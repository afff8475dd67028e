/**
 * Clients as they come from npm, unchanged but for the key and the base address, that are too large for every run: the AI SDK's
 * providers of Anthropic, of both its generations, and promptfoo over all of its ways to ask. They are installed at first use.
 */
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { type ToolSet, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type AgentsScene, hasResult, openAgentsScene } from "./agents-scene.ts"
import { testPackage } from "./test-packages.ts"

const installMs = 600_000

let scene: AgentsScene
beforeAll(async () => {
  const call = { name: "get_weather", arguments: '{"city":"Oslo"}' }
  scene = await openAgentsScene((request) => {
    if (hasResult(request)) return { text: "It is sunny in Oslo." }
    return request.tools ? { calls: [call] } : { reasoning: "A greeting.", text: "Good day from far away." }
  })
})
afterAll(async () => {
  await scene.close()
})

type Model = Parameters<typeof generateText>[0]["model"]
type CreateAnthropic = (options: {
  readonly apiKey: string
  readonly baseURL: string
}) => (model: string) => Model

describe.each([
  ["3.0.138", "index.mjs"],
  ["4.0.104", "index.js"],
])("@ai-sdk/anthropic %s", (version, file) => {
  let model: Model
  beforeAll(async () => {
    const place = await testPackage("@ai-sdk/anthropic", version, ["zod@4.6.7"])
    const { createAnthropic } = (await import(join(place, "dist", file))) as {
      createAnthropic: CreateAnthropic
    }
    model = createAnthropic({ apiKey: scene.server.key, baseURL: `${scene.server.url}/v1` })("far")
  }, installMs)

  test("answers, whole and streamed", async () => {
    const { text, finishReason } = await generateText({ model, prompt: "Hello", maxRetries: 0 })
    expect([text, finishReason]).toEqual(["Good day from far away.", "stop"])
    let streamed = ""
    for await (const piece of streamText({ model, prompt: "Hello", maxRetries: 0 }).textStream)
      streamed += piece
    expect(streamed).toBe(text)
  })

  test("calls a tool and goes on with its result", async () => {
    const get_weather = tool({
      description: "The weather in a city",
      inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
      execute: async ({ city }) => `sunny in ${city}`,
    })
    const tools: ToolSet = { get_weather }
    const { text, steps } = await generateText({
      model,
      tools,
      prompt: "Weather in Oslo?",
      stopWhen: stepCountIs(2),
      maxRetries: 0,
    })
    expect([text, steps.length]).toEqual(["It is sunny in Oslo.", 2])
  })
})

test(
  "promptfoo asks over chat, Responses, completions and Messages, and finds every answer right",
  { timeout: 2 * installMs },
  async () => {
    const place = await testPackage("promptfoo", "0.123.1")
    const openai = { apiBaseUrl: `${scene.server.url}/v1`, apiKey: scene.server.key }
    const config = {
      prompts: ["Say hello to {{who}}."],
      providers: [
        ...["openai:chat:far", "openai:responses:far", "openai:completion:far"].map((id) => ({
          id,
          config: openai,
        })),
        { id: "anthropic:messages:far", config: { apiBaseUrl: scene.server.url, apiKey: scene.server.key } },
      ],
      tests: [{ vars: { who: "Ada" }, assert: [{ type: "contains", value: "Good day from far away." }] }],
    }
    const file = join(scene.directory, "promptfoo.json")
    const output = join(scene.directory, "promptfoo-results.json")
    writeFileSync(file, JSON.stringify(config))
    const { bin } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as {
      bin: Record<string, string>
    }
    const args = [
      join(place, bin["promptfoo"] ?? ""),
      "eval",
      "-c",
      file,
      "-o",
      output,
      "--no-cache",
      "--no-write",
    ]
    const env = {
      ...process.env,
      HOME: scene.directory,
      PROMPTFOO_CONFIG_DIR: scene.directory,
      PROMPTFOO_DISABLE_TELEMETRY: "1",
      PROMPTFOO_DISABLE_UPDATE: "1",
    }
    await promisify(execFile)(process.execPath, args, { cwd: scene.directory, env })
    const { results } = JSON.parse(readFileSync(output, "utf8")) as {
      results: { stats: { successes: number; failures: number; errors: number } }
    }
    expect(results.stats).toMatchObject({ successes: 4, failures: 0, errors: 0 })
  },
)
