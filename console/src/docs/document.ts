/** The OpenAPI document as the reference reads it. */
import { t } from "../i18n/translate.ts"

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  readonly body: Schema | null
  readonly answers: readonly {
    readonly status: string
    readonly description: string
    readonly schema: Schema | null
  }[]
}

export interface Reference {
  readonly title: string
  readonly version: string
  readonly operations: readonly Operation[]
  readonly schemas: Readonly<Record<string, Schema>>
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}
interface RawOperation {
  readonly operationId: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content & { readonly description?: string }>>
}
interface RawDocument {
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

/** The document is our own server's, printed from the table of endpoints, so its shape is known. */
export function readDocument(document: unknown): Reference {
  const { info, paths, components } = document as RawDocument
  return {
    title: info.title,
    version: info.version,
    schemas: components?.schemas ?? {},
    operations: Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, raw]) => readOperation(path, method, raw)),
    ),
  }
}

function readOperation(path: string, method: string, raw: RawOperation): Operation {
  return {
    id: raw.operationId,
    method: method.toUpperCase(),
    path,
    tag: raw.tags?.[0] ?? t("Other"),
    summary: raw.summary ?? raw.operationId,
    description: raw.description ?? "",
    parameters: raw.parameters ?? [],
    body: raw.requestBody ? schemaIn(raw.requestBody) : null,
    answers: Object.entries(raw.responses).map(([status, answer]) => ({
      status,
      description: answer.description ?? "",
      schema: schemaIn(answer),
    })),
  }
}

function schemaIn({ content }: Content): Schema | null {
  return Object.values(content ?? {})[0]?.schema ?? null
}

export function resolve(schema: Schema, schemas: Reference["schemas"]): Schema {
  const name = schema.$ref?.split("/").at(-1)
  return name === undefined ? schema : (schemas[name] ?? {})
}

export const refName = ({ $ref }: Schema): string | null => $ref?.split("/").at(-1) ?? null

/** A type in one line. */
export function typeOf(schema: Schema): string {
  const named = refName(schema)
  if (named !== null) return named
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return [...new Set(choices.map(typeOf))].join(" | ")
  if (schema.type === "array") return `${typeOf(schema.items ?? {})}[]`
  if (Array.isArray(schema.type)) return schema.type.join(" | ")
  return typeof schema.type === "string" ? schema.type : "any"
}

/** What there is to open beneath a field; null for plain values, and for a part that leads back to itself. */
export function innerSchema(
  field: Schema,
  schemas: Reference["schemas"],
  passed: ReadonlySet<string> = new Set(),
): Schema | null {
  const name = refName(field)
  if (name !== null && passed.has(name)) return null
  const seen = name === null ? passed : new Set([...passed, name])
  const schema = resolve(field, schemas)
  if (schema.type === "array" && schema.items) return innerSchema(schema.items, schemas, seen)
  const choices = (schema.anyOf ?? schema.oneOf ?? []).filter(
    (choice) => innerSchema(choice, schemas, seen) !== null,
  )
  if (choices.length === 1) return choices[0] ?? null
  if (choices.length > 1) return schema
  return schema.properties ? schema : null
}

const exampleDepthMax = 6

/** Something to start a request from: every required field, in its simplest form. */
export function exampleOf(given: Schema, schemas: Reference["schemas"], depth = 0): unknown {
  const schema = resolve(given, schemas)
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const [choice] = schema.anyOf ?? schema.oneOf ?? []
  if (choice) return exampleOf(choice, schemas, depth + 1)
  if (depth > exampleDepthMax) return null
  const type = typeof schema.type === "string" ? schema.type : schema.type?.[0]
  switch (type) {
    case "object":
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [
          name,
          exampleOf(schema.properties?.[name] ?? {}, schemas, depth + 1),
        ]),
      )
    case "array":
      return (schema.minItems ?? 0) > 0 || depth < 3
        ? [exampleOf(schema.items ?? {}, schemas, depth + 1)]
        : []
    case "integer":
    case "number":
      return schema.minimum ?? 0
    case "boolean":
      return false
    case "string":
      return "text"
    default:
      return null
  }
}
