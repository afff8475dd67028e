/** The sessions of a user and of an organization's members, and whether they must begin with single sign-on. */
import { z } from "zod"
import { apiRead, endpointGroup, ownersAdmin, sessionOnly } from "../endpoint-group.ts"
import { Datetime, Person, RoleName } from "./values.ts"

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

const sessions = endpointGroup("/v1/sessions", { area: "Sessions", read: sessionOnly, write: sessionOnly })
const memberSessions = endpointGroup("/v1/organizations/{org_id}/sessions", {
  area: "Sessions",
  read: ownersAdmin,
  write: ownersAdmin,
})
const singleSignOn = endpointGroup("/v1/organizations/{org_id}/single_sign_on", {
  area: "Sessions",
  read: apiRead,
  write: ownersAdmin,
})

export const sessionListTable = {
  listSessions: sessions.get({
    summary: "List the sessions of the signed-in user; the latest 200",
    output: z.array(OwnSession),
  }),
  endSession: sessions.at("/{session_id}").remove({ summary: "End a session of the signed-in user" }),
  listMemberSessions: memberSessions.get({
    summary: "List the sessions of the members; the latest 200",
    output: z.array(MemberSession),
  }),
  endMemberSession: memberSessions.at("/{session_id}").remove({ summary: "End a session of a member" }),
  getSingleSignOnPolicy: singleSignOn.get({
    summary: "Read who joins by single sign-on, and whether it is required",
    output: SingleSignOnPolicy,
  }),
  putSingleSignOnPolicy: singleSignOn.put({
    summary: "Require single sign-on, or no longer; requiring it needs a session that began with it",
    access: { principals: ["session"], permission: "api-admin", owner: "everyone" },
    body: z.strictObject({ required: z.boolean() }),
    output: SingleSignOnPolicy,
  }),
}
