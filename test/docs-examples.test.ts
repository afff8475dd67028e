/** Every example request of the guides is one that the OpenAPI document allows, and that the server takes; programs of clients run. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { Routes } from "../src/server/handle-request.ts"
import { type TestServer, startServer } from "./server.ts"

interface Example {
  readonly page: string
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly contentType: string | null
  readonly body: string | null
}

/** Exchanges of tokens need an issuer: the tests of identity do those. */
const elsewhere = /umpire\.example|googleapis|metadata|ACTIONS_ID_TOKEN/

const root = join(import.meta.dirname, "..")
const pages = [
  "README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
]

const blocks = pages.flatMap((page) =>
  [...readFileSync(join(root, page), "utf8").matchAll(/```\w*[^\n]*\n([\s\S]*?)```/g)].map(
    ([, block = ""]) => ({
      page,
      block,
    }),
  ),
)
const examples = blocks.flatMap(({ page, block }) =>
  [...curlsIn(block), ...linesIn(block)].map((one) => ({ page, ...one })),
)
/** With the name of its client. */
const programs = blocks.flatMap(({ page, block }) => {
  const name = /new (OpenAI|Anthropic|TypeSafeClient)\(/.exec(block)?.[1]
  return name === undefined ? [] : [{ page, name, block }]
})

function curlsIn(block: string): Omit<Example, "page">[] {
  const commands = block.replaceAll(/\\\n/g, " ").split(/\n(?=curl |#)/)
  return commands.flatMap((command) => {
    if (!/(^|\n)curl /.test(command) || elsewhere.test(command)) return []
    const words = [...command.matchAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
      ([, single, double, plain]) => single ?? double ?? plain ?? "",
    )
    const after = (...flags: string[]): string | null =>
      words[words.findIndex((word) => flags.includes(word)) + 1] ?? null
    const has = (...flags: string[]): boolean => words.some((word) => flags.includes(word))
    const url = words.find((word) => /\/v[12]\//.test(word)) ?? ""
    const body = has("-d", "--data-binary") ? after("-d", "--data-binary") : null
    const type =
      words
        .find((word) => /^content-type:/i.test(word))
        ?.split(":")[1]
        ?.trim() ?? null
    return [
      {
        method: has("-X") ? (after("-X") ?? "") : body === null ? "GET" : "POST",
        path: url.slice(url.search(/\/v[12]\//)),
        contentType: type,
        body,
      },
    ]
  })
}

/** Lines of a batch are requests too. */
function linesIn(block: string): Omit<Example, "page">[] {
  return block
    .split("\n")
    .filter((line) => line.startsWith('{"custom_id"'))
    .map((line) => {
      const { method, url, body } = JSON.parse(line) as { method: string; url: string; body: unknown }
      return { method, path: url, contentType: "application/json", body: JSON.stringify(body) }
    })
}

interface Operation {
  readonly operationId: string
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> }
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: object }> }>
}

let server: TestServer
let document: { paths: Record<string, Record<string, Operation>> }
let names: Record<string, string>
beforeAll(async () => {
  // No alert fires: nothing is sent.
  server = await startServer({
    env: { UMPIRE_EMAIL_SMTP_HOST: "127.0.0.1", UMPIRE_EMAIL_RECIPIENTS: "anyone" },
  })
  document = (await (await fetch(`${server.url}/openapi.json`)).json()) as typeof document
  const client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const [org] = await client.listOrganizations()
  const org_id = org?.id ?? ""
  const params = { org_id }
  const key = await client.createApiKey({ params, body: { name: "old", permissions: ["inference"] } })
  const hook = await client.createWebhook({
    params,
    body: { url: "https://hooks.example/umpire" },
  })
  names = {
    $ORG: org_id,
    $ACCOUNT: org?.billing_account_id ?? "",
    $ID: key.id,
    "wh_...": hook.id,
    "$((now - 86400000))": String(Date.now() - 86_400_000),
    $now: String(Date.now()),
  }
})
afterAll(async () => {
  await server.stop()
})

const named = (text: string): string =>
  Object.entries(names).reduce((made, [name, value]) => made.replaceAll(name, value), text)

const csv = "text,refund\nMy parcel is broken and I want my money back.,yes\n"

test("the guides have examples", () => {
  expect(examples.length).toBeGreaterThan(10)
})

test.each(examples)("$page: $method $path", async ({ method, path, contentType, body }) => {
  const target = named(path)
  const routes = new Routes<Operation>()
  for (const [template, methods] of Object.entries(document.paths))
    for (const [verb, operation] of Object.entries(methods))
      routes.add({ method: verb.toUpperCase() as "GET", path: template as "/" }, operation)
  const operation = routes.find(method, target.split("?")[0] ?? "")?.target
  if (!operation) throw new Error("the document has no such operation")
  const sent = body === null ? null : body.startsWith("@") ? csv : named(body)
  if (sent !== null && contentType?.startsWith("application/json"))
    expect(problemsOf(operation.requestBody?.content["application/json"]?.schema, JSON.parse(sent))).toEqual(
      [],
    )
  const response = await fetch(server.url + target, {
    method,
    headers: {
      authorization: `Bearer ${server.key}`,
      ...(contentType === null ? {} : { "content-type": contentType }),
    },
    ...(sent === null ? {} : { body: sent }),
  })
  const text = await response.text()
  expect([response.status < 400, text]).toEqual([true, expect.anything()])
  const answered = operation.responses[String(response.status)]?.content?.["application/json"]
  if (answered) expect(problemsOf(answered.schema, JSON.parse(text))).toEqual([])
})

/** What some leave to their readers. */
const given = `
const input = "The parcel is broken and I want my money back.", state = input
const questions = [{ type: "predicate", instructions: "Does the customer ask for a refund?" }]
`

test("the guides have programs for each client", () => {
  expect(new Set(programs.map(({ name }) => name)).size).toBe(3)
})

test.each(programs)("$page: $name", async ({ block }) => {
  const folder = mkdtempSync(join(tmpdir(), "umpire-example-"))
  const rows = join(folder, "rows.jsonl")
  writeFileSync(
    rows,
    examples.find(({ method, path }) => method === "POST" && path === "/v1/decisions")?.body ?? "",
  )
  // What is to be run later needs a batch that has ended.
  const code = `${given}${block.split("// later")[0]}`
    .replaceAll("http://127.0.0.1:8484", server.url)
    .replaceAll("rows.jsonl", rows)
  const env = { ...process.env, UMPIRE_API_KEY: server.key }
  try {
    await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { cwd: root, env })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** What the document's schema finds wrong with the value. */
function problemsOf(schema: object | undefined, value: unknown): unknown {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: "openapi", ...document })
  const validate = ajv.compile(
    JSON.parse(JSON.stringify(schema ?? {}).replaceAll('"#/', '"openapi#/')) as object,
  )
  return validate(value) ? [] : validate.errors
}
