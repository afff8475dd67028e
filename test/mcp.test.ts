/** The MCP server over HTTP and standard input, with the official client library and the published conformance package. */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { type Server, createServer, request as httpRequest } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { fileBytesMax, fileRowsMax } from "../src/cli/mcp-files.ts"
import { createClient } from "../src/contract/client.ts"
import { labelledRowsMax } from "../src/contract/mcp.ts"
import { decideQuestionSet } from "../src/contract/question-sets/sets.ts"
import { toolName } from "../src/gateway/mcp/tools.ts"
import { readRecords } from "./gateways.ts"
import { makeOrganization } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"
import { testPackage } from "./test-packages.ts"

const root = join(import.meta.dirname, "..")
const letter = "My parcel is a week late and I want my money back."
const refund = {
  type: "predicate" as const,
  name: "refund",
  instructions: "Does the customer want money back?",
}
const team = {
  type: "choice" as const,
  name: "team",
  instructions: "Which team should answer?",
  choices: [{ value: "billing" }, { value: "shipping" }],
}

let server: TestServer
let folder: string
let agent: Client
let otherKey: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-mcp-"))
  server = await startServer()
  const client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const org = (await client.listOrganizations())[0]?.id ?? ""
  const model = "umpire-decide"
  const body = { model, description: "Sorts letters of customers.", questions: [refund, team] }
  for (const name of ["letters", "with.dots", "draft"])
    await client.createQuestionSet({ params: { org_id: org }, body: { name, ...body } })
  await client.deleteQuestionSetLabel({ params: { org_id: org, set_id: "draft", label: "production" } })
  otherKey = (await makeOrganization(server, { name: "Other", owner: "other@example.com" })).secret
  agent = await connect(server.key)
})
afterAll(async () => {
  await agent.close()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Requests that a busy machine may take long to answer; the client gives up after a minute unless told. */
const patient = { timeout: 60_000 }

async function connect(key: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }),
    patient,
  )
  return client
}

const names = async (client: Client): Promise<string[]> =>
  (await client.listTools(undefined, patient)).tools.map(({ name }) => name)

