/** What Codex sends in its default configuration, recorded from its binary, and what else the Responses API has for it. */
import { once } from "node:events"
import { readFileSync } from "node:fs"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { ResponseEvent, ResponseObject } from "../src/contract/openai/responses.ts"
import { type AgentsScene, hasResult, openAgentsScene } from "./agents-scene.ts"
import type { UpstreamAnswer } from "./upstream.ts"

interface Recording {
  readonly http: Record<string, unknown>[]
  readonly socket: Record<string, unknown>[]
  readonly tools: { type: string }[]
}
// Written by the recording of one run.
const recording = JSON.parse(
  readFileSync(new URL("./fixtures/codex-requests.json", import.meta.url), "utf8"),
) as Recording

const call = { name: "exec_command", arguments: '{"cmd":"cat hello.txt"}' }
let next: UpstreamAnswer | null = null
let scene: AgentsScene
beforeAll(async () => {
  scene = await openAgentsScene(
    (request) => next ?? (hasResult(request) ? { text: "The file says hello." } : { calls: [call] }),
  )
})
afterAll(async () => {
  await scene.close()
})

const client = (): OpenAI =>
  new OpenAI({ apiKey: scene.server.key, baseURL: `${scene.server.url}/v1`, maxRetries: 0 })
const post = async (body: object, path = "/v1/responses"): Promise<Response> =>
  await scene.server.post(path, { model: "far", ...body })
const respond = async (body: object): Promise<ResponseObject> =>
  ResponseObject.parse(await (await post(body)).json())
const eventsOf = (text: string): ResponseEvent[] =>
  text
    .split("\n\n")
    .flatMap((block) =>
      block === "" ? [] : [ResponseEvent.parse(JSON.parse(block.split("data: ")[1] ?? ""))],
    )

describe("a recorded turn of Codex", () => {
  test("over HTTP: the call, its result, the answer; web_search is dropped and told", async () => {
    const [first, second] = recording.http
    const begun = await post({ ...first, tools: recording.tools })
    expect(begun.headers.get("x-umpire-tools-dropped")).toBe("web_search")
    const called = eventsOf(await begun.text()).at(-1)
    expect(called?.type === "response.completed" && called.response.output).toMatchObject([
      { type: "function_call", ...call },
    ])
    const ended = eventsOf(await (await post({ ...second, tools: recording.tools })).text()).at(-1)
    expect(ended?.type === "response.completed" && ended.response.output).toMatchObject([
      { type: "message", content: [{ text: "The file says hello." }] },
    ])
    const names = scene.upstream.requests.at(-1)?.tools?.map((tool) => tool.function.name)
    expect(names).toContain("multi_agent_v1__spawn_agent")
    expect(names).not.toContain("web_search")
  })

  test("over a WebSocket: warmed up, continued by the ids it was given", async () => {
    const socket = new WebSocket(`${scene.server.url.replace("http", "ws")}/v1/responses`, {
      headers: {
        authorization: `Bearer ${scene.server.key}`,
        "openai-beta": "responses_websockets=2026-02-06",
      },
    })
    const messages: string[] = []
    socket.on("message", (text: Buffer) => messages.push(text.toString()))
    await once(socket, "open")
    let previous: string | undefined
    const outputs: unknown[] = []
    for (const message of recording.socket) {
      // The one id that the recording cannot know.
      const sent = { ...message, tools: recording.tools, previous_response_id: previous }
      const input = (message["input"] as Record<string, unknown>[]).map((item) =>
        item["type"] === "function_call_output" ? { ...item, call_id: callIdOf(outputs) } : item,
      )
      socket.send(JSON.stringify({ ...sent, input }))
      for (;;) {
        await expect.poll(() => messages.length).toBeGreaterThan(0)
        const event = ResponseEvent.parse(JSON.parse(messages.shift() ?? ""))
        if (event.type !== "response.completed") continue
        previous = event.response.id
        outputs.push(event.response.output)
        break
      }
    }
    socket.close()
    expect(outputs).toMatchObject([
      [],
      [{ type: "function_call", ...call }],
      [{ type: "message", content: [{ text: "The file says hello." }] }],
    ])
  })
})

const callIdOf = (outputs: readonly unknown[]): unknown =>
  (outputs.at(-1) as { call_id?: unknown }[])[0]?.call_id

const spawn = { type: "function", name: "spawn", parameters: { type: "object" } }
const patch = { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "x" } }
const crew = { type: "namespace", name: "crew", description: "Others", tools: [spawn, patch] }

