/** Who did what in an organization. */
import { z } from "zod"
import { Document, namedObject } from "../endpoint.ts"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { Datetime, GivenTime, OrganizationPath, idForm, pageOf, pageQuery } from "./field-schemas.ts"

const filter = z
  .string()
  .regex(/^[\w.:@+/-]{1,256}$/)
  .optional()

export const AuditLogEntry = namedObject("AuditLogEntry", {
  id: z.string(),
  at: Datetime,
  actor: z.object({
    kind: z.enum(["session", "key", "workload", "operator", "system"]),
    id: z.string().nullable().describe("The user of a session, the key, or the identity provider."),
    name: z.string().nullable().describe("The email address or the name of the key, while it exists."),
  }),
  ip: z.string().nullable(),
  user_agent: z.string().nullable(),
  action: z.string(),
  resource: z.object({ type: z.string(), id: z.string().nullable() }),
  before: z.unknown().describe("The resource before, as far as it changed; null when it is new."),
  after: z.unknown().describe("The resource after, as far as it changed; null when it is gone."),
  hash: z.string().describe("Links the entry to the one before it; `umpire audit verify` checks the chain."),
})
export type AuditLogEntry = z.infer<typeof AuditLogEntry>

const FilterQuery = z.object({
  actor: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe("A user, key or identity provider: by id, email address or name."),
  action: filter.describe("An action, such as `api_key.create`."),
  resource: filter.describe("A resource by id, or a kind of resource such as `api_key`."),
  from: GivenTime.optional().describe("Inclusive."),
  to: GivenTime.optional().describe("Exclusive."),
})

const common = {
  method: "GET",
  area: "Audit log",
  surface: "platform",
  access: { principals: ["session", "key"], permission: "api-admin" },
  params: OrganizationPath,
} as const

export const AuditLogFilters = namedObject("AuditLogFilters", {
  actors: z
    .array(AuditLogEntry.shape.actor)
    .describe("Who has made changes, those with a name first; at most 1,000."),
  actions: z.array(z.string()).describe("The actions that occur."),
  resource_types: z.array(z.string()).describe("The kinds of resource that occur."),
})
export type AuditLogFilters = z.infer<typeof AuditLogFilters>

export const auditExportEntriesMax = 10_000

const auditLog = endpointGroup("/v1/organizations/{org_id}/audit_log", {
  area: "Audit log",
  read: apiAdmin,
  write: apiAdmin,
})

export const auditLogTable = {
  listAuditLog: auditLog.get({
    ...common,
    summary: "List the audit log; newest first",
    query: z.object({ ...pageQuery(idForm("aud")).shape, ...FilterQuery.shape }),
    output: pageOf(AuditLogEntry),
    wrap: "none",
  }),
  listAuditLogFilters: auditLog
    .at("/filters")
    .get({ ...common, summary: "List the values of audit log filters", output: AuditLogFilters }),
  exportAuditLog: auditLog.at("/export").get({
    ...common,
    summary: `Export the audit log as CSV; newest first, at most ${auditExportEntriesMax.toLocaleString("en")} entries`,
    query: FilterQuery,
    output: z.instanceof(Document),
    produces: "text/csv",
  }),
}
