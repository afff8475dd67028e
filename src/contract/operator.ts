/**
 * What an operator may ask of an installation, over the socket of its data directory: endpoints of its own, and those of the
 * Platform API that an operator uses in any organization. None of its own are served over HTTP or in the OpenAPI document.
 */
import { z } from "zod"
import { endpointGroup } from "./endpoint-group.ts"
import { FleetState, GatewayState } from "./fleet-report.ts"
import { identityEndpoints } from "./identity.ts"
import { CheckState, GivenConnectedModel, Sku, Usd, decidingFields } from "./platform/connected-models.ts"
import { ModelAccessRequest } from "./platform/models.ts"
import { SingleSignOnPolicy } from "./platform/sessions.ts"
import { platformTable } from "./table.ts"
import {
  VirtualModel,
  optionalRules,
  virtualModelLimits,
  virtualNameForm,
} from "./platform/virtual-models.ts"
import { EmailAddress, GivenTime, Text, nameCharactersMax } from "./platform/field-schemas.ts"

const callers = { principals: ["operator"] } as const
const operator = endpointGroup("/v1/operator", { area: "Operator", read: callers, write: callers })
const organizations = operator.at("/organizations")
const organization = organizations.at("/{org_id}")

const limitMax = 10_000_000
const Limit = z.int().min(1).max(limitMax)

export const ListedOrganization = z.object({
  id: z.string(),
  name: z.string(),
  billing_account_id: z.string(),
  is_personal: z.boolean(),
  members: z.int(),
})

const organizationEndpoints = {
  listAllOrganizations: organizations.get({
    summary: "List the organizations; the newest 1000",
    output: z.array(ListedOrganization),
  }),
  openOrganization: organizations.post({
    summary:
      "Create an organization; and its owner, with a link for the first sign-in, where no user has the address",
    body: z.strictObject({
      name: Text(nameCharactersMax),
      owner: EmailAddress,
      billing_account: z.string().optional(),
    }),
    output: z.object({
      id: z.string(),
      name: z.string(),
      billing_account_id: z.string(),
      owner: z.string(),
      link: z.string().nullable(),
      url: z.string().nullable(),
    }),
    secrets: ["link", "url"],
  }),
  limitOrganization: organization.patch({
    summary: "Change the limits of an organization",
    body: z.strictObject({
      requests_per_minute: Limit.optional(),
      burst: Limit.optional(),
      regions: z
        .array(z.string().min(1).max(64))
        .max(1000)
        .optional()
        .describe("An empty list shows every region again."),
    }),
    output: z.object({
      id: z.string(),
      requests_per_minute: z.int().nullable(),
      burst: z.int().nullable(),
      regions: z.array(z.string()).readonly().nullable(),
    }),
  }),
  changeSingleSignOn: organization.at("/single_sign_on").patch({
    summary: "Change who joins an organization by single sign-on, and whether it is required",
    body: z.strictObject({
      email_domains: z
        .array(
          z
            .string()
            .trim()
            .toLowerCase()
            .regex(/^[a-z0-9.-]{1,253}$/, "a domain is needed, as example.com"),
        )
        .max(100)
        .optional(),
      groups: z.array(z.string().min(1).max(256)).max(100).optional(),
      role: z.enum(["member", "owner"]).optional(),
      required: z.boolean().optional(),
    }),
    output: z.object({ id: z.string(), ...SingleSignOnPolicy.shape }),
  }),
  deleteOrganization: organization.remove({
    summary: "Delete an organization, with its question sets, kept content and files",
  }),
  decideModelAccess: organization.at("/model_access").put({
    summary: "Grant an organization a model that is not public, or deny it",
    body: z.strictObject({ model: z.string(), state: z.enum(["grant", "deny"]) }),
    output: ModelAccessRequest,
  }),
  verifyAuditLogs: operator.at("/audit_log/verification").get({
    summary: "Check that no entry of an audit log was changed, removed or slipped in",
    query: z.object({ organization: z.string().optional() }),
    output: z.array(
      z.object({
        organization_id: z.string(),
        intact: z.boolean(),
        position: z.number().describe("Entries when intact, else the place of the first flaw."),
        reason: z.string().nullable(),
      }),
    ),
  }),
}

const virtualModels = organization.at("/virtual_models")

const modelEndpoints = {
  listVirtualModels: virtualModels.get({
    summary: "List the virtual models of an organization",
    output: z.array(VirtualModel),
  }),
  saveVirtualModel: virtualModels.put({
    summary: "Create a virtual model, or give the one of this name another rule",
    body: z.strictObject({
      name: z
        .string()
        .max(virtualModelLimits.nameCharactersMax)
        .regex(virtualNameForm, { error: "letters, digits and . _ - / : are needed" }),
      ...optionalRules,
    }),
    output: VirtualModel,
  }),
  removeVirtualModel: virtualModels
    .at("/{name}", { name: z.string() })
    .remove({ summary: "Delete a virtual model by its name" }),
}

