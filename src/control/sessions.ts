/** Console sessions: signing in by password or one-time link, signing out, and the password itself. */
import { networkOf } from "../base/addresses.ts"
import { newSecret } from "../base/ids.ts"
import type { Principal } from "../contract/access.ts"
import type { Call, Handlers, Handle } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { SignedIn, StartedSession } from "../contract/platform/sessions.ts"
import type { PlatformTable } from "../contract/table.ts"
import { column, row, run, runCounted } from "../store/rows.ts"
import {
  endOneTimeLinks,
  findOneTimeLink,
  insertOneTimeLink,
  insertSession,
  listOrganizationIdsOf,
  listSessionAddresses,
  type OneTimeLink,
  revokeSession,
  revokeSessionsOfUser,
  type Session,
  type SessionMethod,
  useOneTimeLink,
} from "../store/sessions.ts"
import type { Sql } from "../store/sql.ts"
import { findUser, findUserByEmail, hasSsoIdentity, lockUser, updateUser, type User } from "../store/users.ts"
import {
  type AuditedViews,
  type Caller,
  change,
  type ChangeScope,
  type ControlDeps,
  difference,
} from "./audited-change.ts"
import type { ContentCipher } from "../store/content/cipher.ts"
import { hashPassword, passwordMatches } from "./passwords.ts"
import { hashSecret, sessionMaxMs } from "./principals.ts"
import { userOfPasskey } from "./check-passkey.ts"
import { checkSecondFactor } from "./check-second-factor.ts"
import type { SignInLimits } from "./sign-in-limits.ts"
import { toWire } from "./to-wire.ts"

export interface SessionDeps extends ControlDeps {
  readonly limits: SignInLimits
  /** Encrypts the secrets of authenticator apps. */
  readonly content: { readonly cipher: ContentCipher }
  /** Sends a mail in the background; null where no mail server is configured. */
  readonly sendMail: SendMail | null
  publicUrl(): string
  /** Whether browsers reach this installation over TLS only, so that the cookie can say so. */
  readonly secureCookies: boolean
}

/** To one address, once; what fails is logged by it. */
export type SendMail = (mail: {
  readonly address: string
  readonly subject: string
  readonly text: string
}) => void

type Names =
  | "requestPasswordReset"
  | "finishPasswordReset"
  | "createSession"
  | "getSession"
  | "deleteSession"
  | "updateSessionUser"
  | "setPassword"

const cookieName = "umpire_session"
const linkLifetimeMs = 24 * 3_600_000
/** Anyone may have asked for it. */
const resetLifetimeMs = 3_600_000
const userAgentCharactersMax = 512
/** Organizations of one user whose audit logs record it. */
const toldMax = 100

export function sessionHandlers(deps: SessionDeps): Pick<Handlers<PlatformTable>, Names> {
  return {
    async createSession(call) {
      const { body, request } = call
      if ("passkey" in body)
        return await signIn(deps, call, {
          user: await userOfPasskey(deps, body.passkey, request.ip),
          method: "passkey",
        })
      const user =
        "link" in body
          ? await userOfLink(deps, body, request.ip)
          : await userOfPassword(deps, body, request.ip)
      return await signIn(deps, call, { user, method: "link" in body ? "link" : "password" })
    },
    async requestPasswordReset(call) {
      if (!deps.sendMail)
        throw new Fault(
          "not_found",
          "Cannot send a link: no mail server is configured; an operator makes one with umpire users reset",
        )
      await deps.limits.countReset(call.body.email, call.request.ip)
      // Not waited for: how long it takes would say whether there is such a user.
      void mailReset(deps, deps.sendMail, call.body.email)
    },
    finishPasswordReset: async (call) => await finishReset(deps, call),
    async getSession({ principal }) {
      const { session, user } = await current(deps, principal)
      return {
        ...toWire(session, "id", "createdAt", "expiresAt"),
        user: toPerson(user),
        has_password: user.passwordHash !== null,
        setup_required: user.passwordHash === null && !(await hasSsoIdentity(deps.database, user.id)),
        email_changeable: isPlaceholder(user.email),
      }
    },
    async deleteSession(call) {
      const { session, user } = await current(deps, call.principal)
      await change(deps, call, async (scope) => {
        await revokeSession(scope.sql, session.id, scope.now)
        await tellOrganizations(scope, user.id, { action: "session.delete", id: session.id })
        scope.invalidate({ table: "sessions", id: session.id })
      })
      call.header("set-cookie", cookie(deps, "", 0))
    },
    updateSessionUser: async (call) => await updateOwnUser(deps, call),
    async setPassword(call) {
      const { body } = call
      const { session, user } = await current(deps, call.principal)
      const { ip } = call.request
      await checkCurrentPassword(deps, user, { sessionId: session.id, given: body.current_password, ip })
      const passwordHash = await hashPassword(body.password, ip)
      await change(deps, call, async (scope) => {
        const { sql, now, invalidate } = scope
        // Hashing takes a while, in which single sign-on or a reset may have ended the session.
        await lockUser(sql, user.id)
        await checkValid(sql, session.id)
        await updateUser(sql, user.id, { passwordHash }, now)
        await endOneTimeLinks(sql, user.id)
        for (const id of await endOtherSessions(sql, user.id, { keptId: session.id, now }))
          invalidate({ table: "sessions", id })
        await tellOrganizations(scope, user.id, { action: "user.set_password" })
      })
    },
  }
}

