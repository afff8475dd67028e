/** Hostile bodies of an endpoint, made from its schema alone: a new endpoint has them as soon as it is in the table. */
import { z } from "zod"
import { schemasIn } from "../../src/contract/check.ts"
import type { Endpoint } from "../../src/contract/endpoint.ts"
import { questionSetLimits } from "../../src/contract/question-sets/content.ts"
import { connectedModelTable } from "../../src/contract/platform/connected-models.ts"
import { exampleTable } from "../../src/contract/question-sets/examples.ts"
import { reviewTable } from "../../src/contract/question-sets/review.ts"

export interface HostileBody {
  readonly kind: string
  readonly contentType: string
  readonly text: string
}

/** Stands where the hostile part comes: some parts nest too deep for JSON.stringify. */
const place = "@hostile@"

type Kind =
  | "largest list"
  | "most keys"
  | "deepest list"
  | "deepest object"
  | "longest text"
  | "most problems"

/** What fills so many bytes. */
const parts: Readonly<Record<Kind, (bytes: number) => string>> = {
  "largest list": (bytes) => `[${filled(bytes, "{}")}]`,
  "most problems": (bytes) => `[${filled(bytes, "0")}]`,
  "most keys": (bytes) => {
    const keys = Array.from({ length: Math.max(1, Math.floor(bytes / 12)) }, (_, at) => `"k${at}":0`)
    return `{${keys.join()}}`
  },
  "deepest list": (bytes) => "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
  "deepest object": (bytes) => '{"a":'.repeat(bytes / 6) + "0" + "}".repeat(bytes / 6),
  "longest text": (bytes) => `"${"a".repeat(bytes)}"`,
}

const filled = (bytes: number, item: string): string =>
  Array.from({ length: Math.max(1, Math.floor(bytes / (item.length + 1))) }, () => item).join()

/** Where a part of each kind fits; the top of the body where no place does. */
const fits: Readonly<Record<Kind, (schema: z.core.$ZodType) => boolean>> = {
  "largest list": (schema) => schema instanceof z.ZodArray,
  "most problems": (schema) => schema instanceof z.ZodArray,
  "most keys": (schema) => schema instanceof z.ZodRecord,
  "deepest list": (schema) => schema instanceof z.ZodUnknown,
  "deepest object": (schema) => schema instanceof z.ZodUnknown,
  "longest text": (schema) => schema instanceof z.ZodString,
}

/** Room for what stands around the hostile part. */
const aroundBytes = 2048

/** `every` puts each kind at every place where it fits, and a wrong type at every place; otherwise each kind comes once. */
export function hostileBodies(endpoint: Endpoint, bytesMax: number, every: boolean): HostileBody[] {
  const bytes = Math.min(bytesMax, endpoint.bodyBytesMax) - aroundBytes
  const places = [...schemasIn(endpoint.body)]
  const [consumed] = endpoint.consumes ?? []
  if (consumed === "multipart/form-data") return hostileForms(bytes)
  const contentType = consumed ?? "application/json"
  // True: the table of parts has exactly the kinds.
  const kinds = Object.keys(parts) as Kind[]
  const large = kinds.flatMap((kind) => {
    const found = places.filter(({ schema }) => fits[kind](schema))
    const chosen = found.length > 0 ? found : places.slice(0, 1)
    return (every ? chosen : chosen.slice(0, 1)).map(({ schema, path }) => ({
      kind: every ? `${kind} at ${path || "the top"}` : kind,
      contentType,
      text: bodyWith(endpoint.body, schema).replace(JSON.stringify(place), () => parts[kind](bytes)),
    }))
  })
  const wrong = (every ? places : places.slice(0, 12)).flatMap(({ schema, path }) =>
    ["null", "[]", "0"].map((text) => ({
      kind: `${text} at ${path || "the top"}`,
      contentType,
      text: bodyWith(endpoint.body, schema).replace(JSON.stringify(place), text),
    })),
  )
  const valid = (largestValid.get(endpoint) ?? []).map((make) => ({
    kind: "largest valid",
    contentType,
    text: make(bytes),
  }))
  // Places that lead to the same text are one.
  return [...new Map([...large, ...wrong, ...valid].map((body) => [body.text, body])).values()]
}

/** The question of the set that bodies of rows are for. */
export const attackedQuestion = "rude"

