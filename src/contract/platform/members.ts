/** Members of an organization and the invitations that bring them in. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { StartedSession } from "./sessions.ts"
import {
  Datetime,
  EmailAddress,
  OrganizationPath,
  PathId,
  Person,
  RoleName,
  Text,
  nameCharactersMax,
  pageOf,
  pageQuery,
} from "./values.ts"
import { Password } from "./sessions.ts"

const surface = "platform"
const principals = ["session", "key"] as const
const read = { principals, permission: "api-read" } as const
const administer = { principals, permission: "api-admin", owner: "sessions" } as const

export const Member = z
  .object({
    user_id: z.string(),
    email: z.string(),
    name: z.string().nullable(),
    role: RoleName,
    created_at: Datetime.describe("When the user joined."),
    updated_at: Datetime,
  })
  .meta({ id: "Member" })
export type Member = z.infer<typeof Member>

export const Invitation = z
  .object({
    id: z.string(),
    email: z.string(),
    role: RoleName.describe("The role on acceptance."),
    created_at: Datetime,
    expires_at: Datetime,
    invited_by: Person,
  })
  .meta({ id: "Invitation" })
export type Invitation = z.infer<typeof Invitation>

export const SentInvitation = z
  .object({
    ...Invitation.shape,
    accept_token: z
      .string()
      .nullable()
      .describe("What accepts the invitation. Shown once: null when the request is repeated."),
  })
  .meta({ id: "SentInvitation" })
export type SentInvitation = z.infer<typeof SentInvitation>

const MemberPath = z.object({ org_id: PathId, user_id: PathId })
const InvitationPath = z.object({ org_id: PathId, invitation_id: PathId })

export const listMembers = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/members",
  area: "Members",
  surface,
  summary: "List members; newest first",
  access: read,
  params: OrganizationPath,
  query: pageQuery(/^\d{1,15}\.usr_[0-9a-z]{26}$/),
  output: pageOf(Member),
  wrap: "none",
})

export const updateMember = endpoint({
  method: "PATCH",
  path: "/v1/organizations/{org_id}/members/{user_id}",
  area: "Members",
  surface,
  summary: "Change the role of a member; the last primary owner stays one",
  access: administer,
  params: MemberPath,
  body: z.strictObject({ role: RoleName }),
  output: Member,
  errors: ["conflict"],
})

export const removeMember = endpoint({
  method: "DELETE",
  path: "/v1/organizations/{org_id}/members/{user_id}",
  area: "Members",
  surface,
  summary: "Remove a member; their sessions lose the organization and their user-scoped keys end",
  access: administer,
  params: MemberPath,
  output: z.void(),
  status: 204,
  errors: ["conflict"],
})

export const listInvitations = endpoint({
  method: "GET",
  path: "/v1/organizations/{org_id}/invites",
  area: "Invitations",
  surface,
  summary: "List pending invitations",
  access: read,
  params: OrganizationPath,
  output: z.array(Invitation),
})

export const createInvitation = endpoint({
  method: "POST",
  path: "/v1/organizations/{org_id}/invites",
  area: "Invitations",
  surface,
  summary: "Invite someone by email address",
  access: administer,
  params: OrganizationPath,
  body: z.strictObject({ email: EmailAddress, role: RoleName }),
  output: SentInvitation,
  secrets: ["accept_token"],
  errors: ["conflict"],
})

export const revokeInvitation = endpoint({
  method: "DELETE",
  path: "/v1/organizations/{org_id}/invites/{invitation_id}",
  area: "Invitations",
  surface,
  summary: "Revoke an invitation",
  access: administer,
  params: InvitationPath,
  output: z.void(),
  status: 204,
})

export const resendInvitation = endpoint({
  method: "POST",
  path: "/v1/organizations/{org_id}/invites/{invitation_id}/resend",
  area: "Invitations",
  surface,
  summary: "Resend an invitation; replaces its token and expiry",
  access: administer,
  params: InvitationPath,
  output: SentInvitation,
  secrets: ["accept_token"],
})

const invitationStates = ["open", "accepted", "revoked", "expired"] as const

export const InvitationDetails = z
  .object({
    state: z.enum(invitationStates).describe("Only an open invitation can be accepted."),
    organization_name: z.string(),
    invited_by: z.object({ email: z.string(), name: z.string().nullable() }),
    email: z.string().describe("Whom the invitation is for."),
    role: RoleName.describe("The role on acceptance."),
    expires_at: Datetime,
    user_exists: z
      .boolean()
      .describe("True when the address has a user, who signs in first; false when accepting makes one."),
  })
  .meta({ id: "InvitationDetails" })
export type InvitationDetails = z.infer<typeof InvitationDetails>

const openErrors = ["missing_credentials", "invalid_credentials", "authentication_failed"] as const

/** A POST, so that the token stands in no address and no proxy's log. */
export const describeInvitation = endpoint({
  method: "POST",
  path: "/v1/invites/describe",
  area: "Invitations",
  surface,
  summary: "Read an invitation by its token; who invites whom to what, and whether it can still be accepted",
  access: { principals: [] },
  body: z.strictObject({ token: z.string().min(1).max(256) }),
  output: InvitationDetails,
  errors: [...openErrors, "not_found", "rate_limited"],
})

export const AcceptedInvitation = z
  .object({
    organization_id: z.string(),
    role: RoleName,
    user: Person,
    session: StartedSession.nullable().describe("For a new user; null when a session accepted."),
  })
  .meta({ id: "AcceptedInvitation" })
export type AcceptedInvitation = z.infer<typeof AcceptedInvitation>

export const acceptInvitation = endpoint({
  method: "POST",
  path: "/v1/invites/accept",
  area: "Invitations",
  surface,
  summary: "Accept an invitation; as the user of the session, or as a new user when there is no session",
  access: { principals: [] },
  body: z.strictObject({
    token: z.string().min(1).max(256),
    name: Text(nameCharactersMax).optional(),
    password: Password.optional().describe("Needed for a new user, unless single sign-on is configured."),
  }),
  output: AcceptedInvitation,
  errors: [
    ...openErrors,
    "principal_not_accepted",
    "permission_denied",
    "not_found",
    "conflict",
    "rate_limited",
    "overloaded",
  ],
})
