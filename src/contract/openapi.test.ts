/** The document says what the server does: limits of parameters are those that are refused, and roles those that are needed. */
import { readFileSync, readdirSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { answerHeaders, requestHeaders } from "./headers.ts"
import { openapi } from "./openapi.ts"
import { table } from "./table.ts"

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly type?: string; readonly minimum?: number; readonly maximum?: number }
}
interface Operation {
  readonly operationId: string
  readonly description?: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content?: Record<string, { readonly schema?: BodySchema }> }
}

const document = openapi(table, { title: "Test", version: "0", description: "" })
// The document's own shape.
const paths = Object.values(document["paths"] as Record<string, Record<string, Operation>>)
const operations = paths.flatMap((path) => Object.values(path))
const operationOf = (name: keyof typeof table): Operation | undefined =>
  operations.find(({ operationId }) => operationId === name)

const limits = operations.flatMap(({ operationId, parameters }) =>
  parameters.flatMap(({ name, in: place, schema: { minimum, maximum } }) =>
    place !== "query" || (minimum === undefined && maximum === undefined)
      ? []
      : [{ operationId, name, minimum, maximum }],
  ),
)

/** Whether the endpoint takes the value, whatever its other parameters are. */
function accepts(operationId: string, name: string, value: number): boolean {
  const { query } = table[operationId as keyof typeof table]
  if (!(query instanceof z.ZodObject)) throw new Error(`the query of ${operationId} is not an object`)
  const field = Object.entries<unknown>(query.shape).find(([key]) => key === name)?.[1]
  if (!(field instanceof z.ZodType)) throw new Error(`${operationId} has no parameter ${name}`)
  return field.safeParse(String(value)).success
}

test("limits are documented", () => expect(limits.length).toBeGreaterThanOrEqual(7))

describe.each(limits)("$operationId: $name", ({ operationId, name, minimum, maximum }) => {
  test("takes its documented limits and refuses one past them", () => {
    if (minimum !== undefined) {
      expect(accepts(operationId, name, minimum)).toBe(true)
      expect(accepts(operationId, name, minimum - 1)).toBe(false)
    }
    if (maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
      expect(accepts(operationId, name, maximum)).toBe(true)
      expect(accepts(operationId, name, maximum + 1)).toBe(false)
    }
  })
})

test("force_refresh is a boolean that is false when left out", () => {
  const parameter = operationOf("getBillingAccount")?.parameters.find(({ name }) => name === "force_refresh")
  expect(parameter?.schema).toMatchObject({ type: "boolean", default: false })
  expect(parameter?.schema).not.toHaveProperty("enum")
})

test.each([
  ["listWorkloadIdentityProviders", "a session of any member may call it without the permission"],
  ["putRoutingPolicy", "an organization owner is needed, so an organization's key is refused"],
  ["createInvitation", "a session must be of an organization owner"],
] as const)("%s says who may call it", (name, words) => {
  expect(operationOf(name)?.description).toContain(words)
})

interface BodySchema {
  readonly $ref?: string
  readonly properties?: Record<string, BodyField>
}
interface BodyField {
  readonly type?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly pattern?: string
  readonly format?: string
  readonly anyOf?: readonly BodyField[]
}

const { schemas } = document["components"] as { schemas: Record<string, BodySchema> }
const resolved = (schema: BodySchema | undefined): BodySchema | undefined =>
  schema?.$ref === undefined ? schema : schemas[schema.$ref.split("/").at(-1) ?? ""]

const bodies = operations.flatMap(({ operationId, requestBody }) => {
  const schema = resolved(requestBody?.content?.["application/json"]?.schema)
  return Object.entries(schema?.properties ?? {}).flatMap(([name, field]) =>
    (field.anyOf ?? [field]).map((one) => ({ operationId, name, field: one })),
  )
})

/** Whether the schema of the endpoint's body finds nothing wrong with this field. */
function fieldAccepts(operationId: string, name: string, value: unknown): boolean {
  const { body } = table[operationId as keyof typeof table]
  const parsed = (body as z.ZodType).safeParse({ [name]: value })
  return parsed.success || !parsed.error.issues.some(({ path }) => path[0] === name)
}

const numbers = bodies.filter(({ field }) => field.type === "integer" && field.minimum !== undefined)
const texts = bodies.filter(
  ({ field }) => field.maxLength !== undefined && field.pattern === undefined && field.format === undefined,
)

test("limits of bodies are documented", () => {
  expect(numbers.length).toBeGreaterThanOrEqual(5)
  expect(texts.length).toBeGreaterThanOrEqual(5)
})

