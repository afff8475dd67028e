/** Organizations: what they are, what they may use, and their settings. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { Datetime, OrganizationPath, RoleName, Text, nameCharactersMax } from "./values.ts"

const area = "Organizations"
const surface = "platform"
const principals = ["session", "key"] as const

/** Ten years: longer than anyone keeps a stored response, and far from what a date can hold. */
const storedResponsesDaysMax = 3650

const DataPersistenceConfig = z
  .object({
    stored_responses_days: z
      .int()
      .min(0)
      .max(storedResponsesDaysMax)
      .nullable()
      .describe("Days that stored responses are kept; null is the default of 30, zero stores nothing."),
  })
  .meta({ id: "DataPersistenceConfig" })

const organizationFields = {
  id: z.string(),
  name: z.string(),
  billing_account_id: z.string(),
  created_at: Datetime,
  updated_at: Datetime,
  is_personal: z.boolean(),
  data_persistence: DataPersistenceConfig,
  role: RoleName.describe("The console user's role, or `member` for an organization-scoped API key."),
}

export const OrganizationItem = z.object(organizationFields).meta({ id: "OrganizationItem" })
export type OrganizationItem = z.infer<typeof OrganizationItem>

export const Organization = z
  .object({
    ...organizationFields,
    counts: z
      .object({
        members: z.int().describe("Active members."),
        primary_owners: z.int().describe("Active primary owners."),
      })
      .meta({ id: "OrganizationCounts" }),
  })
  .meta({ id: "Organization" })
export type Organization = z.infer<typeof Organization>

export const OrganizationResources = z
  .object({
    regions: z
      .array(
        z.object({
          id: z.string(),
          country: z.string(),
          latitude: z.number(),
          longitude: z.number(),
          home: z.boolean().describe("Whether the gateway that answers stands here."),
          models: z.array(z.string()).describe("The models that run here, by SKU."),
        }),
      )
      .describe("Regions visible to it."),
    rate_limit: z.object({ requests_per_minute: z.int(), burst: z.int() }),
    counts: z.object({
      members: z.int(),
      api_keys: z.int(),
      pending_invitations: z.int(),
      models: z.int().describe("Models that it may use."),
    }),
  })
  .meta({ id: "OrganizationResources" })
export type OrganizationResources = z.infer<typeof OrganizationResources>

export const listOrganizations = endpoint({
  method: "GET",
  path: "/v1/organizations",
  area,
  surface,
  summary: "List organizations; those of the session's user, or the one of the API key",
  access: { principals, permission: "api-read" },
  output: z.array(OrganizationItem),
  errors: ["not_found"],
})

/** Organizations of which one user may be the primary owner by creating them. */
export const createdOrganizationsMax = 20

export const createOrganization = endpoint({
  method: "POST",
  path: "/v1/organizations",
  area,
  surface,
  summary: `Create an organization; it has a billing account of its own, and the caller is its primary owner. One user creates at most ${createdOrganizationsMax}`,
  access: { principals: ["session"] },
  body: z.strictObject({ name: Text(nameCharactersMax) }),
  output: OrganizationItem,
  errors: ["conflict"],
})

export const getOrganization = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}",
  area,
  surface,
  summary: "Read an organization",
  access: { principals, permission: "api-read" },
  params: OrganizationPath,
  output: Organization,
})

export const updateOrganization = endpoint({
  method: "PATCH",
  path: "/v1/organizations/{org_id}",
  area,
  surface,
  summary: "Change an organization; its name or settings. If-Match prevents lost updates",
  access: { principals, permission: "api-admin", owner: "sessions" },
  params: OrganizationPath,
  body: z.strictObject({
    name: Text(nameCharactersMax).optional(),
    data_persistence: z.strictObject(DataPersistenceConfig.shape).optional(),
  }),
  output: Organization,
  errors: ["precondition_failed"],
})

export const getOrganizationResources = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/resources",
  area,
  surface,
  summary: "Read limits and resources; regions, rate limits and counts",
  access: { principals, permission: "api-read" },
  params: OrganizationPath,
  output: OrganizationResources,
})
