/** What a parameter of the OpenAI-compatible endpoints can be: honoured, ignored or refused. The guide prints it from here. */
import { z } from "zod"
import { bodyText, recordOf } from "../check.ts"
import type { FaultCode } from "../errors.ts"

type Treatment = "honoured" | "ignored" | "refused"

const treatments = z.registry<{ treatment: Treatment; why: string }>()

/** Read and thrown away: real clients always send it, and nothing about the answer depends on it. */
export function ignored(why: string): z.ZodOptional<z.ZodUnknown> {
  const schema = z
    .unknown()
    .optional()
    .meta({ description: `Ignored: ${why}` })
  treatments.add(schema, { treatment: "ignored", why })
  return schema
}

/** Leaves out objects and lists that are ignored: they are not used, and may be large. */
export function withoutIgnored(
  { shape }: z.ZodObject,
  request: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const isNeeded = ([name, value]: [string, unknown]): boolean =>
    typeof value !== "object" || !(shape[name] instanceof z.ZodType) || !isIgnored(shape[name])
  return Object.fromEntries(Object.entries(request).filter(isNeeded))
}

const isIgnored = (schema: z.ZodType): boolean => treatments.get(schema)?.treatment === "ignored"

/** Refused by name, unless its value asks for nothing. */
export const refused = (why: string, ...harmless: readonly unknown[]): z.ZodType =>
  refusedAs("unsupported_parameter", why, harmless)

/** With the code that a client knows what to do about. */
export function refusedAs(fault: FaultCode, why: string, harmless: readonly unknown[] = []): z.ZodType {
  const accepted = new Set([...harmless, null].map((value) => JSON.stringify(value)))
  const schema = z
    .unknown()
    .optional()
    .refine((value) => value === undefined || accepted.has(JSON.stringify(value)), {
      error: `this server does not honour it (${why})`,
      params: { fault },
    })
    .meta({ description: `Refused: ${why}` })
  treatments.add(schema, { treatment: "refused", why })
  return schema
}

interface Parameter {
  readonly name: string
  readonly treatment: Treatment
  readonly note: string
}

/** Every parameter of a request with what is done with it. */
export function parametersOf(request: z.ZodObject): Parameter[] {
  return Object.entries(request.shape).map(([name, member]) => {
    // Every schema is one of zod's own.
    const schema = member as z.ZodType
    const found = treatments.get(schema)
    const description = schema.meta()?.description
    return { name, treatment: found?.treatment ?? "honoured", note: found?.why ?? description ?? "" }
  })
}

export const optional = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.nullable().optional().meta({ description })

export const Metadata = recordOf(z.string().max(64), z.string().max(512), 16)

/** Far above the keywords of any schema and the arguments of any tool. */
const keysMax = 4096
export const JsonRecord = recordOf(bodyText(), z.unknown(), keysMax)

/** Everything both generating endpoints take and do nothing with. */
export const harmless = {
  user: optional(bodyText(), "Becomes the tag `user` of the request, cut to 128 characters."),
  safety_identifier: ignored("the principal identifies the caller"),
  prompt_cache_key: ignored("prompts are cached by their tokens"),
  prompt_cache_retention: ignored("prompts are cached by their tokens"),
  prompt_cache_options: ignored("prompts are cached by their tokens"),
  service_tier: ignored("there is one tier"),
  client_metadata: ignored("for the client's own use"),
}

/** The bytes of a file, base64 or a data: URL. */
export const fileFields = {
  file_data: bodyText().nullable().optional(),
  filename: bodyText().nullable().optional(),
}

export const functionName = z
  .string()
  .regex(/^[\w.-]{1,64}$/, { error: "1 to 64 letters, digits, dots, underscores and dashes" })

/** The fields of a page of OpenAI's. */
export const listFields = <Item extends z.ZodType>(item: Item) => ({
  object: z.literal("list"),
  data: z.array(item),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
})

export const modelName = z.string().min(1).max(256).meta({ description: "A model of GET /v1/models." })

/** How the next token is drawn. */
export const sampling = {
  temperature: optional(
    z.number().min(0).max(2),
    "0 always takes the likeliest token; without it local models use 0.7.",
  ),
  top_p: optional(z.number().gt(0).max(1), "Samples from the likeliest tokens that make up this share."),
  frequency_penalty: optional(z.number().min(-2).max(2), "Makes tokens rarer the more they were used."),
  presence_penalty: optional(z.number().min(-2).max(2), "Makes tokens rarer once they were used."),
}
export const effort = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"])
