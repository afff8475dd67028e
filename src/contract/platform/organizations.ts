/** Organizations: what they are, what they may use, and their settings. */
import { z } from "zod"
import { endpointGroup, ownersAdmin, sessionOnly } from "../endpoint-group.ts"
import { Datetime, RoleName, Text, nameCharactersMax } from "./field-schemas.ts"
import { namedObject } from "../endpoint.ts"

/** Ten years: longer than anyone keeps a stored response, and far from what a date can hold. */
export const storedResponsesDaysMax = 3650

const DataPersistenceConfig = namedObject("DataPersistenceConfig", {
  stored_responses_days: z
    .int()
    .min(0)
    .max(storedResponsesDaysMax)
    .nullable()
    .describe("Days that stored responses are kept; null is the default of 30, zero stores nothing."),
})

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

export const Organization = namedObject("Organization", {
  ...organizationFields,
  counts: z
    .object({
      members: z.int().describe("Active members."),
      primary_owners: z.int().describe("Active primary owners."),
    })
    .meta({ id: "OrganizationCounts" }),
})
export type Organization = z.infer<typeof Organization>

export const OrganizationResources = namedObject("OrganizationResources", {
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
export type OrganizationResources = z.infer<typeof OrganizationResources>

/** Organizations of which one user may be the primary owner by creating them. */
export const createdOrganizationsMax = 20

const organizations = endpointGroup("/v1/organizations", { area: "Organizations", write: ownersAdmin })
const organization = organizations.at("/{org_id}")

export const organizationTable = {
  listOrganizations: organizations.get({
    summary: "List organizations; those of the session's user, or the one of the API key",
    output: z.array(OrganizationItem),
    errors: ["not_found"],
  }),
  createOrganization: organizations.post({
    summary: `Create an organization; it has a billing account of its own, and the caller is its primary owner. One user creates at most ${createdOrganizationsMax}`,
    access: sessionOnly,
    body: z.strictObject({ name: Text(nameCharactersMax) }),
    output: OrganizationItem,
    errors: ["conflict"],
  }),
  getOrganization: organization.get({ summary: "Read an organization", output: Organization }),
  updateOrganization: organization.patch({
    summary: "Change an organization; its name or settings. If-Match prevents lost updates",
    body: z.strictObject({
      name: Text(nameCharactersMax).optional(),
      data_persistence: z.strictObject(DataPersistenceConfig.shape).optional(),
    }),
    output: Organization,
    errors: ["precondition_failed"],
  }),
  getOrganizationResources: organization.at("/resources").get({
    summary: "Read limits and resources; regions, rate limits and counts",
    output: OrganizationResources,
  }),
}
