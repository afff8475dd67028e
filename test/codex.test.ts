/** What Codex sends in its default configuration, recorded from its binary, and what else the Responses API has for it. */
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent, OpenAIProvider, Runner, applyPatchTool, shellTool } from "@openai/agents"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { ResponseEvent, ResponseObject } from "../src/contract/openai/responses.ts"
import { type AgentsScene, hasResult, openAgentsScene } from "./agents-scene.ts"
import type { UpstreamAnswer, UpstreamRequest } from "./upstream.ts"

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
let next: UpstreamAnswer | ((request: UpstreamRequest) => UpstreamAnswer) | null = null
let scene: AgentsScene
beforeAll(async () => {
  scene = await openAgentsScene(
    (request) => {
      if (typeof next === "function") return next(request)
      return next ?? (hasResult(request) ? { text: "The file says hello." } : { calls: [call] })
    },
    [],
    [{ sku: "far" }, { sku: "frail" }],
  )
})
afterAll(async () => {
  await scene.close()
})

const client = (): OpenAI =>
  new OpenAI({ apiKey: scene.server.key, baseURL: `${scene.server.url}/v1`, maxRetries: 0 })
const offered = (): string[] => scene.upstream.requests.at(-1)?.tools?.map((tool) => tool.function.name) ?? []
const update = (effort: string) => ({ type: "configuration_update", reasoning: { effort } })
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
    expect([response.status, error.code]).toEqual([400, code])
    if (name === "an image") expect(error.message).toMatch(/far does not read images/)
  })
})

/** What each type of item comes to: a schema of OpenAI's own client that gets a new one does not compile here. */
type ItemType = NonNullable<Exclude<OpenAI.Responses.ResponseInputItem["type"], null>>
const itemTypes: Record<ItemType, "read" | "dropped"> = {
  message: "read",
  function_call: "read",
  function_call_output: "read",
  custom_tool_call: "read",
  custom_tool_call_output: "read",
  additional_tools: "read",
  tool_search_call: "read",
  tool_search_output: "read",
  configuration_update: "read",
  compaction: "read",
  compaction_trigger: "read",
  reasoning: "read",
  item_reference: "read",
  file_search_call: "dropped",
  computer_call: "dropped",
  computer_call_output: "dropped",
  web_search_call: "dropped",
  image_generation_call: "dropped",
  code_interpreter_call: "dropped",
  local_shell_call: "read",
  local_shell_call_output: "read",
  shell_call: "read",
  shell_call_output: "read",
  apply_patch_call: "read",
  apply_patch_call_output: "read",
  mcp_list_tools: "dropped",
  mcp_approval_request: "dropped",
  mcp_approval_response: "dropped",
  mcp_call: "dropped",
  program: "dropped",
  program_output: "dropped",
}

const toolTypes: Record<OpenAI.Responses.Tool["type"], "read" | "dropped"> = {
  function: "read",
  custom: "read",
  namespace: "read",
  // By the client; OpenAI's own search is dropped.
  tool_search: "read",
  file_search: "dropped",
  computer: "dropped",
  computer_use_preview: "dropped",
  web_search: "dropped",
  web_search_2025_08_26: "dropped",
  web_search_preview: "dropped",
  web_search_preview_2025_03_11: "dropped",
  mcp: "dropped",
  code_interpreter: "dropped",
  programmatic_tool_calling: "dropped",
  image_generation: "dropped",
  local_shell: "read",
  // In the client's environment; in one of OpenAI's it is dropped.
  shell: "read",
  apply_patch: "read",
}

