/** Virtual models on the wire: a name of an organization that stands for models of the catalog, and the rule that chooses between them. */
import { z } from "zod"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { Text, changeFields } from "./field-schemas.ts"
import { namedObject, namedStrictObject } from "../endpoint.ts"
import { LanguageTag, languageTags } from "../language.ts"

export const virtualModelLimits = {
  /** Of an organization. */
  virtualModelsMax: 100,
  nameCharactersMax: 128,
  descriptionCharactersMax: 1000,
  membersMax: 8,
  weightMax: 1_000_000,
  /** Models that one request can come to, over all stages. */
  modelsMax: 16,
  /** Virtual models inside virtual models. */
  depthMax: 8,
  latencyMsMax: 600_000,
} as const

/** The stages of a request for a virtual model, in order: `MODEL;result=RESULT;questions=N;tokens=N;ms=N;cost=USD`, separated by commas. */
export const stagesHeader = "x-umpire-stages"
/** Why an answer is not what it could be: a stage of a cascade that failed, a budget that was spent, or a text in a language that the model has not learnt. */
export const warningHeader = "x-umpire-warning"
/** The chat models among those that answered whose probabilities nothing has calibrated: `umpire models check` does. */
export const uncalibratedHeader = "x-umpire-uncalibrated"
/** What a split is sticky by, instead of the evidence. */
export const stickyHeader = "x-umpire-sticky"

const { nameCharactersMax, descriptionCharactersMax, membersMax, weightMax, latencyMsMax } =
  virtualModelLimits

/** Letters, digits and `. _ - / :`, as models are named elsewhere; `set:` begins the name of a question set. */
export const virtualNameForm = /^(?!set:)[\p{L}\p{N}][\p{L}\p{N}._/:-]*$/u

const Member = z.string().trim().min(1).max(256)
const usdForm = /^\d{1,8}(\.\d{1,10})?$/
const usdWanted = "a decimal number of USD is needed, with at most 10 decimals"
const Share = z.number().min(0).max(1)

export const CascadeRule = namedStrictObject("CascadeRule", {
  models: z.array(Member).min(2).max(membersMax).describe("The first is asked everything."),
  thresholds: z
    .strictObject({ predicate: Share.default(0.8), choice: Share.default(0.7), score: Share.default(0.6) })
    .prefault({})
    .describe(
      "The next model is asked the questions whose answer is less probable than this. A question of a question set that has a threshold of its own keeps to that.",
    ),
  on_failure: z
    .enum(["answer", "error"])
    .default("answer")
    .describe("When a later model fails: the answers so far with a warning header, or its error."),
  cost_max_usd: z
    .string()
    .regex(usdForm, usdWanted)
    .nullable()
    .default(null)
    .describe("A further model is asked only while the whole request costs no more than this."),
  cost_max_day_usd: z
    .string()
    .regex(usdForm, usdWanted)
    .nullable()
    .default(null)
    .describe(
      "What all further models of the cascade may cost in a day (UTC) together; beyond it the answers so far are sent, with a warning header.",
    ),
  latency_max_ms: z
    .int()
    .min(1)
    .max(latencyMsMax)
    .nullable()
    .default(null)
    .describe("How long after the request began a further model may work on it."),
})
export type CascadeRule = z.infer<typeof CascadeRule>

const SplitMember = namedStrictObject("SplitMember", {
  model: Member,
  weight: z.int().min(0).max(weightMax).describe("Its share of the sum of all weights."),
})

const LanguageRoute = namedStrictObject("LanguageRoute", {
  languages: z
    .array(LanguageTag)
    .min(1)
    .max(languageTags.length)
    .describe("Primary tags, or `unknown`: of texts that are too short or unsure."),
  model: Member.describe("Which answers texts in these languages."),
})

export const LanguageRule = namedStrictObject("LanguageRule", {
  routes: z
    .array(LanguageRoute)
    .min(1)
    .max(membersMax - 1)
    .describe("A language stands in one of them at most."),
  otherwise: Member.describe("The model for every other language."),
})
export type LanguageRule = z.infer<typeof LanguageRule>

