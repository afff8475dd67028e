/** API keys of an organization. */
import { z } from "zod"
import { budgetPeriods, roles } from "../access.ts"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { Datetime, GivenTime, PermissionName, Text, nameCharactersMax, shownOnce } from "./field-schemas.ts"
import { namedObject } from "../endpoint.ts"

/** Members change the keys that are their own; the handlers check whose key it is. */
const administer = { ...apiAdmin, alsoRoles: roles } as const

export const keyLimits = {
  tokensPerMinuteMax: 1_000_000_000,
  modelsMax: 100,
  networksMax: 50,
  centsMax: 1_000_000_000,
} as const

const Cents = z.int().min(1).max(keyLimits.centsMax)

const Threshold = {
  period: z.enum(budgetPeriods).describe("A calendar day, week from Monday, or month, in UTC."),
  cutoff_threshold_cents: Cents.nullable().describe(
    "Requests that would pass it are refused with 402 key_budget_exceeded, or tag_budget_exceeded; null for none.",
  ),
  warning_threshold_cents: Cents.nullable().describe(
    "Alert rules of the kind key_budget fire from here on; null for none.",
  ),
}

const GivenBudget = z
  .strictObject({
    period: Threshold.period,
    cutoff_threshold_cents: Threshold.cutoff_threshold_cents.default(null),
    warning_threshold_cents: Threshold.warning_threshold_cents.default(null),
  })
  .refine((budget) => budget.cutoff_threshold_cents !== null || budget.warning_threshold_cents !== null, {
    error: "a cutoff or a warning is needed",
  })
  .refine(
    ({ cutoff_threshold_cents: cutoff, warning_threshold_cents: warning }) =>
      cutoff === null || warning === null || warning < cutoff,
    { error: "the warning must be lower than the cutoff", path: ["warning_threshold_cents"] },
  )
export type GivenBudget = z.infer<typeof GivenBudget>

export const GivenBudgets = z
  .array(GivenBudget)
  .max(budgetPeriods.length)
  .refine((given) => new Set(given.map(({ period }) => period)).size === given.length, {
    error: "one budget for each period",
  })

export const KeyBudget = namedObject("KeyBudget", {
  ...Threshold,
  spent_cents: z.number().describe("In the present period, as far as it is in the ledger."),
  local_state: z.enum(["ok", "blocked"]),
  period_start: z.iso.date(),
  period_end: z.iso.date().describe("The first day after it."),
})
export type KeyBudget = z.infer<typeof KeyBudget>

/** An address, or a network as 10.0.0.0/8; the handler reads it. */
const Network = Text(64)

/** What a caller may give; what is left out stays as it is, null removes the limit. */
const GivenKeyLimits = {
  tokens_per_minute: z.int().min(1).max(keyLimits.tokensPerMinuteMax).nullish(),
  allowed_models: z.array(Text(256)).min(1).max(keyLimits.modelsMax).nullish(),
  allowed_networks: z.array(Network).min(1).max(keyLimits.networksMax).nullish(),
  budgets: GivenBudgets.optional(),
}

const ShownKeyLimits = {
  tokens_per_minute: z.int().nullable().describe("Tokens read and written; null for no limit of its own."),
  allowed_models: z.array(z.string()).nullable().describe("SKUs; null for every model of the organization."),
  allowed_networks: z.array(z.string()).nullable().describe("Null for every address."),
  budgets: z.array(KeyBudget),
}

/** A week: long enough to roll a secret out everywhere, short enough that an old one is forgotten. */
const graceSecondsMax = 7 * 24 * 3600

export const requestsPerMinuteMax = 10_000_000

const Permissions = z
  .array(PermissionName)
  .min(1)
  .max(16)
  .transform((given) => [...new Set(given)])

export const KeyRateLimit = z.strictObject({
  requests_per_minute: z.int().min(1).max(requestsPerMinuteMax),
  burst: z.int().min(1).max(requestsPerMinuteMax),
})

export const ApiKey = namedObject("ApiKey", {
  id: z.string(),
  name: z.string(),
  permissions: z.array(PermissionName),
  scope: z.enum(["organization", "user"]),
  user_id: z.string().nullable().describe("Whose role a user-scoped key carries."),
  created_by: z.string().nullable().describe("The user who made it, where one did."),
  created_at: Datetime,
  updated_at: Datetime,
  expires_at: Datetime.nullable(),
  last_used_at: Datetime.nullable().describe("Written with some delay."),
  previous_secret_expires_at: Datetime.nullable().describe(
    "Until when the secret before the last rotation goes on working.",
  ),
  rate_limit: KeyRateLimit.nullable().describe("Null: the limit of the organization."),
  ...ShownKeyLimits,
  version: z.int().describe("Counts the changes; `If-Match` takes it."),
})
export type ApiKey = z.infer<typeof ApiKey>

export const ApiKeyWithSecret = namedObject("ApiKeyWithSecret", {
  ...ApiKey.shape,
  secret: shownOnce("The whole bearer value."),
})
export type ApiKeyWithSecret = z.infer<typeof ApiKeyWithSecret>

const keys = endpointGroup("/v1/organizations/{org_id}/api_keys", { area: "API keys", write: administer })
const key = keys.at("/{key_id}")

export const keyTable = {
  listApiKeys: keys.list({
    summary: "List API keys; newest first",
    of: ApiKey,
    // A key that an operator brought has an id of its own making.
    cursor: /^key_[0-9A-Za-z-]{1,64}$/,
  }),
  createApiKey: keys.post({
    summary:
      "Create an API key with permissions that its creator holds; members create user-scoped keys of their own",
    body: z.strictObject({
      name: Text(nameCharactersMax),
      permissions: Permissions,
      scope: z.enum(["organization", "user"]).default("organization"),
      expires_at: GivenTime.nullish(),
      rate_limit: KeyRateLimit.nullish(),
      ...GivenKeyLimits,
    }),
    output: ApiKeyWithSecret,
    secrets: ["secret"],
  }),
  updateApiKey: key.patch({
    summary: "Change an API key; If-Match prevents lost updates",
    body: z.strictObject({
      name: Text(nameCharactersMax).optional(),
      permissions: Permissions.optional(),
      expires_at: GivenTime.nullish(),
      rate_limit: KeyRateLimit.nullish(),
      ...GivenKeyLimits,
    }),
    output: ApiKey,
    errors: ["precondition_failed"],
  }),
  rotateApiKey: key.at("/rotate").post({
    summary: "Rotate an API key; the old secret stays valid for the grace time",
    body: z.strictObject({ grace_seconds: z.int().min(0).max(graceSecondsMax).default(0) }),
    output: ApiKeyWithSecret,
    secrets: ["secret"],
  }),
  deleteApiKey: key.remove({ summary: "Delete an API key" }),
}