describe("items beside messages and calls", () => {
  const extra = { type: "additional_tools", role: "developer", tools: [crew] }

  test("additional_tools are offered, also by those who continue, and their calls come back as they were offered", async () => {
    next = { calls: [{ name: "crew__patch", arguments: '{"input":"*** begin"}' }] }
    const { id, output } = await respond({ input: [extra, { role: "user", content: "Go" }] })
    expect(output).toMatchObject([{ type: "custom_tool_call", namespace: "crew", name: "patch" }])
    expect(offered()).toEqual(["crew__spawn", "crew__patch"])
    const counted = await post(
      { input: [extra, { role: "user", content: "Go" }] },
      "/v1/responses/input_tokens",
    )
    expect(counted.status).toBe(200)
    next = { text: "Done." }
    const [called] = output
    const call_id = called && "call_id" in called ? called.call_id : ""
    const result = { type: "custom_tool_call_output", call_id, output: "ok" }
    // A later list replaces tools of the same name.
    const again = { ...extra, tools: [{ ...crew, tools: [{ ...spawn, description: "New" }] }] }
    await respond({ previous_response_id: id, input: [result, again] })
    expect(offered()).toEqual(["crew__spawn", "crew__patch"])
    expect(scene.upstream.requests.at(-1)?.tools?.[0]).toMatchObject({ function: { description: "New" } })
  })

  test("tools alone are no input", async () => {
    expect((await post({ input: [extra] })).status).toBe(400)
  })

  test("a search that the client runs is called, and what it finds is offered", async () => {
    const parameters = { type: "object", properties: { query: { type: "string" } } }
    const search = { type: "tool_search", execution: "client", description: "Find tools", parameters }
    next = { calls: [{ name: "tool_search", arguments: '{"query":"crew"}' }] }
    const streamed = await post({ input: "Go", tools: [search], stream: true })
    expect(streamed.headers.get("x-umpire-tools-dropped")).toBeNull()
    const last = eventsOf(await streamed.text()).at(-1)
    if (last?.type !== "response.completed") throw new Error("it did not complete")
    const [called] = last.response.output
    expect(called).toMatchObject({
      type: "tool_search_call",
      execution: "client",
      arguments: { query: "crew" },
      status: "completed",
    })
    next = { text: "Found." }
    const call_id = called && "call_id" in called ? called.call_id : ""
    const found = { type: "tool_search_output", call_id, execution: "client", tools: [crew] }
    const whole = { input: [{ role: "user", content: "Go" }, called, found], tools: [search] }
    await respond(whole)
    expect(offered()).toEqual(["tool_search", "crew__spawn", "crew__patch"])
    expect(scene.upstream.requests.at(-1)?.messages.slice(1)).toMatchObject([
      { tool_calls: [{ function: { name: "tool_search", arguments: '{"query":"crew"}' } }] },
      { role: "tool", tool_call_id: call_id, content: expect.stringContaining("crew__patch") as string },
    ])
    const hosted = await post({ input: "Go", tools: [{ type: "tool_search" }] })
    expect(hosted.headers.get("x-umpire-tools-dropped")).toBe("tool_search")
  })

  test("a trigger is answered with the conversation in short, which takes its place", async () => {
    next = { reasoning: "Hm.", text: "They like blue." }
    const trigger = { type: "compaction_trigger" }
    const said = { role: "user", content: "I like blue." }
    const events = eventsOf(await (await post({ input: [said, trigger], stream: true })).text())
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.compaction.compacting",
      "response.output_item.done",
      "response.completed",
    ])
    const last = events.at(-1)
    if (last?.type !== "response.completed") throw new Error("it did not complete")
    const { output, id } = last.response
    expect(output).toMatchObject([{ type: "compaction" }])
    const again = await fetch(`${scene.server.url}/v1/responses/${id}?stream=true`, {
      headers: { authorization: `Bearer ${scene.server.key}` },
    })
    expect(comparable(eventsOf(await again.text()))).toEqual(comparable(events))
    const asked = { role: "user", content: "Which colour?" }
    const contents = (): unknown[] =>
      scene.upstream.requests.at(-1)?.messages.map(({ content }) => content) ?? []
    const summary = expect.stringContaining("They like blue.") as string
    for (const body of [{ input: [...output, asked] }, { previous_response_id: id, input: [asked] }]) {
      await respond(body)
      expect(contents()).toEqual([summary, "Which colour?"])
    }
    expect((await post({ input: [trigger, asked] })).status).toBe(400)
  })

  test("the last configuration of the conversation holds", async () => {
    next = { text: "{}" }
    const format = { type: "json_schema", name: "any", schema: { type: "object" } }
    await respond({
      input: [
        { role: "user", content: "Go" },
        update("low"),
        update("high"),
        { type: "configuration_update", text: { format } },
      ],
      reasoning: { effort: "medium" },
    })
    expect(scene.upstream.requests.at(-1)).toMatchObject({
      reasoning_effort: "high",
      response_format: { type: "json_schema" },
    })
  })

  const dropped = Object.entries(itemTypes).flatMap(([type, how]) => (how === "dropped" ? [type] : []))
  test("what only OpenAI's models read is left out and named, each type once", async () => {
    next = { text: "Fine." }
    const items = [...dropped, "acme:verdict"].flatMap((type) => [{ type }, { type, id: "x" }])
    const response = await post({ input: [...items, { role: "user", content: "Go" }] })
    expect(response.status).toBe(200)
    expect(response.headers.get("x-umpire-items-dropped")).toBe([...dropped, "acme:verdict"].join(", "))
    const types = Object.entries(toolTypes).flatMap(([type, how]) => (how === "dropped" ? [type] : []))
    const tools = [...types, "acme:judge"].map((type) => ({ type, anything: 1 }))
    const offered = await post({ input: "Go", tools })
    expect([offered.status, offered.headers.get("x-umpire-tools-dropped")]).toEqual([
      200,
      [...types, "acme:judge"].join(", "),
    ])
    expect(scene.upstream.requests.at(-1)?.messages).toMatchObject([{ role: "user", content: "Go" }])
    expect((await post({ input: [{ type: "nonsense" }] })).status).toBe(400)
    next = null
  })
})

