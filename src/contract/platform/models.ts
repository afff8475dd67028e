/** The model catalog as an organization sees it, and requests for access. */
import { z } from "zod"
import { apiWrite, endpointGroup } from "../endpoint-group.ts"
import { decidingFields } from "./connected-models.ts"
import { nullableRules } from "./virtual-models.ts"
import { Datetime } from "./field-schemas.ts"
import { namedObject } from "../endpoint.ts"

/** First that applies, in this order (`active` when none does). */
const modelStatuses = [
  "disabled",
  "access_pending",
  "access_required",
  "billing_setup_failed",
  "payment_method_required",
  "prepaid_credits_required",
  "spend_limit_exceeded",
  "active",
] as const
export type ModelStatus = (typeof modelStatuses)[number]

const VirtualEntry = namedObject("VirtualEntry", {
  id: z.string().nullable().describe("Null of those that the configuration has for every organization."),
  ...nullableRules,
})

const modelAccessStates = ["pending", "grant", "deny"] as const

export const ModelAbout = namedObject("ModelAbout", {
  parameters: z.string().describe("How many weights it has, as 110M."),
  file_bytes: z.int().describe("Of its files."),
  languages: z.array(z.string()).describe("That it has learnt, by their codes."),
  licence: z.string(),
  measured: z
    .array(z.object({ name: z.string(), value: z.string() }))
    .describe("Its quality and speed as measured; where and how is in its card."),
})

export type ModelAbout = z.infer<typeof ModelAbout>

export const OrgModel = namedObject("OrgModel", {
  model_sku: z.string(),
  model_kind: z.enum(["generation", "embedding"]),
  description: z.string().describe("Empty where the configuration has none."),
  developer: z.string().nullable(),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
  max_context_len: z.int(),
  quantization: z.string(),
  ...decidingFields,
  about: ModelAbout.nullable().describe("What is known of a model that comes with Umpire."),
  tools_supported: z.boolean(),
  public: z.boolean(),
  default_settings: z.record(z.string(), z.unknown()),
  price_m_input_tokens_usd: z.number(),
  price_m_input_cache_read_tokens_usd: z.number(),
  price_m_output_tokens_usd: z.number(),
  price_per_sec_usd: z.number(),
  status: z.enum(modelStatuses),
  access: z.enum(modelAccessStates).nullable().describe("Null when no access request exists."),
  virtual: VirtualEntry.nullable().describe(
    "What a virtual model stands for; null of a model. Its prices are the highest that a request can come to.",
  ),
})
export type OrgModel = z.infer<typeof OrgModel>

export const ModelAccessRequest = namedObject("ModelAccessRequest", {
  id: z.string(),
  model_sku: z.string(),
  state: z.enum(modelAccessStates),
  requested_by: z.string().nullable().describe("The user who asked, where one did."),
  created_at: Datetime,
  updated_at: Datetime,
  decided_at: Datetime.nullable(),
})
export type ModelAccessRequest = z.infer<typeof ModelAccessRequest>

const organization = endpointGroup("/v1/organizations/{org_id}", { area: "Models", write: apiWrite })
const accessRequests = organization.at("/model_access_requests")

export const modelTable = {
  listOrganizationModels: organization.at("/models").get({
    summary: "List the organization's models; the whole catalog, with what the organization may use",
    output: z.array(OrgModel),
  }),
  listModelAccessRequests: accessRequests.list({
    summary: "List requests for model access",
    of: ModelAccessRequest,
    cursor: "ma",
  }),
  requestModelAccess: accessRequests.post({
    summary: "Request access to a model; the operator decides",
    body: z.strictObject({ model_sku: z.string().min(1).max(256) }),
    output: ModelAccessRequest,
    errors: ["unknown_model", "conflict"],
  }),
}
