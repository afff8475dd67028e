/** Prints the table of endpoints as an OpenAPI 3.1 document. */
import { z } from "zod"
import { roles } from "./access.ts"
import { type Endpoint, errorsOf } from "./endpoint.ts"
import { type FaultCode, faultCatalog, statusOn } from "./errors.ts"
import { answerHeaders, requestHeaders, retriedStatuses, retryHeaders } from "./headers.ts"

type Json = Record<string, unknown>

interface OpenApiFacts {
  readonly title: string
  readonly version: string
  readonly description: string
}

export function openapi(endpoints: Record<string, Endpoint>, facts: OpenApiFacts): Json {
  const schemas = new Components(Object.values(endpoints))
  const paths: Record<string, Json> = {}
  for (const [operationId, endpoint] of Object.entries(endpoints)) {
    const path = (paths[endpoint.path] ??= {})
    path[endpoint.method.toLowerCase()] = operation(operationId, endpoint, schemas)
  }
  return {
    openapi: "3.1.1",
    info: { title: facts.title, version: facts.version, description: facts.description },
    servers: [{ url: "/" }],
    tags: [...new Set(Object.values(endpoints).map(({ area }) => area))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...schemas.used, ...errorSchemas },
      headers: Object.fromEntries(
        [...answerHeaders, ...retryHeaderList].map(({ name, description }) => [
          name,
          { description, schema: { type: "string" } },
        ]),
      ),
      securitySchemes: {
        key: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "The same, where Anthropic's clients put it.",
        },
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "An API key, a console session or a workload access token.",
        },
      },
    },
  }
}

const retryHeaderList = Object.entries(retryHeaders).map(([name, description]) => ({ name, description }))

function operation(operationId: string, endpoint: Endpoint, schemas: Components): Json {
  const { access } = endpoint
  return {
    operationId,
    tags: [endpoint.area],
    ...textsOf(endpoint),
    ...(access.principals.length > 0 ? { security: securityOf(endpoint) } : {}),
    parameters: [
      ...parameters("path", endpoint.params, schemas),
      ...parameters("query", endpoint.query, schemas),
      ...headers(endpoint),
    ],
    ...(endpoint.body instanceof z.ZodUndefined
      ? {}
      : { requestBody: { required: true, content: bodyContent(endpoint, schemas) } }),
    responses: {
      ...(endpoint.upgrades
        ? { 101: { description: "The connection goes on as a WebSocket." } }
        : { [endpoint.status]: success(endpoint, schemas) }),
      ...(endpoint.accepts ? { 202: { description: "Accepted; there is nothing to answer." } } : {}),
      ...failures(endpoint),
    },
  }
}

function textsOf(endpoint: Endpoint): Json {
  const [summary = "", ...more] = endpoint.summary.split("; ")
  const detail = more.map((part) => `${part.slice(0, 1).toUpperCase()}${part.slice(1)}.`)
  const sentences = [...detail, ...(endpoint.access.principals.length > 0 ? [whoMayCall(endpoint)] : [])]
  return { summary, ...(sentences.length > 0 ? { description: sentences.join(" ") } : {}) }
}

const either = new Intl.ListFormat("en", { type: "disjunction" })

function whoMayCall({ access }: Endpoint): string {
  const names = {
    session: "a console session",
    key: "an API key",
    workload: "a workload access token",
    operator: "the operator",
  }
  const kinds = either.format(access.principals.map((kind) => names[kind]))
  const permission = access.permission ? ` with the permission \`${access.permission}\`` : ""
  return `Accepts ${kinds}${permission}${roleNeeded(access)}.`
}

function roleNeeded({ owner, alsoRoles }: Endpoint["access"]): string {
  if (alsoRoles === roles) return "; a session of any member may call it without the permission"
  if (alsoRoles)
    return `; a session with the role ${either.format(alsoRoles)} may call it without the permission`
  if (owner === "everyone") return "; an organization owner is needed, so an organization's key is refused"
  return owner === "sessions" ? "; a session must be of an organization owner" : ""
}

