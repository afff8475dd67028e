import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { MessagesRequest } from "../anthropic/messages.ts"
import { ChatRequest } from "./chat.ts"
import { CompletionRequest } from "./completions.ts"
import { EmbeddingRequest } from "./embeddings.ts"
import { parametersOf } from "./parameters.ts"
import { ModerationRequest } from "./moderations.ts"
import { RerankRequest } from "./rerank.ts"
import { ResponseRequest } from "./responses.ts"

const guide = readFileSync(new URL("../../../docs/inference.md", import.meta.url), "utf8")
const requests = [
  ["Chat completions", ChatRequest],
  ["Completions", CompletionRequest],
  ["Responses", ResponseRequest],
  ["Embeddings", EmbeddingRequest],
  ["Messages", MessagesRequest],
] as const
const documented = [...requests, ["Rerank", RerankRequest], ["Moderations", ModerationRequest]] as const

test.each(documented)("the guide lists every parameter of %s with what is done with it", (title, request) => {
  const section = guide.split(`### ${title}\n`)[1]?.split("\n### ")[0] ?? ""
  const listed = section.split("\n").filter((line) => line.startsWith("| `"))
  const expected = parametersOf(request).map(
    ({ name, treatment, note }) => `| \`${name}\` | ${treatment} | ${note} |`,
  )
  expect(listed).toEqual(expected)
})

/** Where the client that is installed for tests names what it can send. */
const clientTypes = [
  ["chat/completions/completions.d.ts", "ChatCompletionCreateParamsBase", ChatRequest],
  ["completions.d.ts", "CompletionCreateParamsBase", CompletionRequest],
  ["responses/responses.d.ts", "ResponseCreateParamsBase", ResponseRequest],
  ["embeddings.d.ts", "EmbeddingCreateParams", EmbeddingRequest],
  ["moderations.d.ts", "ModerationCreateParams", ModerationRequest],
] as const

test.each(clientTypes)("every parameter that OpenAI's client has in %s is listed", (file, name, request) => {
  const folder = new URL("../../../node_modules/openai/resources/", import.meta.url)
  const types = readFileSync(new URL(file, folder), "utf8")
  const body = types.split(`export interface ${name} {\n`)[1]?.split("\n}")[0] ?? ""
  const sent = [...body.matchAll(/^ {4}(\w+)\??: /gm)].map(([, parameter]) => parameter)
  expect(sent).toContain("model")
  const listed = new Set(parametersOf(request).map((parameter) => parameter.name))
  expect(sent.filter((parameter) => !listed.has(parameter ?? ""))).toEqual([])
})

describe.each(requests)("%s", (_title, request) => {
  const valid: Record<string, unknown> = {
    model: "m",
    input: "x",
    messages: [{ role: "user", content: "x" }],
    prompt: "x",
    max_tokens: 1,
  }
  const named = parametersOf(request)
  const refused = new Set(named.flatMap(({ name, treatment }) => (treatment === "refused" ? name : [])))
  const base = Object.fromEntries(
    Object.entries(valid).filter(([name]) => Object.hasOwn(request.shape, name) && !refused.has(name)),
  )

  test("takes what it needs", () => {
    expect(request.safeParse(base).success).toBe(true)
  })

  test.each(named.filter(({ treatment }) => treatment === "refused"))("refuses $name by name", ({ name }) => {
    const parsed = request.safeParse({ ...base, [name]: { some: "value" } })
    expect(parsed.error?.issues[0]).toMatchObject({
      path: [name],
      params: { fault: name === "thread" ? "thread_unsupported_request" : "unsupported_parameter" },
    })
    expect(request.safeParse({ ...base, [name]: null }).success).toBe(true)
  })

  test.each(named.filter(({ treatment }) => treatment === "ignored"))("ignores $name", ({ name }) => {
    expect(request.safeParse({ ...base, [name]: { some: "value" } }).success).toBe(true)
  })

  test("refuses what it does not know", () => {
    expect(request.safeParse({ ...base, nonsense: 1 }).error?.issues[0]).toMatchObject({
      code: "unrecognized_keys",
    })
  })
})