/** Wrong guesses are counted for each session, whichever addresses they come from. */
export async function checkCurrentPassword(
  { limits }: SessionDeps,
  { email, passwordHash }: User,
  { sessionId, given, ip }: { sessionId: string; given: string | undefined; ip: string },
): Promise<void> {
  if (passwordHash === null) return
  await limits.countPassword(email, sessionId, async () => true)
  if (!(await passwordMatches(passwordHash, given ?? "", ip)))
    throw new Fault("permission_denied", "Cannot change how you sign in: the current password is not right")
  limits.passwordMatched(email, sessionId)
}

const isPlaceholder = (email: string): boolean => email.toLowerCase().endsWith("@localhost")

/**
 * Only a placeholder address can be replaced. A user who could take any address that is still free would receive the
 * first single sign-on of the person it belongs to.
 */
const updateOwnUser: Handle<SessionDeps, PlatformTable["updateSessionUser"]> = async (deps, call) => {
  const { user } = await current(deps, call.principal)
  const { name, email } = call.body
  const changesEmail = email !== undefined && email !== user.email
  if (changesEmail && !isPlaceholder(user.email))
    throw new Fault(
      "conflict",
      "Cannot change the address: only the placeholder of a first start can be replaced",
    )
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    if (changesEmail && (await findUserByEmail(sql, email)))
      throw new Fault("conflict", "Cannot change the address: another user has it")
    const changes = { ...(name === undefined ? {} : { name }), ...(changesEmail ? { email } : {}) }
    const updated = await updateUser(sql, user.id, changes, now)
    if (!updated) throw new Error(`Cannot update the user ${user.id}: it is gone`)
    if (changesEmail) await moveBillingEmail(sql, user, { email, now })
    const views = difference(toPerson(user), toPerson(updated))
    await tellOrganizations(scope, user.id, { action: "user.update", views })
    return toPerson(updated)
  })
}

/** The account of the first organization was opened with the placeholder too. */
async function moveBillingEmail(
  sql: Sql,
  user: User,
  { email, now }: { email: string; now: Date },
): Promise<void> {
  await run(sql)`UPDATE billing_accounts SET email = ${email}, updated_at = ${now}
    WHERE email = ${user.email} AND id IN (SELECT o.billing_account_id FROM organizations o
      JOIN memberships m ON m.organization_id = o.id
      WHERE m.user_id = ${user.id} AND m.role = 'primary_owner')`
}

/** Unknown users cost the same work and get the same answer as wrong passwords. */
async function userOfPassword(
  deps: SessionDeps,
  { email, password, code }: { email: string; password: string; code?: string | undefined },
  ip: string,
): Promise<User> {
  const { database, limits } = deps
  await limits.countPassword(email, ip, async () => await hasSignedInFrom(database, email, ip))
  const user = await findUserByEmail(database, email)
  if (!(await passwordMatches(user?.passwordHash ?? null, password, ip)) || !user) throw wrongPassword()
  await checkSecondFactor(deps, user, code)
  limits.passwordMatched(email, ip)
  return user
}

