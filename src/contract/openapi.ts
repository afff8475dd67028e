/** Prints the table of endpoints as an OpenAPI 3.1 document. */
import { z } from "zod"
import { type Endpoint, errorsOf, isRepeatable, sequenceHeader } from "./endpoint.ts"
import { type FaultCode, faultCatalog, statusOn } from "./errors.ts"

type Json = Record<string, unknown>

interface OpenApiFacts {
  readonly title: string
  readonly version: string
  readonly description: string
}

export function openapi(endpoints: Record<string, Endpoint>, facts: OpenApiFacts): Json {
  const schemas: Json = {}
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
      schemas: { ...schemas, ...errorSchemas },
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "An API key, a console session or a workload access token.",
        },
      },
    },
  }
}

function operation(operationId: string, endpoint: Endpoint, schemas: Json): Json {
  const { access } = endpoint
  return {
    operationId,
    tags: [endpoint.area],
    ...textsOf(endpoint),
    ...(access.principals.length > 0 ? { security: [{ bearer: [] }] } : {}),
    parameters: [
      ...parameters("path", endpoint.params, schemas),
      ...parameters("query", endpoint.query, schemas),
      ...headers(endpoint),
    ],
    ...(endpoint.body instanceof z.ZodUndefined
      ? {}
      : { requestBody: { required: true, content: bodyContent(endpoint, schemas) } }),
    responses: {
      [endpoint.status]: success(endpoint, schemas),
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

function roleNeeded({ owner, anyMember }: Endpoint["access"]): string {
  if (anyMember) return "; a session of any member may call it without the permission"
  if (owner === "everyone") return "; an organization owner is needed, so an organization's key is refused"
  return owner === "sessions" ? "; a session must be of an organization owner" : ""
}

function parameters(place: "path" | "query", schema: z.ZodType, schemas: Json): Json[] {
  const { properties = {}, required = [] } = schemaOf(schema, "input", schemas) as {
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

/** The headers that change what a write does. */
function headers(endpoint: Endpoint): Json[] {
  return [
    ...(isRepeatable(endpoint)
      ? [
          header(
            "Idempotency-Key",
            "A repeated request is answered again instead of done again, for 24 hours.",
          ),
        ]
      : []),
    ...(endpoint.errors.includes("precondition_failed")
      ? [header("If-Match", "The version to change, as ETag gave it; another is refused.")]
      : []),
  ]
}

function header(name: string, description: string): Json {
  const schema = { type: "string", minLength: 1, maxLength: 255 }
  return { name, in: "header", required: false, description, schema }
}

function success(endpoint: Endpoint, schemas: Json): Json {
  if (endpoint.status === 204) return { description: "Done; no body." }
  if (endpoint.status === 303)
    return { description: "Go to `location`.", headers: { location: { schema: { type: "string" } } } }
  if (endpoint.produces)
    return {
      description: "Success.",
      content: { [endpoint.produces]: { schema: { type: "string", format: "binary" } } },
    }
  const schema = schemaOf(endpoint.output, "output", schemas)
  const body =
    endpoint.wrap === "data" ? { type: "object", properties: { data: schema }, required: ["data"] } : schema
  return { description: "Success.", ...answerHeaders(endpoint), content: json(body) }
}

function answerHeaders({ callSource }: Endpoint): Json {
  if (!callSource) return {}
  const description = "The id of the request's sequence, as analytics knows it."
  return { headers: { [sequenceHeader]: { description, schema: { type: "string" } } } }
}

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
          // Who is not known has no sequence.
          ...(status === 401 ? {} : answerHeaders(endpoint)),
          content: json({ $ref: `#/components/schemas/${name}` }),
        },
      ]
    })
  return Object.fromEntries(entries)
}

/** A token request may also be a form. */
function bodyContent(endpoint: Endpoint, schemas: Json): Json {
  const schema = schemaOf(endpoint.body, "input", schemas)
  if (endpoint.consumes) return Object.fromEntries(endpoint.consumes.map((type) => [type, { schema }]))
  return endpoint.surface === "oauth"
    ? { "application/x-www-form-urlencoded": { schema }, ...json(schema) }
    : json(schema)
}

const errorNames: Partial<Record<Endpoint["surface"], string>> = {
  anthropic: "AnthropicError",
  platform: "PlatformError",
  oauth: "OauthError",
}

const json = (schema: Json): Json => ({ "application/json": { schema } })

/** Converts a schema; named ones move to the components, so that each is written once. */
function schemaOf(schema: z.ZodType, io: "input" | "output", schemas: Json): Json {
  const converted = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" }) as Json
  const {
    $schema: _,
    $defs = {},
    ...body
  } = JSON.parse(JSON.stringify(converted).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json & {
    $defs?: Record<string, Json>
  }
  for (const [name, definition] of Object.entries($defs)) schemas[name] = withoutId(definition)
  const id = body["id"]
  if (typeof id !== "string") return body
  schemas[id] = withoutId(body)
  return { $ref: `#/components/schemas/${id}` }
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
        properties: { type: { type: "string" }, message: { type: "string" }, code: { type: "string" } },
      },
      request_id: { type: ["string", "null"] },
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