/** So many different texts, which together have so many bytes. */
function textsOf(count: number, bytes: number): string[] {
  const letters = Math.min(questionSetLimits.inputBytesMax, Math.floor(bytes / count)) - aroundRowBytes
  return Array.from({ length: count }, (_, at) => `${at} `.padEnd(letters, "word "))
}

/** Room for what stands around a text. */
const aroundRowBytes = 64

const { examplesMax, examplesPerRequestMax, casesMax } = questionSetLimits

const examplesBody = (bytes: number, label: boolean): string => {
  const labels = { [attackedQuestion]: label }
  const rows = textsOf(examplesPerRequestMax, bytes).map((input) => ({ input, labels }))
  return JSON.stringify({ rows, replace: true })
}

const casesBody = (bytes: number, answer: boolean): string => {
  const expected = { [attackedQuestion]: answer }
  return JSON.stringify({ cases: textsOf(casesMax, bytes).map((input) => ({ input, expected })) })
}

/** As many rows as the set has room for beside the others here. */
const uploadBody = (bytes: number): string => {
  const rows = textsOf(examplesMax - 2 * examplesPerRequestMax, bytes).map((input) => `${input},yes\n`)
  return `input,${attackedQuestion}\n${rows.join("")}`
}

/** Nothing is wrong with them: they cost what the most costly request that is served costs. The second one replaces the first. */
const largestValid = new Map<Endpoint, readonly ((bytes: number) => string)[]>([
  [
    exampleTable.addQuestionSetExamples,
    [(bytes) => examplesBody(bytes, true), (bytes) => examplesBody(bytes, false)],
  ],
  [exampleTable.addQuestionSetCases, [(bytes) => casesBody(bytes, true), (bytes) => casesBody(bytes, false)]],
  [exampleTable.uploadQuestionSetExamples, [uploadBody]],
  [
    reviewTable.decideReviewItem,
    [
      (bytes) => JSON.stringify({ decision: "label", label: "a".repeat(bytes) }),
      () => JSON.stringify({ decision: "skip" }),
    ],
  ],
  // What it can cost, then the check itself.
  [connectedModelTable.checkConnectedModel, [() => "{}", () => JSON.stringify({ cost_max_usd: "1" })]],
])

const partOf = (name: string): string => `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\na\r\n`

/** Forms of many parts, of fields, and of a part with a head that does not end. */
function hostileForms(bytes: number): HostileBody[] {
  const contentType = "multipart/form-data; boundary=b"
  const file = partOf('file"; filename="a.jsonl')
  const many = (part: string): string => part.repeat(Math.floor(bytes / part.length))
  return [
    { kind: "most parts", contentType, text: `${many(file)}--b--\r\n` },
    { kind: "most fields", contentType, text: `${many(partOf("purpose"))}--b--\r\n` },
    { kind: "longest head", contentType, text: `--b\r\nx: ${"a".repeat(bytes)}` },
    { kind: "no form", contentType, text: "a".repeat(bytes) },
  ]
}

const bodyWith = (schema: z.core.$ZodType, target: z.core.$ZodType): string =>
  JSON.stringify(sample(schema, target)) ?? "null"

/** A small value of the schema, on its way to the target, where the place is. */
function sample(schema: z.core.$ZodType, target: z.core.$ZodType): unknown {
  if (schema === target) return place
  const leads = (inner: z.core.$ZodType): boolean =>
    [...schemasIn(inner)].some((found) => found.schema === target)
  // Every schema is one of zod's own.
  // oxlint-disable-next-line no-underscore-dangle -- where zod shows a schema to libraries
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(def.shape)
          .filter(([, field]) => !z.safeParse(field, undefined).success || leads(field))
          .map(([name, field]) => [name, sample(field, target)]),
      )
    case "array":
      return [sample(def.element, target)]
    case "record":
      return { key: sample(def.valueType, target) }
    case "tuple":
      return def.items.map((item) => sample(item, target))
    case "union":
      return sample(def.options.find(leads) ?? def.options[0] ?? z.null(), target)
    case "intersection":
      return sample(leads(def.right) ? def.right : def.left, target)
    case "pipe":
      return sample(def.in, target)
    case "lazy":
      return leads(schema) ? sample(def.getter(), target) : null
    case "optional":
    case "nullable":
    case "default":
    case "prefault":
    case "nonoptional":
    case "readonly":
    case "catch":
      return sample(def.innerType, target)
    case "literal":
      return def.values[0]
    case "enum":
      return Object.values(def.entries)[0]
    case "number":
      return 1
    case "boolean":
      return true
    case "string":
      return "a"
    default:
      return null
  }
}