const post = async (message: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  await server.post("/mcp", message, headers)
const ping = { jsonrpc: "2.0", id: 1, method: "ping" }

describe("over HTTP", () => {
  test("there is a tool for each published set, with its questions in its schema", async () => {
    const { tools } = await agent.listTools(undefined, patient)
    const dotted = toolName("with.dots")
    expect(tools.map(({ name }) => name)).toEqual([
      "decide",
      "label_file",
      "list_sets",
      "ask_letters",
      dotted,
    ])
    expect(dotted).toMatch(/^ask_with_dots_[0-9a-f]{8}$/)
    const tool = tools.find(({ name }) => name === "ask_letters")
    expect(tool?.description).toContain("Sorts letters of customers.")
    expect(tool?.description).toContain("- team: Which team should answer? (billing, shipping)")
    expect(tool?.inputSchema.properties?.["questions"]).toMatchObject({ items: { enum: ["refund", "team"] } })
  })

  test("decide and a set answer what their endpoints answer, and are recorded as such", async () => {
    const questions = [refund]
    const decided = await agent.callTool({ name: "decide", arguments: { input: letter, questions } }, patient)
    const plain = await server.post("/v1/decisions", { model: "umpire-decide", input: letter, questions })
    expect(decided.structuredContent).toEqual(await plain.json())
    const asked = await agent.callTool(
      {
        name: "ask_letters",
        arguments: { input: letter, questions: ["refund"] },
      },
      patient,
    )
    expect(asked.structuredContent).toMatchObject({
      set: "letters",
      version: 1,
      answers: [{ question: "refund", verdict: "yes", abstained: false }],
    })
    const records = await readRecords(server.dataDirectory)
    expect(records.at(-1)).toMatchObject({
      call_source: "decisions",
      question_set: "letters",
      result: "success",
    })
  })

  test("a file's rows are labelled up to the limit, and not one more", async () => {
    const label = async (rows: number) =>
      await agent.callTool(
        {
          name: "label_file",
          arguments: { set: "letters", content: Array.from({ length: rows }, () => letter).join("\n") },
        },
        patient,
      )
    const content = `text,other\n"${letter}",1\n"The sun shines.",2\n`
    const given = { set: "letters", content, format: "csv" }
    const { structuredContent } = await agent.callTool({ name: "label_file", arguments: given }, patient)
    expect(structuredContent).toMatchObject({
      rows: [
        { row: 0, answers: [{ verdict: "yes" }, {}] },
        { row: 1, answers: [{ verdict: "no" }, {}] },
      ],
    })
    const over = await label(labelledRowsMax + 1)
    expect(over).toMatchObject({ isError: true })
    expect(JSON.stringify(over.content)).toContain(`1 to ${labelledRowsMax}`)
  })

  test("sets and guides are resources", async () => {
    const { resources } = await agent.listResources(undefined, patient)
    const uris = resources.map(({ uri }) => uri)
    expect(uris).toEqual(expect.arrayContaining(["umpire://docs/classification.md", "umpire://sets/letters"]))
    expect(uris).not.toContain("umpire://sets/draft")
    const [set] = (await agent.readResource({ uri: "umpire://sets/letters" }, patient)).contents
    expect(JSON.parse(set && "text" in set ? set.text : "")).toMatchObject({ name: "letters", version: 1 })
    const [page] = (await agent.readResource({ uri: "umpire://docs/errors.md" }, patient)).contents
    expect(page && "text" in page ? page.text : "").toBe(
      readFileSync(join(root, "docs", "errors.md"), "utf8"),
    )
    for (const uri of ["umpire://docs/../package.json", "umpire://sets/draft", "file:///etc/passwd"])
      await expect(agent.readResource({ uri }, patient)).rejects.toThrow("Resource not found")
  })

  test.each([
    ["decide", { input: letter }, "invalid_request"],
    ["decide", { input: letter, questions: [refund], extra: 1 }, "no argument extra"],
    ["decide", { input: letter, questions: [refund], model: "nobody" }, "unknown_model"],
    ["ask_letters", { input: " " }, "input must be a text"],
    ["ask_letters", { input: letter, questions: ["nobody"] }, "has no question"],
    ["ask_letters", { input: "half a pair: \ud83d" }, "half of a surrogate pair"],
    ["ask_letters", { input: letter, questions: ["x".repeat(65)] }, "questions.0"],
    ["label_file", { set: "letters", content: '"half a pair: \\ud83d"', format: "jsonl" }, "surrogate pair"],
    ["label_file", { set: "nobody", content: letter }, "not_found"],
    ["label_file", { set: "letters", content: "{", format: "jsonl" }, "not JSON Lines"],
  ])("%s of %j is a result that says what is wrong", async (name, given, sentence) => {
    const result = await agent.callTool({ name, arguments: given }, patient)
    expect(result.isError).toBe(true)
    expect(JSON.stringify(result.content)).toContain(sentence)
  })

  test("a set is asked about as long a text as its endpoint takes, and not one byte more", async () => {
    const input = "a".repeat(decideQuestionSet.bodyBytesMax + 1)
    const result = await agent.callTool({ name: "ask_letters", arguments: { input } }, patient)
    expect(result.isError).toBe(true)
    expect(JSON.stringify(result.content)).toContain(`over ${decideQuestionSet.bodyBytesMax} bytes`)
  })

  test("an organization sees and asks only its own sets", async () => {
    const other = await connect(otherKey)
    expect(await names(other)).toEqual(["decide", "label_file", "list_sets"])
    await expect(
      other.callTool({ name: "ask_letters", arguments: { input: letter } }, patient),
    ).rejects.toThrow("Unknown tool")
    await expect(other.readResource({ uri: "umpire://sets/letters" }, patient)).rejects.toThrow(
      "Resource not found",
    )
    const labelled = await other.callTool(
      {
        name: "label_file",
        arguments: { set: "letters", content: letter },
      },
      patient,
    )
    expect(labelled.isError).toBe(true)
    await other.close()
  })

  test.each([
    ["no key", ping, { authorization: "" }, 401],
    ["a page of another site", ping, { origin: "https://evil.example" }, 403],
    ["a sandboxed page", ping, { origin: "null" }, 403],
    ["a page of this machine", ping, { origin: "http://localhost:6274" }, 200],
    ["another version", ping, { "mcp-protocol-version": "1999-01-01" }, 400],
    ["a known version", ping, { "mcp-protocol-version": "2025-06-18" }, 200],
    ["a body that is not JSON", "{", {}, 400],
    ["several messages at once", [ping], {}, 400],
    ["JSON that nests too deep", "[".repeat(300), {}, 400],
    ["a body over the limit", " ".repeat(4 * 1024 * 1024 + 1), {}, 413],
    ["a notification", { jsonrpc: "2.0", method: "notifications/initialized" }, {}, 202],
  ])("%s is answered %#", async (_, message, headers, status) => {
    const response = await post(message, headers)
    expect(response.status).toBe(status)
    if (status >= 400)
      expect(await response.json()).toEqual({
        jsonrpc: "2.0",
        error: {
          code: expect.any(Number) as number,
          message: expect.any(String) as string,
          data: expect.anything() as unknown,
        },
      })
  })

  test.each(["GET", "DELETE"])(
    "%s is 405: there are no streams and no sessions to hold open",
    async (method) => {
      const headers = { authorization: `Bearer ${server.key}`, accept: "text/event-stream" }
      const response = await fetch(`${server.url}/mcp`, { method, headers })
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"])
    },
  )

  describe("in the revision without a handshake", () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    }
    const listing = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: meta } }
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" }

    test("the official client finds out what there is, asks a set and reads it", async () => {
      const client = new Client(
        { name: "test", version: "1" },
        { versionNegotiation: { mode: { pin: "2026-07-28" } } },
      )
      const requestInit = { headers: { authorization: `Bearer ${server.key}` } }
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }),
        patient,
      )
      expect(client.getServerVersion()).toMatchObject({ name: "umpire" })
      expect(await names(client)).toContain("ask_letters")
      const asked = { name: "ask_letters", arguments: { input: letter, questions: ["refund"] } }
      expect((await client.callTool(asked, patient)).structuredContent).toMatchObject({ set: "letters" })
      const { contents } = await client.readResource({ uri: "umpire://sets/letters" }, patient)
      expect(contents).toHaveLength(1)
      await client.close()
    })

    test.each([
      [
        "another version",
        { ...meta, "io.modelcontextprotocol/protocolVersion": "2030-01-01" },
        {},
        400,
        -32_022,
      ],
      ["no version in the message", {}, {}, 400, -32_020],
      ["another method in the header", meta, { "mcp-method": "tools/call" }, 400, -32_020],
      [
        "no capabilities",
        { ...meta, "io.modelcontextprotocol/clientCapabilities": undefined },
        {},
        400,
        -32_602,
      ],
    ])("%s is refused with its code", async (_, _meta, more, status, code) => {
      const response = await post({ ...listing, params: { _meta } }, { ...headers, ...more })
      expect([response.status, await response.json()]).toMatchObject([status, { id: 1, error: { code } }])
    })

    test("what was removed is 404 with JSON-RPC's code", async () => {
      const response = await post({ ...listing, method: "ping" }, { ...headers, "mcp-method": "ping" })
      expect([response.status, await response.json()]).toMatchObject([
        404,
        { id: 1, error: { code: -32_601 } },
      ])
    })
  })

  test("a method that is not there has JSON-RPC's code", async () => {
    const answered = await (await post({ ...ping, method: "prompts/list" })).json()
    expect(answered).toMatchObject({ id: 1, error: { code: -32_601 } })
  })

  test("the conformance package passes every scenario for servers that applies", async () => {
    const baseline = join(folder, "conformance.yaml")
    writeFileSync(baseline, JSON.stringify({ server: Object.values(notApplicable).flat() }))
    const conformance = await testPackage("@modelcontextprotocol/conformance", "0.1.16")
    const proxy = await startProxy()
    try {
      const { port } = proxy.address() as AddressInfo
      const options = [
        "--url",
        `http://localhost:${port}/mcp`,
        "--suite",
        "all",
        "--expected-failures",
        baseline,
      ]
      const command = join(conformance, "dist", "index.js")
      // Also fails where one of those that do not apply passes.
      const run = promisify(execFile)(process.execPath, [command, "server", ...options], { cwd: folder })
      const { stdout } = await run.catch((error: { stdout: string }) => error)
      expect(stdout).toContain("Baseline check passed")
      for (const scenario of [
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "dns-rebinding-protection",
      ])
        expect(stdout).toMatch(new RegExp(`✓ ${scenario}: \\d+ passed, 0 failed`))
    } finally {
      proxy.closeAllConnections()
      await new Promise((resolve) => proxy.close(resolve))
    }
  })
})

