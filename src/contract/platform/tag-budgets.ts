/** What an organization may spend on requests with a tag, and how many of them may come in a minute. */
import { z } from "zod"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { tagKeyForm, tagLimits } from "../tags.ts"
import { GivenBudgets, KeyBudget, keyLimits, KeyRateLimit } from "./keys.ts"
import { Text } from "./field-schemas.ts"
import { namedObject } from "../endpoint.ts"

/** Tags of one organization that may have budgets or limits. */
export const tagBudgetsMax = 200

export const TagBudget = namedObject("TagBudget", {
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
export type TagBudget = z.infer<typeof TagBudget>

/** What is left out stays as it is; an empty list and null remove. */
const GivenTagLimits = {
  budgets: GivenBudgets.optional(),
  rate_limit: KeyRateLimit.nullish(),
  tokens_per_minute: z.int().min(1).max(keyLimits.tokensPerMinuteMax).nullish(),
}

const tagBudgets = endpointGroup("/v1/organizations/{org_id}/tag_budgets", {
  area: "Budgets",
  write: apiAdmin,
})

export const tagBudgetTable = {
  listTagBudgets: tagBudgets.get({
    summary: "List the budgets of tags with what was spent of them, and their limits",
    output: z.array(TagBudget),
  }),
  putTagBudget: tagBudgets.put({
    summary: "Change the budgets and limits of a tag: what is left out stays, an empty list or null removes",
    body: z.strictObject({
      key: z.string().regex(tagKeyForm, { error: "1 to 64 of A-Z a-z 0-9 _ . - are needed" }),
      value: Text(tagLimits.valueCharactersMax),
      ...GivenTagLimits,
    }),
    output: z.array(TagBudget),
    errors: ["conflict"],
  }),
}
