/** The sessions of a user and of an organization's members, and whether they must begin with single sign-on. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { Datetime, OrganizationPath, PathId, Person, RoleName } from "./values.ts"

const area = "Sessions"
const surface = "platform"
const sessions = { principals: ["session"] } as const
const administer = {
  principals: ["session", "key"],
  permission: "api-admin",
  owner: "sessions",
} as const

export const sessionMethods = ["password", "link", "invitation", "sso"] as const

const sessionFields = {
  id: z.string(),
  method: z.enum(sessionMethods).nullable().describe("How it began; null where an earlier version began it."),
  ip: z.string().nullable(),
  user_agent: z.string().nullable(),
  created_at: Datetime,
  last_seen_at: Datetime.describe("Written with some delay."),
  expires_at: Datetime.describe("It ends earlier when it is idle for 12 hours."),
}

export const OwnSession = z
  .object({ ...sessionFields, current: z.boolean().describe("Whether it is the one that asks.") })
  .meta({ id: "OwnSession" })
export type OwnSession = z.infer<typeof OwnSession>

export const MemberSession = z.object({ ...sessionFields, user: Person }).meta({ id: "MemberSession" })
export type MemberSession = z.infer<typeof MemberSession>

export const listSessions = endpoint({
  method: "GET",
  path: "/v1/sessions",
  area,
  surface,
  summary: "List the sessions of the signed-in user; the latest 200",
  access: sessions,
  output: z.array(OwnSession),
})

export const endSession = endpoint({
  method: "DELETE",
  path: "/v1/sessions/{session_id}",
  area,
  surface,
  summary: "End a session of the signed-in user",
  access: sessions,
  params: z.object({ session_id: PathId }),
  output: z.void(),
  status: 204,
})

export const listMemberSessions = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/sessions",
  area,
  surface,
  summary: "List the sessions of the members; the latest 200",
  access: administer,
  params: OrganizationPath,
  output: z.array(MemberSession),
})

export const endMemberSession = endpoint({
  method: "DELETE",
  path: "/v1/organizations/{org_id}/sessions/{session_id}",
  area,
  surface,
  summary: "End a session of a member",
  access: administer,
  params: z.object({ org_id: PathId, session_id: PathId }),
  output: z.void(),
  status: 204,
})

export const SingleSignOnPolicy = z
  .object({
    required: z
      .boolean()
      .describe("Whether sessions that began without single sign-on are refused with 403."),
    email_domains: z
      .array(z.string())
      .describe("Who signs in with a verified address of these becomes a member; set by the operator."),
    groups: z
      .array(z.string())
      .describe("Whom the provider counts to one of these becomes a member; set by the operator."),
    role: RoleName.describe("The role of those who join so."),
  })
  .meta({ id: "SingleSignOnPolicy" })
export type SingleSignOnPolicy = z.infer<typeof SingleSignOnPolicy>

export const getSingleSignOnPolicy = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/single_sign_on",
  area,
  surface,
  summary: "Read who joins by single sign-on, and whether it is required",
  access: { principals: ["session", "key"], permission: "api-read" },
  params: OrganizationPath,
  output: SingleSignOnPolicy,
})

export const putSingleSignOnPolicy = endpoint({
  method: "PUT",
  path: "/v1/organizations/{org_id}/single_sign_on",
  area,
  surface,
  summary: "Require single sign-on, or no longer; requiring it needs a session that began with it",
  access: { principals: ["session"], permission: "api-admin", owner: "everyone" },
  params: OrganizationPath,
  body: z.strictObject({ required: z.boolean() }),
  output: SingleSignOnPolicy,
})

export const sessionListTable = {
  listSessions,
  endSession,
  listMemberSessions,
  endMemberSession,
  getSingleSignOnPolicy,
  putSingleSignOnPolicy,
}