/** Exactly one of them is what a virtual model is. */
const ruleFields = {
  alias: Member.describe("Another name of a model."),
  fallback: z
    .array(Member)
    .min(2)
    .max(membersMax)
    .describe(
      "The next one is asked when one fails, is full, cannot take so long a text, or may not be used.",
    ),
  split: z
    .array(SplitMember)
    .min(2)
    .max(membersMax)
    .describe(
      `One of them answers, by weight; the same one for the same \`${stickyHeader}\` header, or the same evidence without it.`,
    ),
  cascade: CascadeRule.describe(
    "The next one is asked only what the one before is unsure of (decisions and System One).",
  ),
  language: LanguageRule.describe("One of them answers, by the language of the text."),
} as const

export const ruleNames = ["alias", "fallback", "split", "cascade", "language"] as const
export type RuleName = (typeof ruleNames)[number]

export const VirtualRule = z.union([
  z.strictObject({ alias: ruleFields.alias }),
  z.strictObject({ fallback: ruleFields.fallback }),
  z.strictObject({ split: ruleFields.split }),
  z.strictObject({ cascade: ruleFields.cascade }),
  z.strictObject({ language: ruleFields.language }),
])
export type VirtualRule = z.infer<typeof VirtualRule>

/** The rule that fields hold; null where they hold none or several. */
export function ruleOf(fields: { readonly [Name in RuleName]?: unknown }): VirtualRule | null {
  const held = ruleNames.filter((name) => fields[name] !== undefined && fields[name] !== null)
  const [only, another] = held
  if (only === undefined || another !== undefined) return null
  // True: the field of this name was read by its schema.
  return { [only]: fields[only] } as VirtualRule
}

export const optionalRules = {
  alias: ruleFields.alias.optional(),
  fallback: ruleFields.fallback.optional(),
  split: ruleFields.split.optional(),
  cascade: ruleFields.cascade.optional(),
  language: ruleFields.language.optional(),
}

export const nullableRules = {
  alias: ruleFields.alias.nullable(),
  fallback: ruleFields.fallback.nullable(),
  split: ruleFields.split.nullable(),
  cascade: ruleFields.cascade.nullable(),
  language: ruleFields.language.nullable(),
}

const description = z.string().trim().max(descriptionCharactersMax)

export const VirtualModel = namedObject("VirtualModel", {
  id: z.string(),
  name: z.string().describe("What requests name as their model."),
  description: z.string(),
  ...nullableRules,
  ...changeFields,
})
export type VirtualModel = z.infer<typeof VirtualModel>

export const CascadeDay = namedObject("CascadeDay", {
  day: z.string().describe("YYYY-MM-DD, in UTC."),
  stage: z.int().describe("From zero; the first one is asked everything."),
  requests: z.int(),
  questions: z.int().describe("That the stage was asked."),
  changed: z.int().describe("Questions whose most probable answer it changed."),
  unanswered: z.int().describe("Questions that stayed as they were: it failed, or a budget was spent."),
  cost_usd: z.string(),
})
export type CascadeDay = z.infer<typeof CascadeDay>

const models = endpointGroup("/v1/organizations/{org_id}/models", { area: "Models", write: apiAdmin })
const virtualModel = models.at("/{model_id}")

export const virtualModelTable = {
  createVirtualModel: models.post({
    summary:
      "Create a virtual model: an alias, a fallback, a split, a cascade or a choice by language; exactly one of them",
    body: z.strictObject({
      name: Text(nameCharactersMax).regex(virtualNameForm, {
        error: "letters, digits and . _ - / : are needed, and not set: at the beginning",
      }),
      description: description.default(""),
      ...optionalRules,
    }),
    output: VirtualModel,
    errors: ["conflict"],
  }),
  getVirtualModel: virtualModel.get({ summary: "A virtual model of the organization", output: VirtualModel }),
  updateVirtualModel: virtualModel.patch({
    summary:
      "Change a virtual model; the next request at every gateway sees it; If-Match prevents lost updates",
    body: z.strictObject({ description: description.optional(), ...optionalRules }),
    output: VirtualModel,
    errors: ["conflict", "precondition_failed"],
  }),
  deleteVirtualModel: virtualModel.remove({
    summary: "Delete a virtual model that no other one names",
    errors: ["conflict"],
  }),
  listCascadeDays: endpointGroup("/v1/organizations/{org_id}/cascade_days", {
    area: "Models",
    write: apiAdmin,
  }).get({
    summary:
      "List what a cascade sent on; by day and stage, newest first, what it cost and what it changed. A month of it, seconds old",
    query: z.object({
      cascade: z.string().min(1).max(nameCharactersMax).describe("The name of the virtual model."),
    }),
    output: z.array(CascadeDay),
  }),
}
