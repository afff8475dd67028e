import { plainWork } from "../../../test/plain-work.ts"
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, expect, test } from "vitest"
import { type GenerateWork, type GenerationUsage, noGenerationUsage } from "../engine.ts"
import type { DialectName } from "./dialects.ts"
import { type RemoteWorker, openRemoteWorker } from "./remote-worker.ts"

const never = new AbortController().signal
const freely = { signal: never, admit: async () => 10, onUsage: () => undefined }
const work = plainWork({ outputTokensMax: 10 })

let server: Server | undefined
let worker: RemoteWorker | undefined
/** The body that the worker was sent. */
let asked = ""
afterEach(async () => {
  await worker?.close()
  server?.closeAllConnections()
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)))
})

/** What is counted of a stream of three pieces whose worker says this of its use. */
async function usageWhen(said: object | null): Promise<GenerationUsage> {
  const pieces = ["a", "b", "c"].map((content) => ({ choices: [{ delta: { content } }] }))
  const end = { choices: [{ delta: {}, finish_reason: "stop" }], ...(said ? { usage: said } : {}) }
  const events = [...pieces, end].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")
  const { generator } = await serve("openai", events)
  let usage = noGenerationUsage
  const call = { ...freely, onUsage: (used: GenerationUsage) => void (usage = used) }
  for await (const event of generator.generate(work, call)) expect(event.kind).not.toBe("call")
  return usage
}

/** A worker that answers these events, whatever it is asked. */
async function serve(dialect: DialectName, events: string): Promise<RemoteWorker> {
  server = createServer((request, response) => {
    const end = (body: string): void => {
      asked = body
      response.writeHead(200, { "content-type": "text/event-stream" }).end(`${events}data: [DONE]\n\n`)
    }
    text(request).then(end, () => response.destroy())
  })
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve))
  // A listening TCP server has an address of this form.
  const { port } = server.address() as AddressInfo
  const model = { name: "m", contextTokensMax: 2048, quantization: "F32", file: null }
  worker = openRemoteWorker({ url: `http://127.0.0.1:${port}` }, dialect, { model })
  return worker
}

test("what a worker says it used is what counts, also when it says zero", async () => {
  const zero = { prompt_tokens: 0, completion_tokens: 0 }
  expect(await usageWhen(zero)).toMatchObject({ inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 })
})

test("a worker that says nothing has used a token for each piece at least", async () => {
  expect(await usageWhen(null)).toMatchObject({ outputTokens: 3 })
})

test("more cached than there was is no more than there was", async () => {
  const said = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 9 } }
  expect(await usageWhen(said)).toMatchObject({ inputTokens: 7, cachedInputTokens: 7, outputTokens: 3 })
})

const tool = (name: string) => ({ name, description: null, parameters: null, strict: false })
const stopped = `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop" }] })}\n\n`

/** How a demanded function and a format without a schema are asked for. */
test.each([
  [
    "openai",
    {
      tools: [{ function: { name: "a" } }, { function: { name: "b" } }],
      tool_choice: { type: "function", function: { name: "b" } },
      response_format: { type: "json_object" },
    },
  ],
  // It knows no names there, and takes any value for JSON.
  [
    "llama-server",
    {
      tools: [{ function: { name: "b" } }],
      tool_choice: "required",
      response_format: { type: "json_object", schema: { type: "object" } },
    },
  ],
] as const)("%s is asked in its own words", async (dialect, expected) => {
  const { generator } = await serve(dialect, stopped)
  const given: GenerateWork = {
    ...work,
    tools: [tool("a"), tool("b")],
    toolChoice: { name: "b" },
    format: { kind: "json_object" },
  }
  for await (const event of generator.generate(given, freely)) expect(event.kind).toBe("end")
  const { tools, tool_choice, response_format } = JSON.parse(asked) as Record<string, unknown>
  expect({ tools, tool_choice, response_format }).toMatchObject(expected)
})
