/** API keys of an organization. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { GivenKeyLimits, ShownKeyLimits } from "./key-limits.ts"
import {
  Datetime,
  GivenTime,
  OrganizationPath,
  PathId,
  PermissionName,
  Text,
  nameCharactersMax,
  pageOf,
  pageQuery,
} from "./values.ts"

const area = "API keys"
const surface = "platform"
const principals = ["session", "key"] as const
/** Members change the keys that are their own; the handlers check whose key it is. */
const administer = { principals, permission: "api-admin", anyMember: true } as const

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

const KeyPath = z.object({ org_id: PathId, key_id: PathId })

export const listApiKeys = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/api_keys",
  area,
  surface,
  summary: "List API keys; newest first",
  access: { principals, permission: "api-read" },
  params: OrganizationPath,
  // A key that an operator brought has an id of its own making.
  query: pageQuery(/^key_[0-9A-Za-z-]{1,64}$/),
  output: pageOf(ApiKey),
  wrap: "none",
})

export const createApiKey = endpoint({
  method: "POST",
  path: "/v1/organizations/{org_id}/api_keys",
  area,
  surface,
  summary:
    "Create an API key with permissions that its creator holds; members create user-scoped keys of their own",
  access: administer,
  params: OrganizationPath,
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
})

export const updateApiKey = endpoint({
  method: "PATCH",
  path: "/v1/organizations/{org_id}/api_keys/{key_id}",
  area,
  surface,
  summary: "Change an API key; If-Match prevents lost updates",
  access: administer,
  params: KeyPath,
  body: z.strictObject({
    name: Text(nameCharactersMax).optional(),
    permissions: Permissions.optional(),
    expires_at: GivenTime.nullish(),
    rate_limit: KeyRateLimit.nullish(),
    ...GivenKeyLimits,
  }),
  output: ApiKey,
  errors: ["precondition_failed"],
})

export const rotateApiKey = endpoint({
  method: "POST",
  path: "/v1/organizations/{org_id}/api_keys/{key_id}/rotate",
  area,
  surface,
  summary: "Rotate an API key; the old secret stays valid for the grace time",
  access: administer,
  params: KeyPath,
  body: z.strictObject({ grace_seconds: z.int().min(0).max(graceSecondsMax).default(0) }),
  output: ApiKeyWithSecret,
  secrets: ["secret"],
})

export const deleteApiKey = endpoint({
  method: "DELETE",
  path: "/v1/organizations/{org_id}/api_keys/{key_id}",
  area,
  surface,
  summary: "Delete an API key",
  access: administer,
  params: KeyPath,
  output: z.void(),
  status: 204,
})