/** By the sessions that are still kept. */
async function hasSignedInFrom(sql: Sql, email: string, ip: string): Promise<boolean> {
  const user = await findUserByEmail(sql, email)
  const addresses = user ? await listSessionAddresses(sql, user.id) : []
  return addresses.some((address) => networkOf(address) === networkOf(ip))
}

const wrongPassword = (): Fault =>
  new Fault("invalid_credentials", "Cannot sign in: the email address or the password is not right")

async function userOfLink(
  deps: SessionDeps,
  { link, code }: { link: string; code?: string | undefined },
  ip: string,
): Promise<User> {
  const { database, clock } = deps
  const user = await findLinked(deps, { link, purpose: "sign_in" }, ip)
  await checkSecondFactor(deps, user, code)
  if (!(await useOneTimeLink(database, hashSecret(link), new Date(clock.nowMs())))) throw badLink()
  return user
}

const badLink = (): Fault =>
  new Fault("invalid_credentials", "Cannot sign in: the link is unknown, used or expired")

/** Whose link it is, which stays unused: it is used when everything else is right too. */
async function findLinked(
  { database, clock, limits }: SessionDeps,
  { link, purpose }: Pick<OneTimeLink, "purpose"> & { readonly link: string },
  ip: string,
): Promise<User> {
  await limits.countAttempt(ip)
  const found = await findOneTimeLink(database, hashSecret(link), new Date(clock.nowMs()))
  const user = found?.purpose === purpose ? await findUser(database, found.userId) : null
  if (!user) throw badLink()
  return user
}

/** A placeholder address has no mailbox. */
async function mailReset(deps: SessionDeps, send: SendMail, email: string): Promise<void> {
  const { database, clock } = deps
  const user = await findUserByEmail(database, email).catch(() => null)
  if (!user || isPlaceholder(user.email)) return
  const now = new Date(clock.nowMs())
  const made = await database
    .transaction(async (sql) => await createOneTimeLink(sql, { userId: user.id, purpose: "reset" }, now))
    .catch(() => null)
  if (!made) return
  const home = deps.publicUrl().replace(/\/$/, "")
  send({
    address: user.email,
    subject: "[Umpire] Set a new password",
    text: [
      `A new password was asked for, for ${user.email} at ${home}.`,
      "",
      "This link sets one. It works once, within an hour, and ends all your sessions:",
      "",
      `  ${home}/sign-in#reset=${made.link}`,
      "",
      "If you did not ask for it, you need not do anything: your password stays as it is.",
      "",
    ].join("\n"),
  })
}

const finishReset: Handle<SessionDeps, PlatformTable["finishPasswordReset"]> = async (deps, call) => {
  const { link, password, code } = call.body
  const user = await findLinked(deps, { link, purpose: "reset" }, call.request.ip)
  await checkSecondFactor(deps, user, code)
  const passwordHash = await hashPassword(password, call.request.ip)
  const updated = await change(deps, becoming(user, deps.ids.next("ses"), call), async (scope) => {
    const { sql, now, invalidate } = scope
    if (!(await useOneTimeLink(sql, hashSecret(link), now))) throw badLink()
    await lockUser(sql, user.id)
    await endOneTimeLinks(sql, user.id)
    for (const { id } of await revokeSessionsOfUser(sql, user.id, now)) invalidate({ table: "sessions", id })
    await tellOrganizations(scope, user.id, { action: "user.reset_password" })
    return await updateUser(sql, user.id, { passwordHash }, now)
  })
  return await signIn(deps, call, { user: updated ?? user, method: "link" })
}

type SigningIn = Pick<Call, "request" | "header">

/** Starts a session and gives its token to the caller, as a value and as a cookie. */
export async function signIn(
  deps: SessionDeps,
  call: SigningIn,
  { user, method }: { user: User; method: SessionMethod },
): Promise<SignedIn> {
  const id = deps.ids.next("ses")
  const started = await change(deps, becoming(user, id, call), async (scope) => {
    // Comparing takes a while, in which single sign-on or a reset may have taken the password away.
    if (method === "password" && (await lockUser(scope.sql, user.id))?.passwordHash !== user.passwordHash)
      throw wrongPassword()
    await tellOrganizations(scope, user.id, { action: "session.create", id })
    return await startSession(deps, scope.sql, {
      session: { id, userId: user.id, method },
      request: call.request,
    })
  })
  giveCookie(deps, call, started)
  return { ...started, user: toPerson(user) }
}

