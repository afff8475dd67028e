/** The wire of POST /v1/moderations: OpenAI's categories. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { boundedArray, described, selectedUnion, typeOf } from "./bounded.ts"
import { optional } from "./parameters.ts"
import { namedObject, namedStrictObject } from "../endpoint.ts"

export const moderationCategories = [
  "harassment",
  "harassment/threatening",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm",
  "self-harm/intent",
  "self-harm/instructions",
  "sexual",
  "sexual/minors",
  "violence",
  "violence/graphic",
] as const
export type ModerationCategory = (typeof moderationCategories)[number]

export const moderatedTextsMax = 256

const text = bodyText().refine((value) => value.trim() !== "", {
  error: "a text that is not blank is needed",
})
const texts = boundedArray(text, { min: 1, max: moderatedTextsMax })
const textPart = z.strictObject({ type: z.literal("text"), text })
const imagePart = z.looseObject({ type: z.literal("image_url") }).refine(() => false, {
  error: "images are not read: send text",
  params: { fault: "unsupported_parameter" },
})
const part = selectedUnion(
  [textPart, imagePart],
  (value) => (typeOf(value) === "image_url" ? imagePart : textPart),
  "a part of type text is needed",
)
const parts = boundedArray(part, { min: 1, max: moderatedTextsMax })

/** The first item says what a list is of. */
function inputSchema(value: unknown): typeof text | typeof texts | typeof parts | null {
  if (typeof value === "string") return text
  if (!Array.isArray(value)) return null
  return typeof value[0] === "string" ? texts : parts
}

export const ModerationRequest = namedStrictObject("ModerationRequest", {
  model: optional(
    z.string().min(1).max(256),
    "A model for decisions; without it, or with a name of OpenAI's moderation models, the default one.",
  ),
  input: described(
    selectedUnion(
      [text, texts, parts],
      inputSchema,
      "a text, texts, or parts of type text; at most 256 of them",
    ),
    "A text, texts with a result each, or parts of one text; at most 256 of them.",
  ),
  user: optional(bodyText(), "Becomes the tag `user` of the request, cut to 128 characters."),
})
export type ModerationRequest = z.infer<typeof ModerationRequest>

const perCategory = <Value extends z.ZodType>(value: Value) => z.record(z.enum(moderationCategories), value)

export const Moderation = namedObject("Moderation", {
  id: z.string(),
  model: z.string(),
  results: z.array(
    z.object({
      flagged: z.boolean().meta({ description: "Whether any category applies." }),
      categories: perCategory(z.boolean()),
      category_scores: perCategory(z.number().min(0).max(1)),
      category_applied_input_types: perCategory(z.array(z.literal("text"))),
    }),
  ),
  usage: z.object({ prompt_tokens: z.int().min(0), total_tokens: z.int().min(0) }),
})
export type Moderation = z.infer<typeof Moderation>
