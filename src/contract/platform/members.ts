/** Members of an organization and the invitations that bring them in. */
import { z } from "zod"
import { anyone, endpointGroup, ownersAdmin, openErrors } from "../endpoint-group.ts"
import { StartedSession } from "./sessions.ts"
import {
  Datetime,
  EmailAddress,
  Person,
  RoleName,
  Text,
  nameCharactersMax,
  shownOnce,
} from "./field-schemas.ts"
import { Password } from "./sessions.ts"
import { namedObject } from "../endpoint.ts"

export const Member = namedObject("Member", {
  user_id: z.string(),
  email: z.string(),
  name: z.string().nullable(),
  role: RoleName,
  created_at: Datetime.describe("When the user joined."),
  updated_at: Datetime,
})
export type Member = z.infer<typeof Member>

export const Invitation = namedObject("Invitation", {
  id: z.string(),
  email: z.string(),
  role: RoleName.describe("The role on acceptance."),
  created_at: Datetime,
  expires_at: Datetime,
  invited_by: Person,
})
export type Invitation = z.infer<typeof Invitation>

export const SentInvitation = namedObject("SentInvitation", {
  ...Invitation.shape,
  accept_token: shownOnce("What accepts the invitation."),
})
export type SentInvitation = z.infer<typeof SentInvitation>

const invitationStates = ["open", "accepted", "revoked", "expired"] as const

export const InvitationDetails = namedObject("InvitationDetails", {
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
export type InvitationDetails = z.infer<typeof InvitationDetails>

const AcceptedInvitation = namedObject("AcceptedInvitation", {
  organization_id: z.string(),
  role: RoleName,
  user: Person,
  session: StartedSession.nullable().describe("For a new user; null when a session accepted."),
})
type AcceptedInvitation = z.infer<typeof AcceptedInvitation>

const members = endpointGroup("/v1/organizations/{org_id}/members", { area: "Members", write: ownersAdmin })
const member = members.at("/{user_id}")

export const memberTable = {
  listMembers: members.list({
    summary: "List members; newest first",
    of: Member,
    cursor: /^\d{1,15}\.usr_[0-9a-z]{26}$/,
  }),
  updateMember: member.patch({
    summary: "Change the role of a member; the last primary owner stays one",
    body: z.strictObject({ role: RoleName }),
    output: Member,
    errors: ["conflict"],
  }),
  removeMember: member.remove({
    summary: "Remove a member; their sessions lose the organization and their user-scoped keys end",
    errors: ["conflict"],
  }),
}

const invitations = endpointGroup("/v1/organizations/{org_id}/invites", {
  area: "Invitations",
  write: ownersAdmin,
})
const invitation = invitations.at("/{invitation_id}")
/** For who holds the token. */
const received = endpointGroup("/v1/invites", { area: "Invitations", read: anyone, write: anyone })

export const invitationTable = {
  listInvitations: invitations.get({ summary: "List pending invitations", output: z.array(Invitation) }),
  createInvitation: invitations.post({
    summary: "Invite someone by email address",
    body: z.strictObject({ email: EmailAddress, role: RoleName }),
    output: SentInvitation,
    secrets: ["accept_token"],
    errors: ["conflict"],
  }),
  revokeInvitation: invitation.remove({ summary: "Revoke an invitation" }),
  resendInvitation: invitation.at("/resend").post({
    summary: "Resend an invitation; replaces its token and expiry",
    output: SentInvitation,
    secrets: ["accept_token"],
  }),
  /** A POST, so that the token stands in no address and no proxy's log. */
  describeInvitation: received.at("/describe").post({
    summary:
      "Read an invitation by its token; who invites whom to what, and whether it can still be accepted",
    body: z.strictObject({ token: z.string().min(1).max(256) }),
    output: InvitationDetails,
    errors: [...openErrors, "not_found", "rate_limited"],
  }),
  acceptInvitation: received.at("/accept").post({
    summary: "Accept an invitation; as the user of the session, or as a new user when there is no session",
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
  }),
}