/** Who signs in is known by now, although the call came without a principal. */
export function becoming(
  { id: userId }: Pick<User, "id">,
  id: string,
  { request }: Pick<Call, "request">,
): Caller {
  const nothing = { organizationId: null, role: null, permissions: null, rateLimit: null }
  return { principal: { kind: "session", id, userId, ...nothing }, request, idempotency: null }
}

type AccountAction = `user.${string}` | `session.${string}`

interface UserAction {
  readonly action: AccountAction
  /** Of the session; the user's own where it is left out. */
  readonly id?: string
  readonly views?: AuditedViews
}

/** A sign-in counts for all organizations of the user: each records it in its audit log. */
export async function tellOrganizations(
  { sql, audit }: ChangeScope,
  userId: string,
  { action, id = userId, views }: UserAction,
): Promise<void> {
  for (const organizationId of await listOrganizationIdsOf(sql, userId, toldMax))
    await audit(action, { organizationId, id }, views)
}

export function giveCookie(deps: SessionDeps, call: SigningIn, { token }: StartedSession): void {
  call.header("set-cookie", cookie(deps, token, sessionMaxMs / 1000))
}

export async function startSession(
  deps: SessionDeps,
  sql: Sql,
  { session, request }: { session: Pick<Session, "id" | "userId" | "method">; request: SigningIn["request"] },
): Promise<StartedSession> {
  const nowMs = deps.clock.nowMs()
  const secret = newSecret()
  const expiresAt = new Date(nowMs + sessionMaxMs)
  await insertSession(sql, {
    ...session,
    tokenHash: hashSecret(secret),
    ip: request.ip,
    userAgent: request.userAgent?.slice(0, userAgentCharactersMax) ?? null,
    createdAt: new Date(nowMs),
    lastSeenAt: new Date(nowMs),
    expiresAt,
  })
  return { token: `ums_${secret}`, expires_at: expiresAt.toISOString() }
}

/** A link that signs its user in once, or sets a new password. Ends older ones of its purpose. */
export async function createOneTimeLink(
  sql: Sql,
  { userId, purpose }: Pick<OneTimeLink, "userId" | "purpose">,
  now: Date,
): Promise<{ readonly link: string; readonly expiresAt: Date }> {
  await endOneTimeLinks(sql, userId, purpose)
  const link = newSecret()
  const expiresAt = new Date(now.getTime() + (purpose === "reset" ? resetLifetimeMs : linkLifetimeMs))
  await insertOneTimeLink(sql, { tokenHash: hashSecret(link), userId, purpose, createdAt: now, expiresAt })
  return { link, expiresAt }
}

export function toPerson({ id, email, name }: User): { id: string; email: string; name: string | null } {
  return { id, email, name }
}

const PresentSession = row({ id: column.text, createdAt: column.timestamp, expiresAt: column.timestamp })

export async function current({ database }: SessionDeps, principal: Principal | null) {
  const session = await PresentSession.first(database)`SELECT id, created_at, expires_at FROM sessions
    WHERE id = ${principal?.id ?? null}`
  const user = principal?.userId ? await findUser(database, principal.userId) : null
  if (!session || !user) throw sessionEnded()
  return { session, user }
}

const sessionEnded = (): Fault => new Fault("invalid_credentials", "Cannot find the session: it has ended")

/** The request was let in with the session, which may have been ended since. */
async function checkValid(sql: Sql, id: string): Promise<void> {
  const session = await runCounted(sql)`SELECT FROM sessions WHERE id = ${id} AND revoked_at IS NULL`
  if (!session) throw sessionEnded()
}

export function endOtherSessions(
  sql: Sql,
  userId: string,
  { keptId, now }: { keptId: string; now: Date },
): Promise<string[]> {
  return column.text.all(sql)`UPDATE sessions SET revoked_at = ${now}
    WHERE user_id = ${userId} AND id <> ${keptId} AND revoked_at IS NULL RETURNING id`
}

/** Lax: a link from elsewhere opens the console signed in, but no other site's form can write with it. */
function cookie({ secureCookies }: SessionDeps, token: string, maxAgeSeconds: number): string {
  const secure = secureCookies ? "; Secure" : ""
  return `${cookieName}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}${secure}`
}