test.each(numbers)(
  "$operationId refuses a $name past its documented limits",
  ({ operationId, name, field }) => {
    const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = field
    expect(fieldAccepts(operationId, name, minimum)).toBe(true)
    expect(fieldAccepts(operationId, name, minimum - 1)).toBe(false)
    if (maximum < Number.MAX_SAFE_INTEGER) expect(fieldAccepts(operationId, name, maximum + 1)).toBe(false)
  },
)

test.each(texts)(
  "$operationId refuses a $name past its documented length",
  ({ operationId, name, field }) => {
    expect(fieldAccepts(operationId, name, "a".repeat((field.maxLength ?? 0) + 1))).toBe(false)
  },
)

test("a routing policy's regions may be null, as the contract says", () => {
  expect(schemas["RoutingPolicy"]?.properties?.["regions"]?.type).toEqual(["array", "null"])
})

/** The document as it is, without the types above. */
const whole = document as unknown as {
  readonly paths: Record<string, Record<string, WholeOperation>>
  readonly components: {
    readonly headers: Record<string, unknown>
    readonly schemas: Record<string, unknown>
  }
}
interface WholeOperation {
  readonly security?: readonly Record<string, unknown>[]
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly responses: Record<string, { readonly headers?: Record<string, unknown> }>
}

test("every header of our own that the server reads or sends is documented", () => {
  const root = new URL("../", import.meta.url)
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    /^(?!.*\.test).*\.ts$/.test(name),
  )
  const named = files.flatMap((name) =>
    [...readFileSync(new URL(name, root), "utf8").matchAll(/"(x-umpire-[a-z-]+)"/g)].map(
      ([, header = ""]) => header,
    ),
  )
  const told = [...requestHeaders, ...answerHeaders].map(({ name }) => name)
  // Between a gateway and its workers.
  const inside = ["x-umpire-worker-protocol"]
  expect([...new Set(named)].filter((name) => !told.includes(name) && !inside.includes(name))).toEqual([])
  expect(Object.keys(whole.components.headers)).toEqual(
    expect.arrayContaining(["retry-after", "x-umpire-cost"]),
  )
})

test("Anthropic's headers, the WebSocket and the time to wait are documented where they are", () => {
  const message = whole.paths["/v1/messages"]?.["post"]
  expect(message?.parameters).toContainEqual(
    expect.objectContaining({ name: "anthropic-version", in: "header", required: true }),
  )
  expect(message?.security).toEqual([{ bearer: [] }, { key: [] }])
  expect(Object.keys(message?.responses["529"]?.headers ?? {})).toContain("retry-after")
  expect(Object.keys(whole.paths["/v1/decisions"]?.["post"]?.responses["429"]?.headers ?? {})).toContain(
    "retry-after-ms",
  )
  const socket = whole.paths["/v1/responses"]?.["get"]?.responses ?? {}
  expect([Object.keys(socket).includes("101"), Object.keys(socket).includes("200")]).toEqual([true, false])
})

test("a field that has a default may be left out of what is sent, and every reference leads somewhere", () => {
  const demanded: string[] = []
  const look = (schema: unknown, path: string): void => {
    if (typeof schema !== "object" || schema === null) return
    const { properties = {}, required = [] } = schema as {
      properties?: Record<string, object>
      required?: string[]
    }
    if (Array.isArray(required))
      for (const name of required)
        if (properties[name] && "default" in properties[name]) demanded.push(`${path}.${name}`)
    for (const [key, value] of Object.entries(schema)) look(value, `${path}/${key}`)
  }
  const text = JSON.stringify(document)
  const names = new Set([...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name = ""]) => name))
  for (const [path, methods] of Object.entries(whole.paths))
    for (const operation of Object.values(methods))
      look((operation as { requestBody?: unknown }).requestBody, path)
  // What a request refers to, and what that refers to.
  const sent = new Set<string>()
  const add = (schema: unknown): void => {
    for (const [, name = ""] of JSON.stringify(schema ?? null).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (sent.has(name)) continue
      sent.add(name)
      add(whole.components.schemas[name])
    }
  }
  for (const methods of Object.values(whole.paths))
    for (const operation of Object.values(methods)) add((operation as { requestBody?: unknown }).requestBody)
  for (const name of sent) look(whole.components.schemas[name], name)
  expect(demanded).toEqual([])
  expect([...names].filter((name) => !(name in whole.components.schemas))).toEqual([])
})