function parameters(place: "path" | "query", schema: z.ZodType, schemas: Components): Json[] {
  // Parameters are objects.
  const { properties = {}, required = [] } = schemas.of(schema, "input") as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: property,
    ...(property["type"] === "array" ? { style: "form", explode: true } : {}),
  }))
}

/** Anthropic's clients, which ask for models too, have a header of their own. */
const securityOf = ({ surface }: Endpoint): Json[] => [
  { bearer: [] },
  ...(surface === "anthropic" || surface === "openai" ? [{ key: [] }] : []),
]

const headers = (endpoint: Endpoint): Json[] =>
  requestHeaders
    .filter(({ on }) => on(endpoint))
    .map(({ name, description, required = false }) => ({
      name,
      in: "header",
      required,
      description,
      schema: { type: "string", minLength: 1 },
    }))

/** A file of JSON is JSON to who reads it. */
const producedSchema = (type: string): Json =>
  type === "application/json" ? { type: "object" } : { type: "string", format: "binary" }

function success(endpoint: Endpoint, schemas: Components): Json {
  const told = toldHeaders(endpoint)
  if (endpoint.status === 204) return { description: "Done; no body.", headers: told }
  if (endpoint.status === 303)
    return {
      description: "Go to `location`.",
      headers: { ...told, location: { schema: { type: "string" } } },
    }
  if (endpoint.produces)
    return {
      description: "Success.",
      headers: told,
      content: { [endpoint.produces]: { schema: producedSchema(endpoint.produces) } },
    }
  const schema = schemas.of(endpoint.output, "output")
  const body =
    endpoint.wrap === "data" ? { type: "object", properties: { data: schema }, required: ["data"] } : schema
  return { description: "Success.", headers: told, content: json(body) }
}

const headerReference = (name: string): [string, Json] => [name, { $ref: `#/components/headers/${name}` }]

const toldHeaders = (endpoint: Endpoint): Json =>
  Object.fromEntries(answerHeaders.filter(({ on }) => on(endpoint)).map(({ name }) => headerReference(name)))

function failures(endpoint: Endpoint): Json {
  const byStatus = Map.groupBy(errorsOf(endpoint), (code: FaultCode) => statusOn(endpoint.surface, code))
  const entries = [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, codes]) => {
      const lines = codes.map((code) => `- \`${code}\`: ${faultCatalog[code].when}`)
      const name = errorNames[endpoint.surface] ?? "Error"
      return [
        String(status),
        {
          description: lines.join("\n"),
          headers: {
            ...(status === 401
              ? Object.fromEntries([headerReference("x-request-id")])
              : toldHeaders(endpoint)),
            ...(retriedStatuses.includes(status)
              ? Object.fromEntries(retryHeaderList.map(({ name }) => headerReference(name)))
              : {}),
          },
          content: json({ $ref: `#/components/schemas/${name}` }),
        },
      ]
    })
  return Object.fromEntries(entries)
}

/** A token request may also be a form. */
function bodyContent(endpoint: Endpoint, schemas: Components): Json {
  const schema = schemas.of(endpoint.body, "input")
  if (endpoint.consumes) return Object.fromEntries(endpoint.consumes.map((type) => [type, { schema }]))
  return endpoint.surface === "oauth"
    ? { "application/x-www-form-urlencoded": { schema }, ...json(schema) }
    : json(schema)
}

const errorNames: Partial<Record<Endpoint["surface"], string>> = {
  mcp: "McpError",
  anthropic: "AnthropicError",
  platform: "PlatformError",
  oauth: "OauthError",
}

const json = (schema: Json): Json => ({ "application/json": { schema } })

type Direction = "input" | "output"

interface Converted {
  readonly body: Json
  readonly definitions: Readonly<Record<string, Json>>
}

const referencePrefix = "#/components/schemas/"

/**
 * The named schemas, each written once. One that is sent differs from one that is answered where it has defaults, which may be left out
 * of what is sent: then what is sent has a name of its own.
 */
class Components {
  readonly used: Json = {}
  readonly #split: ReadonlySet<string>

  constructor(endpoints: readonly Endpoint[]) {
    const named: Record<Direction, Record<string, Json>> = { input: {}, output: {} }
    for (const { params, query, body, output } of endpoints) {
      for (const schema of [params, query, body])
        Object.assign(named.input, convert(schema, "input").definitions)
      Object.assign(named.output, convert(output, "output").definitions)
    }
    this.#split = splitNames(named)
  }