/** A model of the catalog, as the command line lists it. */
export const CatalogModel = z.object({
  sku: z.string(),
  kind: z.string(),
  purpose: z.string().describe("What it is for, such as decisions."),
  ...decidingFields,
  context: z.number(),
  quantization: z.string(),
  description: z.string(),
  languages: z.array(z.string()).nullable().describe("That it has learnt, by their codes; null: not known."),
  licence: z.string().nullable(),
})

/** A model of the catalog that is a file. */
export const GivenModel = z.strictObject({
  file: z.string().min(1),
  sku: Sku.optional(),
  kind: z.enum(["generation", "embedding"]).optional(),
  adapter: z.string().min(1).optional(),
})

const remoteEndpoints = {
  connectModel: operator.at("/models/connected").post({
    summary:
      "Add a model at another server by its address and key; it is asked at once, and the key is kept encrypted",
    body: GivenConnectedModel,
    output: CatalogModel,
  }),
  checkModel: operator.at("/models/check").post({
    summary: "Calibrate a chat model on 200 rows; without a limit of the cost only say what it can cost",
    body: z.strictObject({ model: z.string().min(1).max(256), cost_max_usd: Usd.optional() }),
    output: CheckState,
  }),
}

/** They need no store. */
const catalogEndpoints = {
  listCatalog: operator
    .at("/models")
    .get({ summary: "List the models of the catalog", output: z.array(CatalogModel) }),
  addModel: operator.at("/models").post({
    summary: "Add a model from a file on the machine of the server; it stays after a restart",
    body: GivenModel,
    output: CatalogModel,
  }),
}

const UserLink = z.object({
  id: z.string(),
  email: z.string(),
  link: z.string(),
  url: z.string(),
  expires_at: z.string(),
})

const userEndpoints = {
  listUsers: operator.at("/users").get({
    summary: "List the users; the newest 1000",
    output: z.array(
      z.object({
        id: z.string(),
        email: z.string(),
        name: z.string().nullable(),
        has_password: z.boolean(),
        organizations: z.int(),
      }),
    ),
  }),
  createSignInLink: operator.at("/users/link").post({
    summary: "Make a link that signs a user in once; the first user where no address is given",
    body: z.strictObject({ email: z.string().optional() }),
    output: UserLink,
    secrets: ["link", "url"],
  }),
  resetPassword: operator.at("/users/reset").post({
    summary:
      "Remove the password and the second factor of a user and end all sessions; the link signs in once",
    body: z.strictObject({ email: z.string() }),
    output: z.object({ ...UserLink.shape, sessions_ended: z.int() }),
    secrets: ["link", "url"],
  }),
}

const centsMax = 100_000_000
const account = z.string().optional().describe("A billing account, or an organization that it pays for.")

const Move = z.strictObject({
  account,
  cents: z.int().min(-centsMax).max(centsMax),
  reason: z.string().trim().min(1).max(500),
  reference: z.string().min(1).max(200).optional(),
})
const Moved = z.object({
  billing_account_id: z.string(),
  reference: z.string(),
  amount_cents: z.number(),
  balance_cents: z.number(),
})

const billingEndpoints = {
  creditAccount: operator
    .at("/billing/credit")
    .post({ summary: "Add credit to a billing account", body: Move, output: Moved }),
  adjustAccount: operator
    .at("/billing/adjustment")
    .post({ summary: "Correct the balance of a billing account", body: Move, output: Moved }),
  setAccount: operator.at("/billing/account").patch({
    summary: "Change how a billing account pays, and through whom",
    body: z.strictObject({
      account,
      provider: z.enum(["local", "stripe"]).optional(),
      mode: z.enum(["prepaid", "postpaid"]).optional(),
    }),
    output: z.object({ billing_account_id: z.string(), provider: z.string(), mode: z.string() }),
  }),
  listLedger: operator.at("/billing/ledger").get({
    summary: "List the ledger of a billing account; newest first",
    query: z.object({
      account,
      limit: z.coerce.number().int().min(1).max(1000).default(50),
      cursor: z.string().optional(),
    }),
    output: z.object({
      billing_account_id: z.string(),
      entries: z.array(
        z.object({
          id: z.string(),
          at: z.string(),
          kind: z.string(),
          amount_ticks: z.string(),
          amount_cents: z.number(),
          reference: z.string(),
          note: z.string().nullable(),
          organization_id: z.string().nullable(),
          model: z.string().nullable(),
          day: z.string().nullable(),
          sequences: z.number().nullable(),
        }),
      ),
      next_cursor: z.string().nullable(),
    }),
  }),
  verifyBilling: operator.at("/billing/verification").get({
    summary:
      "Check that every balance is the sum of its ledger, the journal is drained and no lease is leaked",
    output: z.object({
      ok: z.boolean(),
      problems: z.array(z.string()),
      notes: z.array(z.string()).readonly(),
      journal: z.object({ gatewayId: z.string().nullable(), pendingRecords: z.number() }),
      accounts: z.array(
        z.object({
          billing_account_id: z.string(),
          balance_cents: z.number(),
          ledger_cents: z.number(),
          usage_cents: z.number(),
          held_cents: z.number(),
        }),
      ),
    }),
  }),
  releaseGateway: operator.at("/billing/release").post({
    summary: "Give up the holds of a gateway that will not come back",
    body: z.strictObject({ gateway: z.string().min(1) }),
    output: z.object({ gateway: z.string(), released_cents: z.number() }),
  }),
}

