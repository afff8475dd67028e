/** Drives operations of an OpenAPI document with generated inputs and holds the answers to what it documents. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import fc from "fast-check"
import { expect } from "vitest"
import { type Schema, valuesOf } from "./schema-values.ts"

export interface Operation {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: Schema }[]
  readonly body: Schema | null
  readonly responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

interface DrivenAnswer {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

interface Generated {
  readonly path: string
  /** Undefined where the operation takes none. */
  readonly body: unknown
}

export interface Driver {
  readonly operations: readonly Operation[]
  /** `ids` are values for the path's parameters, by name. */
  requests(operation: Operation, ids: Readonly<Record<string, readonly string[]>>): fc.Arbitrary<Generated>
  /** Throws where the answer is not documented, is a 500, or has a field that its schema does not name. */
  check(operation: Operation, answer: DrivenAnswer): void
}

export function createDriver(document: Record<string, unknown>): Driver {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: "openapi", ...document })
  const validators = new Map<Schema, ValidateFunction>()
  const validatorOf = (schema: Schema): ValidateFunction => {
    const known = validators.get(schema)
    if (known) return known
    const made = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')))
    validators.set(schema, made)
    return made
  }
  return {
    operations: readOperations(document),
    requests: (operation, ids) => requests(document, operation, ids),
    check(operation, { status, body, headers }) {
      const said = `${operation.method} ${operation.path}: ${status} ${JSON.stringify(body)}`
      expect(status, said).not.toBe(500)
      const response = operation.responses[String(status)]
      expect(response, `${said} is not documented`).toBeDefined()
      const contentType = headers.get("content-type")?.split(";")[0] ?? ""
      if (!response?.content) return expect(body, said).toBe("")
      const named = Object.keys(response.content).find((type) => type.startsWith(contentType))
      expect(named, `${said} has the content type ${contentType}`).toBeDefined()
      if (contentType !== "application/json") return
      const validate = validatorOf(response.content[named ?? ""]?.schema ?? {})
      expect(validate(body) ? [] : validate.errors, said).toEqual([])
    },
  }
}

function readOperations(document: Record<string, unknown>): Operation[] {
  // A validator has shown that the document has this form.
  const paths = document["paths"] as Record<string, Record<string, Record<string, unknown>>>
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

function requests(
  document: Record<string, unknown>,
  operation: Operation,
  ids: Readonly<Record<string, readonly string[]>>,
): fc.Arbitrary<Generated> {
  const names = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)
  const params = fc.record(Object.fromEntries(names.map((name) => [name, pathValue(ids[name] ?? [])])))
  const queries = operation.parameters.filter((parameter) => parameter.in === "query")
  const query = fc.record(
    Object.fromEntries(queries.map(({ name, schema }) => [name, valuesOf(schema, document)])),
    { requiredKeys: queries.filter(({ required }) => required).map(({ name }) => name) },
  )
  const body = operation.body
    ? fc.oneof(
        { weight: 12, arbitrary: valuesOf(operation.body, document) },
        { weight: 1, arbitrary: fc.constantFrom("", "{", "[1,", '"') },
      )
    : fc.constant(undefined)
  return fc.record({ params, query, body }).map((made) => ({
    path: addressOf(operation.path, made.params, made.query),
    body: made.body,
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
