/** Who did what in an organization. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { Datetime, OrganizationPath, PageQuery, pageOf } from "./values.ts"

const filter = z
  .string()
  .regex(/^[\w.:@+/-]{1,256}$/)
  .optional()

export const AuditLogEntry = z
  .object({
    id: z.string(),
    at: Datetime,
    actor: z.object({
      kind: z.enum(["session", "key", "workload", "system"]),
      id: z.string().nullable().describe("The user of a session, the key, or the identity provider."),
      name: z.string().nullable().describe("The email address or the name of the key, while it exists."),
    }),
    ip: z.string().nullable(),
    user_agent: z.string().nullable(),
    action: z.string(),
    resource: z.object({ type: z.string(), id: z.string().nullable() }),
    before: z.unknown().describe("The resource before, as far as it changed; null when it is new."),
    after: z.unknown().describe("The resource after, as far as it changed; null when it is gone."),
    hash: z
      .string()
      .describe("Links the entry to the one before it; `umpire audit verify` checks the chain."),
  })
  .meta({ id: "AuditLogEntry" })
export type AuditLogEntry = z.infer<typeof AuditLogEntry>

export const listAuditLog = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/audit_log",
  area: "Audit log",
  surface: "platform",
  summary: "Changes, newest first",
  access: { principals: ["session", "key"], permission: "api-admin" },
  params: OrganizationPath,
  query: z.object({
    ...PageQuery.shape,
    actor: filter.describe("A user, key or identity provider, by id."),
    action: filter.describe("An action, such as `api_key.create`."),
    resource: filter.describe("A resource by id, or a kind of resource such as `api_key`."),
    from: z.iso.datetime({ offset: true }).optional().describe("Inclusive."),
    to: z.iso.datetime({ offset: true }).optional().describe("Exclusive."),
  }),
  output: pageOf(AuditLogEntry),
  wrap: "none",
})
