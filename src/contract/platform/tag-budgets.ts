/** What an organization may spend on requests with a tag, and how many of them may come in a minute. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { tagKeyForm, tagLimits } from "../tags.ts"
import { GivenBudgets, KeyBudget, keyLimits } from "./key-limits.ts"
import { KeyRateLimit } from "./keys.ts"
import { OrganizationPath, Text } from "./values.ts"

const area = "Budgets"
const surface = "platform"
const path = "/v1/organizations/{org_id}/tag_budgets"
const principals = ["session", "key"] as const

/** Tags of one organization that may have budgets or limits. */
export const tagBudgetsMax = 200

export const TagBudget = z
  .object({
    key: z.string().describe("Of the tag, as in `x-umpire-tags: key=value`."),
    value: z.string(),
    budgets: z
      .array(KeyBudget)
      .describe("Requests that would pass one are refused with 402 tag_budget_exceeded."),
    rate_limit: KeyRateLimit.nullable().describe(
      "Of requests with the tag, whoever sends them; more are refused with 429 rate_limited.",
    ),
    tokens_per_minute: z.int().nullable().describe("Tokens read and written; null for no limit."),
  })
  .meta({ id: "TagBudget" })
export type TagBudget = z.infer<typeof TagBudget>

/** What is left out stays as it is; an empty list and null remove. */
export const GivenTagLimits = {
  budgets: GivenBudgets.optional(),
  rate_limit: KeyRateLimit.nullish(),
  tokens_per_minute: z.int().min(1).max(keyLimits.tokensPerMinuteMax).nullish(),
}

export const listTagBudgets = endpoint({
  method: "GET",
  path,
  area,
  surface,
  summary: "List the budgets of tags with what was spent of them, and their limits",
  access: { principals, permission: "api-read" },
  params: OrganizationPath,
  output: z.array(TagBudget),
})

export const putTagBudget = endpoint({
  method: "PUT",
  path,
  area,
  surface,
  summary: "Change the budgets and limits of a tag: what is left out stays, an empty list or null removes",
  access: { principals, permission: "api-admin" },
  params: OrganizationPath,
  body: z.strictObject({
    key: z.string().regex(tagKeyForm, { error: "1 to 64 of A-Z a-z 0-9 _ . - are needed" }),
    value: Text(tagLimits.valueCharactersMax),
    ...GivenTagLimits,
  }),
  output: z.array(TagBudget),
  errors: ["conflict"],
})

export const tagBudgetTable = { listTagBudgets, putTagBudget }