describe("tools", () => {
  test("calls of flattened functions and custom tools come back as they were offered, and are understood again", async () => {
    next = {
      calls: [
        { name: "crew__spawn", arguments: "{}" },
        { name: "crew__patch", arguments: '{"input":"*** begin"}' },
      ],
    }
    const response = await post({ input: "Go", tools: [crew], stream: true })
    const events = eventsOf(await response.text())
    const last = events.at(-1)
    if (last?.type !== "response.completed") throw new Error("it did not complete")
    const { output, id, tools } = last.response
    expect(output).toMatchObject([
      { type: "function_call", namespace: "crew", name: "spawn", arguments: "{}" },
      { type: "custom_tool_call", namespace: "crew", name: "patch", input: "*** begin" },
    ])
    expect(events.map(({ type }) => type)).toContain("response.custom_tool_call_input.done")
    expect(tools).toMatchObject([
      { type: "namespace", name: "crew", tools: [{ name: "spawn" }, { name: "patch" }] },
    ])
    next = { text: "Done." }
    const results = output.map((item) => ({
      type: `${item.type}_output`,
      call_id: "call_id" in item ? item.call_id : "",
      output: "ok",
    }))
    await respond({ input: results, previous_response_id: id, tools: [crew] })
    next = null
    expect(scene.upstream.requests.at(-1)?.messages.slice(1)).toMatchObject([
      {
        role: "assistant",
        tool_calls: [
          { function: { name: "crew__spawn" } },
          { function: { name: "crew__patch", arguments: '{"input":"*** begin"}' } },
        ],
      },
      { role: "tool", content: "ok" },
      { role: "tool", content: "ok" },
    ])
  })

  const search = { type: "web_search" }
  test.each<[string, object, string]>([
    ["a hosted tool that is demanded", { tools: [search], tool_choice: search }, "unsupported_parameter"],
    ["any tool, of none that can run", { tools: [search], tool_choice: "required" }, "invalid_request"],
    ["a tool of an unknown type", { tools: [{ type: "nonsense" }] }, "invalid_request"],
    ["one name twice", { tools: [crew, { ...spawn, name: "crew__spawn" }] }, "invalid_request"],
    [
      "one function too many in namespaces",
      {
        tools: [0, 1].map((n) => ({
          type: "namespace",
          name: `n${n}`,
          tools: Array.from({ length: 64 + n }, (_, index) => ({ ...spawn, name: `f${index}` })),
        })),
      },
      "invalid_request",
    ],
    [
      "an image",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "data:," }] }] },
      "invalid_request",
    ],
  ])("%s is refused", async (name, body, code) => {
    const response = await post({ input: "x", ...body })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([response.status, error.code]).toEqual([422, code])
    if (name === "an image") expect(error.message).toMatch(/images, audio and files are not supported/)
  })
})

const comparable = (events: ResponseEvent[]) =>
  events.map((event) => (event.sequence_number < 2 ? event.type : event))

describe("beside responses", () => {
  test("input tokens are those that the response then uses, on a local model", async () => {
    const body = { model: "umpire-chat", input: "How long is this?", instructions: "Be brief." }
    const { input_tokens, object } = await client().responses.inputTokens.count(body)
    const { usage } = await client().responses.create({ ...body, max_output_tokens: 4, store: false })
    expect([object, input_tokens]).toEqual(["response.input_tokens", usage?.input_tokens])
  })

  test("a compacted conversation is gone on with: the user's messages stay, the summary reaches the model", async () => {
    next = { text: "They like blue." }
    const input = [
      { role: "user" as const, content: "I like blue." },
      { role: "assistant" as const, content: "Noted." },
    ]
    const compacted = await client().responses.compact({ model: "far", input })
    expect(compacted.object).toBe("response.compaction")
    expect(compacted.output.map(({ type }) => type)).toEqual(["message", "compaction"])
    expect(compacted.usage.total_tokens).toBeGreaterThan(0)
    next = { text: "Blue." }
    await respond({ input: [...compacted.output, { role: "user", content: "Which colour?" }] })
    next = null
    const said = scene.upstream.requests.at(-1)?.messages.map(({ role, content }) => [role, content])
    expect(said).toEqual([
      ["user", "I like blue."],
      ["user", expect.stringContaining("They like blue.") as string],
      ["user", "Which colour?"],
    ])
    const foreign = await post({ input: [{ type: "compaction", encrypted_content: "gAAAA" }] })
    expect(foreign.status).toBe(422)
  })

  test("a stored response is streamed again, event by event, from any number on", async () => {
    next = { reasoning: "Let me think about it.", text: "It is a fine day today.", calls: [call] }
    const tools = recording.tools.slice(0, 1)
    const first = eventsOf(await (await post({ input: "Hello", tools, stream: true })).text())
    next = null
    const last = first.at(-1)
    const id = last && "response" in last ? last.response.id : ""
    const again = async (query: string): Promise<ResponseEvent[]> => {
      const response = await fetch(`${scene.server.url}/v1/responses/${id}?stream=true${query}`, {
        headers: { authorization: `Bearer ${scene.server.key}` },
      })
      expect(response.status).toBe(200)
      return eventsOf(await response.text())
    }
    // What was used so far is known at the end only.
    expect(comparable(await again(""))).toEqual(comparable(first))
    expect(await again("&starting_after=7")).toEqual(first.slice(8))
    expect(await again(`&starting_after=${first.length - 1}`)).toEqual([])
    const stream = await client().responses.retrieve(id, { stream: true, starting_after: 3 })
    let seen = 4
    for await (const event of stream) expect(event.sequence_number).toBe(seen++)
    expect(seen).toBe(first.length)
  })

  test.each([
    ["GET", "/v1/models?nonsense=1"],
    ["GET", "/v1/responses/resp_1?steam=true"],
    ["POST", "/v1/responses?api-version=1"],
  ])("%s %s is refused for its query", async (method, path) => {
    const response = await fetch(scene.server.url + path, {
      method,
      headers: { authorization: `Bearer ${scene.server.key}`, "content-type": "application/json" },
      ...(method === "POST" ? { body: "{}" } : {}),
    })
    expect(response.status).toBe(422)
    expect(await response.json()).toMatchObject({ error: { code: "unknown_parameter" } })
  })
})