/** Scenarios of the conformance package that cannot pass, by the reason. */
const notApplicable = {
  "calls a tool that only the protocol's example server has": [
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "json-schema-2020-12",
  ],
  "reads a resource or asks for a prompt that only the protocol's example server has": [
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
  ],
  "asks for a capability that the server does not declare": [
    "logging-set-level",
    "completion-complete",
    "prompts-list",
    "resources-subscribe",
    "resources-unsubscribe",
  ],
  "needs a stream on which the server asks or tells the client something": [
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "server-sse-polling",
    "server-sse-multiple-streams",
  ],
}

/** Adds the key, which the conformance package has no option for, and changes nothing else. */
async function startProxy(): Promise<Server> {
  const proxy = createServer((incoming, outgoing) => {
    const target = new URL(incoming.url ?? "/", server.url)
    const headers = { ...incoming.headers, authorization: `Bearer ${server.key}` }
    const onward = httpRequest(target, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => proxy.listen(0, "localhost", resolve))
  return proxy
}

describe("over standard input", () => {
  let local: Client
  beforeAll(async () => {
    local = new Client({ name: "test", version: "1" })
    await local.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [join(root, "bin", "umpire.js"), "mcp"],
        env: { ...process.env, UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key },
        cwd: folder,
      }),
      patient,
    )
  })
  afterAll(async () => {
    await local.close()
  })
  const labelFile = async (given: Record<string, unknown>) =>
    await local.callTool({ name: "label_file", arguments: { set: "letters", ...given } }, patient)

  test("the same tools are there, and label_file takes a path", async () => {
    const { tools } = await local.listTools(undefined, patient)
    expect(tools.map(({ name }) => name)).toEqual(await names(agent))
    expect(tools.find(({ name }) => name === "label_file")?.inputSchema.required).toEqual(["set", "path"])
    const asked = await local.callTool({ name: "ask_letters", arguments: { input: letter } }, patient)
    expect(asked.structuredContent).toMatchObject({ set: "letters" })
  })

  test("a local file is labelled in parts, and the answers are written beside it", async () => {
    const rows = Array.from({ length: labelledRowsMax + 2 }, (_, at) => ({
      text: at === 0 ? letter : `Row ${at}`,
    }))
    writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"))
    const labelled = await labelFile({ path: "rows.jsonl", output: "answers.jsonl" })
    expect(labelled.structuredContent).toMatchObject({ labelled: rows.length, output: "answers.jsonl" })
    const lines = readFileSync(join(folder, "answers.jsonl"), "utf8").trim().split("\n")
    expect(lines.map((line) => (JSON.parse(line) as { row: number }).row)).toEqual(rows.map((_, at) => at))
    const again = await labelFile({ path: "rows.jsonl", output: "answers.jsonl" })
    expect(again.isError).toBe(true)
  })

  test("what is outside the directory, missing or too large is not read", async () => {
    symlinkSync("/etc/hostname", join(folder, "link.txt"))
    writeFileSync(join(folder, "large.txt"), "a".repeat(fileBytesMax + 1))
    writeFileSync(join(folder, "many.txt"), "a\n".repeat(fileRowsMax + 1))
    const paths = [
      "/etc/hostname",
      "../etc/hostname",
      "link.txt",
      ".",
      "missing.txt",
      "large.txt",
      "many.txt",
    ]
    for (const path of paths) {
      const { isError, content } = await labelFile({ path })
      expect([path, isError]).toEqual([path, true])
      expect(JSON.stringify(content)).toContain("Cannot label the file")
    }
  })

  test("the server's refusal reaches the model", async () => {
    writeFileSync(join(folder, "one.txt"), letter)
    const refused = await local.callTool(
      {
        name: "label_file",
        arguments: { set: "nobody", path: "one.txt" },
      },
      patient,
    )
    expect(refused.isError).toBe(true)
    expect(JSON.stringify(refused.content)).toContain("not_found")
    await expect(local.callTool({ name: "nobody", arguments: {} }, patient)).rejects.toThrow("Unknown tool")
  })
})