const calling = (name: string, given: object): UpstreamAnswer => ({
  calls: [{ name, arguments: JSON.stringify(given) }],
})
/** What the tools of its conversation said. */
const resultsIn = (request: UpstreamRequest): unknown[] =>
  request.messages.filter(({ role }) => role === "tool").map(({ content }) => content)

describe("tools that the client runs", () => {
  const commands = { commands: ["ls"], timeout_ms: 1_000, max_output_length: null }
  const creation = { type: "create_file", path: "a.txt", diff: "+hello" }
  const types = ["shell", "local_shell", "apply_patch"].map((type) => ({ type }))

  test("OpenAI Agents' shell and editor run what the model asks for, and it reads what they did", async () => {
    const ran: unknown[] = []
    const outcome = { type: "exit" as const, exitCode: 2 }
    const edited = async ({ type, path }: { type: string; path: string }) => {
      ran.push([type, path])
      return await Promise.resolve({ status: "completed" as const, output: "made" })
    }
    const shell = shellTool({
      shell: {
        run: async ({ commands: asked }) => {
          ran.push(asked)
          return await Promise.resolve({ output: [{ stdout: "none", stderr: "oh", outcome }] })
        },
      },
    })
    const editor = applyPatchTool({
      editor: { createFile: edited, updateFile: edited, deleteFile: edited },
    })
    next = (request) =>
      [
        calling("shell", commands),
        calling("apply_patch", creation),
        calling("apply_patch", { type: "delete_file", path: "b.txt", diff: "" }),
      ][resultsIn(request).length] ?? { text: "Done." }
    const provider = new OpenAIProvider({
      apiKey: scene.server.key,
      baseURL: `${scene.server.url}/v1`,
      useResponses: true,
    })
    const agent = new Agent({ name: "assistant", model: "far", tools: [shell, editor] })
    const { finalOutput } = await new Runner({ modelProvider: provider, tracingDisabled: true }).run(
      agent,
      "Go",
    )
    await provider.close()
    expect([finalOutput, ran]).toEqual([
      "Done.",
      [["ls"], ["create_file", "a.txt"], ["delete_file", "b.txt"]],
    ])
    const last = scene.upstream.requests.at(-1)
    expect(last?.tools).toMatchObject([
      { function: { name: "shell", strict: true } },
      { function: { name: "apply_patch", strict: true } },
    ])
    expect(last && resultsIn(last)).toEqual(["none\noh\nexit code 2", "completed\nmade", "completed\nmade"])
    expect(last?.messages.filter(({ tool_calls }) => tool_calls)).toMatchObject([
      { tool_calls: [{ function: { name: "shell" } }] },
      { tool_calls: [{ function: { name: "apply_patch", arguments: JSON.stringify(creation) } }] },
      { tool_calls: [{ function: { name: "apply_patch" } }] },
    ])
  })

  test.each([
    ["shell", commands, { type: "shell_call", action: commands, environment: { type: "local" } }],
    [
      "local_shell",
      { command: ["ls"], timeout_ms: null, working_directory: "/tmp" },
      { type: "local_shell_call", action: { type: "exec", command: ["ls"], env: {} } },
    ],
    ["apply_patch", creation, { type: "apply_patch_call", operation: creation }],
  ])("%s is an item of its own, streamed, stored and streamed again", async (name, given, item) => {
    next = calling(name, given)
    const streamed = await post({ input: "Go", tools: types, tool_choice: { type: name }, stream: true })
    expect(streamed.headers.get("x-umpire-tools-dropped")).toBeNull()
    const events = eventsOf(await streamed.text())
    const [added, done, last] = events.slice(-3)
    expect([added, done]).toMatchObject([
      { type: "response.output_item.added", item: { type: item.type, status: "in_progress" } },
      { type: "response.output_item.done", item: { ...item, status: "completed" } },
    ])
    if (last?.type !== "response.completed") throw new Error("it did not complete")
    expect(last.response.tools).toEqual(types)
    const again = await fetch(`${scene.server.url}/v1/responses/${last.response.id}?stream=true`, {
      headers: { authorization: `Bearer ${scene.server.key}` },
    })
    expect(comparable(eventsOf(await again.text()))).toEqual(comparable(events))
    expect(scene.upstream.requests.at(-1)?.["tool_choice"]).toMatchObject({ function: { name } })
  })

  test("what the model cannot have meant is an error, and what was cut is not whole", async () => {
    for (const [name, given] of [
      ["shell", { command: "ls" }],
      ["apply_patch", { type: "rename_file", path: "a", diff: "" }],
    ] as const) {
      next = calling(name, given)
      const response = await post({ model: "frail", input: "Go", tools: types })
      expect([response.status, await response.json()]).toMatchObject([
        500,
        { error: { code: "inference_failed" } },
      ])
    }
    next = { ...calling("shell", commands), finish: "length" }
    const cut = await respond({ input: "Go", tools: types })
    expect(cut).toMatchObject({
      status: "incomplete",
      output: [{ type: "shell_call", status: "incomplete", action: { commands: [] } }],
    })
  })

  test("a shell in a container of OpenAI's is left out and named, and no result goes without its call", async () => {
    next = { text: "Fine." }
    const environment = { type: "container_auto" }
    const response = await post({ input: "Go", tools: [{ type: "shell", environment }] })
    expect(response.headers.get("x-umpire-tools-dropped")).toBe("shell")
    const output = { type: "local_shell_call_output", id: "call_1", output: '{"output":"ok"}' }
    expect((await post({ input: [output] })).status).toBe(400)
    const called = { type: "local_shell_call", call_id: "call_1", action: { type: "exec", command: ["ls"] } }
    await respond({ input: [called, output] })
    expect(scene.upstream.requests.at(-1)?.messages).toMatchObject([
      { role: "assistant", tool_calls: [{ id: "call_1", function: { name: "local_shell" } }] },
      { role: "tool", tool_call_id: "call_1", content: '{"output":"ok"}' },
    ])
    next = null
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
    expect(foreign.status).toBe(400)
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
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: "unknown_parameter" } })
  })
})
