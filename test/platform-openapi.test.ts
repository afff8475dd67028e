/** The served document is valid, and the Platform API keeps to it whatever it is sent. */
import { Validator } from "@seriousme/openapi-schema-validator"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { permissions } from "../src/contract/access.ts"
import { platformTable } from "../src/contract/platform/table.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"
import { type Schema, valuesOf } from "./schema-values.ts"

const runsPerOperation = 50
const seedOfRuns = 20261

let platform: Platform
let account: string

interface Operation {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: Schema }[]
  readonly body: Schema | null
  readonly responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

let document: Record<string, unknown>
let operations: Operation[]
let ajv: Ajv2020

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  account = await seeder(platform).billingAccount()
  document = (await platform.send("GET", "/openapi.json")).body
  operations = readOperations(document)
  ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: "openapi", ...document })
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

function readOperations(from: Record<string, unknown>): Operation[] {
  // The validator has shown that the document has this form.
  const paths = from["paths"] as Record<string, Record<string, Record<string, unknown>>>
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { operationId, parameters, requestBody, responses } = operation as unknown as Operation & {
        requestBody?: { content: Record<string, { schema: Schema }> }
      }
      const body = requestBody?.content["application/json"]?.schema ?? null
      return { operationId, method: method.toUpperCase(), path, parameters, body, responses }
    }),
  )
}

test("the served document is valid OpenAPI", async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
})

test("every operation documents its errors, each with a body", () => {
  for (const { operationId, responses, path } of operations) {
    const failures = Object.keys(responses).filter((status) => Number(status) >= 400)
    expect(failures, operationId).toContain("500")
    if (path.includes("{org_id}"))
      expect(failures, operationId).toEqual(expect.arrayContaining(["401", "403", "404", "429"]))
    for (const status of failures) expect(responses[status]?.content, operationId).toBeDefined()
  }
})

/** What a schema cannot know: tokens that only a mail or the operator has, the name of a model, a provider. */
const unreachable = new Set([
  "createSession",
  "acceptInvitation",
  "requestModelAccess",
  "startSingleSignOn",
  "finishSingleSignOn",
])

describe.each(Object.keys(platformTable))("%s", (name) => {
  test("answers what it documents, never a 500, whatever it is sent", async () => {
    const operation = operations.find(({ operationId }) => operationId === name)
    if (!operation) throw new Error(`the document lacks ${name}`)
    const place = await freshPlace(operation.path)
    const reached = new Set<number>()
    await fc.assert(
      fc.asyncProperty(requests(operation, place), async ({ path, body, useKey }) => {
        const bearer = useKey ? place.key : await place.session()
        const answer = await platform.send(operation.method, path, {
          bearer,
          ...(body === undefined ? {} : { body }),
        })
        reached.add(answer.status)
        check(operation, answer)
      }),
      { numRuns: runsPerOperation, seed: seedOfRuns },
    )
    const success =
      Object.keys(operation.responses)
        .map(Number)
        .find((status) => status < 400) ?? 0
    if (!unreachable.has(name)) expect([...reached]).toContain(success)
  })
})

interface Place {
  readonly key: string
  /** By the name of the path parameter. */
  readonly ids: Readonly<Record<string, readonly string[]>>
  session(): Promise<string>
}

const targetsPerOperation = 15

/** An organization of its own for each operation, with what its path can name. */
async function freshPlace(path: string): Promise<Place> {
  const seed = seeder(platform)
  const org = await seed.organization("Generated", account)
  const owner = await seed.user(`${org}@schema.test`)
  await seed.member(org, owner, "primary_owner")
  const bearer = await seed.session(owner)
  const makers: Record<string, (index: number) => Promise<string>> = {
    user_id: async (index) => {
      const id = await seed.user(`${index}${org}@schema.test`)
      await seed.member(org, id, "member")
      return id
    },
    key_id: async () => (await seed.key(org, ["api-read"])).id,
    invitation_id: async (index) => {
      const body = { email: `invited${index}${org}@schema.test`, role: "member" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, { bearer, body })
      return sent.body.data.id
    },
  }
  const ids: Record<string, string[]> = { org_id: [org] }
  for (const [name, make] of Object.entries(makers))
    for (let index = 0; path.includes(`{${name}}`) && index < targetsPerOperation; index++)
      (ids[name] ??= []).push(await make(index))
  return {
    key: (await seed.key(org, permissions)).value,
    ids,
    session: async () => await seed.session(owner),
  }
}

interface Generated {
  readonly path: string
  readonly body: unknown
  readonly useKey: boolean
}

function requests(operation: Operation, place: Place): fc.Arbitrary<Generated> {
  const names = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)
  const params = fc.record(Object.fromEntries(names.map((name) => [name, pathValue(place.ids[name] ?? [])])))
  const queries = operation.parameters.filter((parameter) => parameter.in === "query")
  const query = fc.record(
    Object.fromEntries(queries.map(({ name, schema }) => [name, valuesOf(schema, document)])),
    { requiredKeys: [] },
  )
  const body = operation.body
    ? fc.oneof(
        { weight: 12, arbitrary: valuesOf(operation.body, document) },
        { weight: 1, arbitrary: fc.constantFrom("", "{", "[1,", '"') },
      )
    : fc.constant(undefined)
  return fc.record({ params, query, body, useKey: fc.boolean() }).map((made) => ({
    path: addressOf(operation.path, made.params, made.query),
    // Objects with odd prototypes and lone surrogates go out as JSON writes them.
    body: made.body,
    useKey: made.useKey,
  }))
}

function pathValue(ids: readonly string[]): fc.Arbitrary<string> {
  const odd = fc.constantFrom("org_0", "x", "%00", "..%2f", "a".repeat(129), "ümlaut")
  return ids.length === 0
    ? odd
    : fc.oneof({ weight: 7, arbitrary: fc.constantFrom(...ids) }, { weight: 1, arbitrary: odd })
}

function addressOf(template: string, params: Record<string, string>, query: Record<string, unknown>): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? "")
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    search.append(name, typeof value === "string" ? value : JSON.stringify(value))
  return search.size > 0 ? `${path}?${search.toString()}` : path
}

function check(operation: Operation, answer: Answer): void {
  const said = `${operation.method} ${operation.path}: ${answer.status} ${JSON.stringify(answer.body)}`
  expect(answer.status, said).toBeLessThan(500)
  const response = operation.responses[String(answer.status)]
  expect(response, `${said} is not documented`).toBeDefined()
  const schema = response?.content?.["application/json"]?.schema
  if (!schema) return expect(answer.body, said).toBe("")
  const validate = validatorOf(schema)
  expect(validate(answer.body) ? [] : validate.errors, said).toEqual([])
  if (answer.status >= 400)
    expect(Object.keys(answer.body.error).toSorted()).toEqual(["code", "details", "message"])
}

const validators = new Map<Schema, ValidateFunction>()

function validatorOf(schema: Schema): ValidateFunction {
  const known = validators.get(schema)
  if (known) return known
  const text = JSON.stringify(schema).replaceAll('"#/', '"openapi#/')
  const made = ajv.compile(JSON.parse(text))
  validators.set(schema, made)
  return made
}
