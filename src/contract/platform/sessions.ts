/** Console sessions: signing in, who one is, signing out. */
import { z } from "zod"
import { anyone, endpointGroup, sessionOnly, ownersAdmin, openErrors } from "../endpoint-group.ts"
import { Datetime, EmailAddress, Person, Text, nameCharactersMax, RoleName } from "./field-schemas.ts"
import { namedObject } from "../endpoint.ts"
import { Assertion, PasskeyChallenge } from "./passkeys.ts"
import { Code } from "./second-factor.ts"

export const passwordCharactersMin = 8
const passwordCharactersMax = 256

export const Password = z.string().min(passwordCharactersMin).max(passwordCharactersMax)

export const StartedSession = namedObject("StartedSession", {
  token: z.string().describe("The bearer value; also set as the cookie `umpire_session`."),
  expires_at: Datetime,
})
export type StartedSession = z.infer<typeof StartedSession>

export const SignedIn = z.object({ ...StartedSession.shape, user: Person }).meta({ id: "SignedIn" })
export type SignedIn = z.infer<typeof SignedIn>

export const CurrentSession = namedObject("CurrentSession", {
  id: z.string(),
  user: Person,
  has_password: z.boolean(),
  setup_required: z
    .boolean()
    .describe("True while the user has neither a password nor single sign-on, so cannot sign in again."),
  email_changeable: z
    .boolean()
    .describe("True while the address is the placeholder of a first start, on the host `localhost`."),
  created_at: Datetime,
  expires_at: Datetime,
})
export type CurrentSession = z.infer<typeof CurrentSession>

const SignInOptions = namedObject("SignInOptions", {
  passkey_origin: z
    .string()
    .nullable()
    .describe(
      "Where browsers use passkeys; null where the installation has an address instead of a host name.",
    ),
  single_sign_on: z.boolean().describe("Whether a single sign-on provider is configured."),
  password_reset: z
    .enum(["mail", "operator"])
    .describe(
      "Who helps with a forgotten password: a mail with a link, or the operator by `umpire users reset`.",
    ),
})
export type SignInOptions = z.infer<typeof SignInOptions>

/** What a provider sends back with the browser. */
const CallbackValue = z.string().max(4096).optional()

const LinkToken = z.string().min(1).max(256)

const session = endpointGroup("/v1/session", { area: "Sessions", read: anyone, write: sessionOnly })

export const sessionTable = {
  createSession: session.post({
    summary: "Sign in with a password, a passkey or a one-time link",
    access: anyone,
    body: z.union([
      // Any text may be tried as a password: rules for new ones say nothing about old ones.
      z.strictObject({
        email: EmailAddress,
        password: z.string().min(1).max(passwordCharactersMax),
        code: Code.optional(),
      }),
      z.strictObject({ link: LinkToken, code: Code.optional() }),
      z.strictObject({ passkey: Assertion }),
    ]),
    output: SignedIn,
    errors: [...openErrors, "second_factor_required", "conflict", "rate_limited", "overloaded"],
  }),
  requestPasswordReset: session.at("/reset").post({
    summary:
      "Ask for a mail with a link that sets a new password; the answer is the same whether the address has a user or not",
    access: anyone,
    body: z.strictObject({ email: EmailAddress }),
    output: z.void(),
    status: 204,
    errors: [...openErrors, "not_found", "rate_limited"],
  }),
  finishPasswordReset: session.at("/reset/finish").post({
    summary: "Set a new password with the link of a mail, and sign in; every other session of the user ends",
    access: anyone,
    body: z.strictObject({ link: LinkToken, password: Password, code: Code.optional() }),
    output: SignedIn,
    errors: [...openErrors, "second_factor_required", "conflict", "rate_limited", "overloaded"],
  }),
  createPasskeyChallenge: session.at("/passkey_challenge").post({
    summary: "Get a challenge that a passkey signs in with",
    access: anyone,
    output: PasskeyChallenge,
    errors: [...openErrors, "conflict", "rate_limited"],
  }),
  getSession: session.get({
    summary: "Read the session; who is signed in",
    access: sessionOnly,
    output: CurrentSession,
  }),
  deleteSession: session.remove({ summary: "Sign out" }),
  updateSessionUser: session.at("/user").patch({
    summary: "Change the signed-in user; the name, or the placeholder address of the first start",
    body: z
      .strictObject({
        name: Text(nameCharactersMax).nullable().optional().describe("Null removes it."),
        email: EmailAddress.optional().describe(
          "Only while the address is on the host `localhost`; anyone else's address stays, because single sign-on and invitations rely on it.",
        ),
      })
      .refine((body) => Object.keys(body).length > 0, "at least one field is needed"),
    output: Person,
    errors: ["conflict"],
  }),
  setPassword: session.at("/password").put({
    summary: "Set the password; every other session of the user ends",
    body: z.strictObject({
      password: Password,
      current_password: z
        .string()
        .max(passwordCharactersMax)
        .optional()
        .describe("Needed when the user has a password."),
    }),
    output: z.void(),
    status: 204,
    errors: ["rate_limited", "overloaded"],
  }),
  getSignInOptions: session.at("/options").get({
    summary: "Read how people can sign in, for the sign-in page",
    output: SignInOptions,
    errors: openErrors,
  }),
  startSingleSignOn: session.at("/sso").get({
    summary: "Start single sign-on; redirects to the provider",
    output: z.void(),
    status: 303,
    errors: [...openErrors, "not_found", "rate_limited", "not_ready"],
  }),
  finishSingleSignOn: session.at("/sso/callback").get({
    summary: "Finish single sign-on; redirects to the console, signed in or with `sso_error`",
    query: z.object({
      code: CallbackValue,
      state: CallbackValue,
      iss: CallbackValue,
      error: CallbackValue,
      error_description: CallbackValue,
    }),
    output: z.void(),
    status: 303,
    errors: [...openErrors, "not_found", "rate_limited"],
  }),
}

export const sessionMethods = ["password", "link", "invitation", "sso", "passkey"] as const

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

const MemberSession = z.object({ ...sessionFields, user: Person }).meta({ id: "MemberSession" })
type MemberSession = z.infer<typeof MemberSession>

export const SingleSignOnPolicy = namedObject("SingleSignOnPolicy", {
  required: z.boolean().describe("Whether sessions that began without single sign-on are refused with 403."),
  email_domains: z
    .array(z.string())
    .describe("Who signs in with a verified address of these becomes a member; set by the operator."),
  groups: z
    .array(z.string())
    .describe("Whom the provider counts to one of these becomes a member; set by the operator."),
  role: RoleName.describe("The role of those who join so."),
})
export type SingleSignOnPolicy = z.infer<typeof SingleSignOnPolicy>

const sessions = endpointGroup("/v1/sessions", { area: "Sessions", read: sessionOnly, write: sessionOnly })
const memberSessions = endpointGroup("/v1/organizations/{org_id}/sessions", {
  area: "Sessions",
  read: ownersAdmin,
  write: ownersAdmin,
})
const singleSignOn = endpointGroup("/v1/organizations/{org_id}/single_sign_on", {
  area: "Sessions",
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