const range = { from: GivenTime.optional(), to: GivenTime.optional() }
const Counted = z.object({ events: z.number() })

const eventEndpoints = {
  getEventHoldings: operator.at("/events").get({
    summary: "Read how many events are kept, and from when",
    output: z.object({
      events: z.number(),
      oldestMs: z.number().nullable(),
      newestMs: z.number().nullable(),
    }),
  }),
  importEvents: operator.at("/events/import").post({
    summary: "Import events from a file on the machine of the server",
    body: z.strictObject({ file: z.string().min(1) }),
    output: Counted,
  }),
  exportEvents: operator.at("/events/export").post({
    summary: "Export events into a file on the machine of the server",
    body: z.strictObject({ file: z.string().min(1), organization: z.string().optional(), ...range }),
    output: Counted,
  }),
  pruneEvents: operator.at("/events/prune").post({
    summary: "Delete events that are older than so many days",
    body: z.strictObject({ days: z.int().min(1).max(36_500).optional() }),
    output: z.object({ before: z.string(), pruned: z.number(), kept: z.number() }),
  }),
  verifyEvents: operator.at("/events/verification").get({
    summary: "Compare the charged events with the ledger",
    query: z.object(range),
    output: z.object({
      ok: z.boolean(),
      from: z.string(),
      to: z.string(),
      events: z.number(),
      ledger: z.number(),
      differences: z.array(
        z.object({
          organization_id: z.string(),
          billing_account_id: z.string(),
          day: z.string(),
          field: z.string(),
          events: z.string(),
          ledger: z.string(),
        }),
      ),
      differences_count: z.number(),
    }),
  }),
}

const backupEndpoints = {
  takeBackup: operator.at("/backup").post({
    summary: "Write everything that is kept into one file on the machine of the server",
    body: z.strictObject({ file: z.string().min(1), with_content_key: z.boolean().default(true) }),
    output: z.object({ file: z.string(), rows: z.number(), created_at: z.string() }),
  }),
}

const GivenWorker = z.strictObject({ worker: z.string().min(1).max(256) })
const Drained = z.object({ worker: z.string(), drained: z.boolean() })

/** Only a server that runs can answer them. */
const fleetEndpoints = {
  getStatus: operator.at("/status").get({
    summary: "Read the state of this gateway: regions, workers, queues, leases and journal",
    output: GatewayState,
  }),
  getFleet: operator
    .at("/fleet")
    .get({ summary: "Read the state of every gateway of the installation", output: FleetState }),
  drainWorker: operator
    .at("/workers/drain")
    .post({ summary: "Take a worker out of service at every gateway", body: GivenWorker, output: Drained }),
  undrainWorker: operator
    .at("/workers/undrain")
    .post({ summary: "Put a worker back into service at every gateway", body: GivenWorker, output: Drained }),
}

const { listWorkloadIdentityProviders, testWorkloadIdentityProvider } = identityEndpoints
const { listApiKeys, createApiKey, updateApiKey, deleteApiKey } = platformTable
const { listTagBudgets, putTagBudget, listModelAccessRequests } = platformTable

/** Endpoints of the Platform API that the operator calls, in any organization. */
const platformEndpoints = {
  listApiKeys,
  createApiKey,
  updateApiKey,
  deleteApiKey,
  listTagBudgets,
  putTagBudget,
  listModelAccessRequests,
  listWorkloadIdentityProviders,
  testWorkloadIdentityProvider,
}

export const operatorTable = {
  ...organizationEndpoints,
  ...modelEndpoints,
  ...catalogEndpoints,
  ...remoteEndpoints,
  ...userEndpoints,
  ...billingEndpoints,
  ...eventEndpoints,
  ...backupEndpoints,
  ...fleetEndpoints,
  ...platformEndpoints,
}

export type OperatorTable = typeof operatorTable
export type BillingOperatorTable = typeof billingEndpoints
export type CatalogOperatorTable = typeof catalogEndpoints
export type RemoteOperatorTable = typeof remoteEndpoints
export type EventOperatorTable = typeof eventEndpoints
export type BackupOperatorTable = typeof backupEndpoints
export type FleetOperatorTable = typeof fleetEndpoints
export type StoreOperatorTable = typeof organizationEndpoints &
  typeof modelEndpoints &
  typeof userEndpoints &
  Omit<typeof platformEndpoints, "listWorkloadIdentityProviders" | "testWorkloadIdentityProvider">