  of(schema: z.ZodType, direction: Direction): Json {
    const { body, definitions } = convert(schema, direction)
    for (const [name, definition] of Object.entries(definitions))
      this.used[this.#nameOf(name, direction)] = this.#renamed(definition, direction)
    return this.#renamed(body, direction)
  }

  #nameOf(name: string, direction: Direction): string {
    return direction === "input" && this.#split.has(name) ? `${name}Input` : name
  }

  #renamed(schema: Json, direction: Direction): Json {
    return mapReferences(schema, (name) => this.#nameOf(name, direction))
  }
}

/** Those that differ, and those that name them. */
function splitNames({ input, output }: Record<Direction, Record<string, Json>>): Set<string> {
  const both = Object.keys(input).filter((name) => output[name])
  const split = new Set(both.filter((name) => JSON.stringify(input[name]) !== JSON.stringify(output[name])))
  for (let before = -1; before !== split.size;) {
    before = split.size
    for (const name of both)
      if (referencesOf(input[name] ?? {}).some((one) => split.has(one))) split.add(name)
  }
  return split
}

function mapReferences(schema: Json, rename: (name: string) => string): Json {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "$ref" && typeof value === "string" && value.startsWith(referencePrefix)
      ? referencePrefix + rename(value.slice(referencePrefix.length))
      : value,
  )
}

function referencesOf(schema: Json): string[] {
  const names: string[] = []
  mapReferences(schema, (name) => {
    names.push(name)
    return name
  })
  return names
}

/** Most schemas are asked for twice. */
const known = { input: new WeakMap<z.ZodType, Converted>(), output: new WeakMap<z.ZodType, Converted>() }

function convert(schema: z.ZodType, io: Direction): Converted {
  const before = known[io].get(schema)
  if (before) return before
  const made = convertNew(schema, io)
  known[io].set(schema, made)
  return made
}

/** Named schemas are references; the rest stands where it is. */
function convertNew(schema: z.ZodType, io: Direction): Converted {
  const made = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" }))
  const read: Json & { $defs?: Record<string, Json> } = JSON.parse(
    made.replaceAll('"#/$defs/', `"${referencePrefix}`),
  )
  const { $schema: _, $defs = {}, ...body } = read
  const definitions = Object.fromEntries(
    Object.entries($defs).map(([name, definition]) => [name, withoutId(definition)]),
  )
  const id = body["id"]
  if (typeof id !== "string") return { body, definitions }
  return { body: { $ref: referencePrefix + id }, definitions: { ...definitions, [id]: withoutId(body) } }
}

function withoutId({ id: _id, ...rest }: Json): Json {
  return rest
}

const errorSchemas: Json = {
  Error: {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["code", "message"],
        properties: {
          code: { type: "string" },
          message: { type: "string" },
          type: { type: ["string", "null"] },
          param: { type: ["string", "null"] },
        },
      },
    },
  },
  AnthropicError: {
    type: "object",
    required: ["type", "error"],
    properties: {
      type: { const: "error" },
      error: {
        type: "object",
        required: ["type", "message"],
        properties: {
          type: { type: "string" },
          message: { type: "string" },
          code: { type: "string" },
          details: { type: "object", properties: { error_code: { type: "string" } } },
        },
      },
      request_id: { type: ["string", "null"] },
    },
  },
  McpError: {
    type: "object",
    required: ["jsonrpc", "error"],
    properties: {
      jsonrpc: { const: "2.0" },
      id: { type: ["string", "number"] },
      error: {
        type: "object",
        required: ["code", "message"],
        properties: { code: { type: "integer" }, message: { type: "string" }, data: {} },
      },
    },
  },
  OauthError: {
    type: "object",
    required: ["error", "error_description"],
    properties: { error: { type: "string" }, error_description: { type: "string" } },
  },
  PlatformError: {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["message"],
        properties: { message: { type: "string" }, code: { type: ["string", "null"] }, details: {} },
      },
    },
  },
}
