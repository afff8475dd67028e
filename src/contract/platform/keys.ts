/** API keys of an organization. */
import { z } from "zod"
import { apiAdmin, apiRead, endpointGroup } from "../endpoint-group.ts"
import { GivenKeyLimits, ShownKeyLimits } from "./key-limits.ts"
import { Datetime, GivenTime, PermissionName, Text, nameCharactersMax } from "./values.ts"

/** Members change the keys that are their own; the handlers check whose key it is. */
const administer = { ...apiAdmin, anyMember: true } as const

/** A week: long enough to roll a secret out everywhere, short enough that an old one is forgotten. */
const graceSecondsMax = 7 * 24 * 3600

const requestsPerMinuteMax = 10_000_000

const Permissions = z
  .array(PermissionName)
  .min(1)
  .max(16)
  .transform((given) => [...new Set(given)])

export const KeyRateLimit = z.strictObject({
  requests_per_minute: z.int().min(1).max(requestsPerMinuteMax),
  burst: z.int().min(1).max(requestsPerMinuteMax),
})

export const ApiKey = z
  .object({
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
  .meta({ id: "ApiKey" })
export type ApiKey = z.infer<typeof ApiKey>

export const ApiKeyWithSecret = z
  .object({
    ...ApiKey.shape,
    secret: z
      .string()
      .nullable()
      .describe("The whole bearer value. Shown once: null when the request is repeated."),
  })
  .meta({ id: "ApiKeyWithSecret" })
export type ApiKeyWithSecret = z.infer<typeof ApiKeyWithSecret>

const keys = endpointGroup("/v1/organizations/{org_id}/api_keys", {
  area: "API keys",
  read: apiRead,
  write: administer,
})
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
