/** Console sessions: signing in by password or one-time link, signing out, and the password itself. */
import { networkOf } from "../base/addresses.ts"
import { newSecret } from "../base/ids.ts"
import type { Principal } from "../contract/access.ts"
import type { Call, CallOf, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { SignedIn, StartedSession } from "../contract/platform/sessions.ts"
import type { PlatformTable } from "../contract/platform/table.ts"
import { row, text, timestamp } from "../store/rows.ts"
import {
  type Session,
  type SessionMethod,
  endOneTimeLinks,
  insertOneTimeLink,
  insertSession,
  listOrganizationIdsOf,
  listSessionAddresses,
  revokeSession,
  useOneTimeLink,
} from "../store/sessions.ts"
import type { Sql } from "../store/sql.ts"
import { hasSsoIdentity, type User, findUser, findUserByEmail, lockUser, updateUser } from "../store/users.ts"
import { hashSecret, sessionMaxMs } from "./principals.ts"
import {
  type AuditedViews,
  type Caller,
  type ChangeScope,
  type ControlDeps,
  change,
  difference,
} from "./audited-change.ts"
import { hashPassword, passwordMatches } from "./passwords.ts"
import type { SignInLimits } from "./sign-in-limits.ts"
import { toWire } from "./to-wire.ts"

export interface SessionDeps extends ControlDeps {
  readonly limits: SignInLimits
  /** Whether browsers reach this installation over TLS only, so that the cookie can say so. */
  readonly secureCookies: boolean
}

type Names = "createSession" | "getSession" | "deleteSession" | "updateSessionUser" | "setPassword"

const cookieName = "umpire_session"
const linkLifetimeMs = 24 * 3_600_000
const userAgentCharactersMax = 512
/** Organizations of one user whose audit logs record it. */
const toldMax = 100

export function sessionHandlers(deps: SessionDeps): Pick<Handlers<PlatformTable>, Names> {
  return {
    async createSession(call) {
      const { body, request } = call
      const user =
        "link" in body
          ? await userOfLink(deps, body.link, request.ip)
          : await userOfPassword(deps, body, request.ip)
      return await signIn(deps, call, { user, method: "link" in body ? "link" : "password" })
    },
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
      await checkCurrentPassword(deps, user, { sessionId: session.id, given: body.current_password })
      const passwordHash = await hashPassword(body.password)
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
async function checkCurrentPassword(
  { limits }: SessionDeps,
  { email, passwordHash }: User,
  { sessionId, given }: { readonly sessionId: string; readonly given: string | undefined },
): Promise<void> {
  if (passwordHash === null) return
  await limits.countPassword(email, sessionId, async () => true)
  if (!(await passwordMatches(passwordHash, given ?? "")))
    throw new Fault("permission_denied", "Cannot set the password: the current password is not right")
  limits.passwordMatched(email, sessionId)
}

const isPlaceholder = (email: string): boolean => email.toLowerCase().endsWith("@localhost")

/**
 * Only a placeholder address can be replaced. A user who could take any address that is still free would receive the
 * first single sign-on of the person it belongs to.
 */
async function updateOwnUser(
  deps: SessionDeps,
  call: CallOf<PlatformTable["updateSessionUser"]>,
): Promise<SignedIn["user"]> {
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
  { email, now }: { readonly email: string; readonly now: Date },
): Promise<void> {
  await sql.query(
    `UPDATE billing_accounts SET email = $3, updated_at = $4
     WHERE email = $2 AND id IN (SELECT o.billing_account_id FROM organizations o
       JOIN memberships m ON m.organization_id = o.id WHERE m.user_id = $1 AND m.role = 'primary_owner')`,
    [user.id, user.email, email, now],
  )
}

/** Unknown users cost the same work and get the same answer as wrong passwords. */
async function userOfPassword(
  { database, limits }: SessionDeps,
  { email, password }: { readonly email: string; readonly password: string },
  ip: string,
): Promise<User> {
  await limits.countPassword(email, ip, async () => await hasSignedInFrom(database, email, ip))
  const user = await findUserByEmail(database, email)
  if (!(await passwordMatches(user?.passwordHash ?? null, password)) || !user) throw wrongPassword()
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

async function userOfLink({ database, clock, limits }: SessionDeps, link: string, ip: string): Promise<User> {
  await limits.countAttempt(ip)
  const userId = await useOneTimeLink(database, hashSecret(link), new Date(clock.nowMs()))
  const user = userId === null ? null : await findUser(database, userId)
  if (!user) throw new Fault("invalid_credentials", "Cannot sign in: the link is unknown, used or expired")
  return user
}

type SigningIn = Pick<Call, "request" | "header">

/** Starts a session and gives its token to the caller, as a value and as a cookie. */
export async function signIn(
  deps: SessionDeps,
  call: SigningIn,
  { user, method }: { readonly user: User; readonly method: SessionMethod },
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
  {
    session,
    request,
  }: { readonly session: Pick<Session, "id" | "userId" | "method">; readonly request: SigningIn["request"] },
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

/** A link that signs its user in once, for the first start and for users who lost their password. Ends older ones. */
export async function createOneTimeLink(
  sql: Sql,
  userId: string,
  now: Date,
): Promise<{ readonly link: string; readonly expiresAt: Date }> {
  await endOneTimeLinks(sql, userId)
  const link = newSecret()
  const expiresAt = new Date(now.getTime() + linkLifetimeMs)
  await insertOneTimeLink(sql, { tokenHash: hashSecret(link), userId, createdAt: now, expiresAt })
  return { link, expiresAt }
}

export function toPerson({ id, email, name }: User): { id: string; email: string; name: string | null } {
  return { id, email, name }
}

const PresentSession = row({ id: text, createdAt: timestamp, expiresAt: timestamp })

async function current({ database }: SessionDeps, principal: Principal | null) {
  const session = await PresentSession.first(
    database,
    "SELECT id, created_at, expires_at FROM sessions WHERE id = $1",
    [principal?.id ?? null],
  )
  const user = principal?.userId ? await findUser(database, principal.userId) : null
  if (!session || !user) throw sessionEnded()
  return { session, user }
}

const sessionEnded = (): Fault => new Fault("invalid_credentials", "Cannot find the session: it has ended")

/** The request was let in with the session, which may have been ended since. */
async function checkValid(sql: Sql, id: string): Promise<void> {
  const [session] = await sql.query("SELECT FROM sessions WHERE id = $1 AND revoked_at IS NULL", [id])
  if (!session) throw sessionEnded()
}

function endOtherSessions(
  sql: Sql,
  userId: string,
  { keptId, now }: { readonly keptId: string; readonly now: Date },
): Promise<string[]> {
  return text.all(
    sql,
    `UPDATE sessions SET revoked_at = $3 WHERE user_id = $1 AND id <> $2 AND revoked_at IS NULL RETURNING id`,
    [userId, keptId, now],
  )
}

/** Lax: a link from elsewhere opens the console signed in, but no other site's form can write with it. */
function cookie({ secureCookies }: SessionDeps, token: string, maxAgeSeconds: number): string {
  const secure = secureCookies ? "; Secure" : ""
  return `${cookieName}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}${secure}`
}
