/** Signing in through the single sign-on provider: out to it, back from it, and which user that is. */
import { randomBytes, createCipheriv, createDecipheriv } from "node:crypto"
import { z } from "zod"
import type { Log } from "../base/log.ts"
import type { Role } from "../contract/access.ts"
import type { Call, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { PlatformTable } from "../contract/table.ts"
import { findJoinableOrganizations, insertMembership } from "../store/organizations.ts"
import { deletePasskeys } from "../store/passkeys.ts"
import { deleteSecondFactor } from "../store/second-factors.ts"
import { endOneTimeLinks, revokeSessionsOfUser } from "../store/sessions.ts"
import { ensureSetting } from "../store/settings.ts"
import type { Sql } from "../store/sql.ts"
import {
  findUserByIdentity,
  insertSsoIdentity,
  type User,
  findUserByEmail,
  insertUser,
  updateUser,
} from "../store/users.ts"
import { change } from "./audited-change.ts"
import { partyOrNull } from "./check-passkey.ts"
import { type SessionDeps, signIn, becoming, tellOrganizations } from "./sessions.ts"
import type { SsoIdentity, SsoProvider } from "./sso-provider.ts"

export interface SingleSignOn {
  readonly provider: SsoProvider
  /** Whether an email address counts only when the provider says that it was verified. */
  readonly verifiedEmailOnly: boolean
  /** The address of this installation as browsers see it. */
  publicUrl(): string
  readonly log: Log
}

const cookieName = "umpire_sso"
const cookiePath = "/v1/session/sso"
const memorySeconds = 600
const sealSetting = "sso_seal_key"

const Memory = z.object({
  state: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  expiresMs: z.number(),
})

type Names = "getSignInOptions" | "startSingleSignOn" | "finishSingleSignOn"

export function singleSignOnHandlers(
  deps: SessionDeps,
  sso: SingleSignOn | null,
): Pick<Handlers<PlatformTable>, Names> {
  const needed = (): SingleSignOn => {
    if (sso) return sso
    throw new Fault("not_found", "Cannot sign in this way: no single sign-on provider is configured")
  }
  return {
    getSignInOptions: async () => ({
      single_sign_on: sso !== null,
      passkey_origin: partyOrNull(deps)?.origin ?? null,
      password_reset: deps.sendMail ? "mail" : "operator",
    }),
    startSingleSignOn: async (call) => await start(deps, needed(), call),
    finishSingleSignOn: async (call) => await finish(deps, needed(), call),
  }
}

async function start(deps: SessionDeps, sso: SingleSignOn, call: Call): Promise<void> {
  await deps.limits.countAttempt(call.request.ip)
  const { url, memory } = await sso.provider.begin(callbackOf(sso)).catch((cause: unknown) => {
    throw new Fault("not_ready", "Cannot sign in now: the single sign-on provider does not answer", { cause })
  })
  const expiresMs = deps.clock.nowMs() + memorySeconds * 1000
  call.header("set-cookie", cookie(deps, seal(await sealKey(deps), { ...memory, expiresMs }), memorySeconds))
  call.header("location", url)
}

/** A browser is on its way: whatever goes wrong, it ends at the console, which says what. */
async function finish(
  deps: SessionDeps,
  sso: SingleSignOn,
  call: Call<unknown, Record<string, string | undefined>>,
): Promise<void> {
  await deps.limits.countAttempt(call.request.ip)
  const memory = Memory.safeParse(unseal(await sealKey(deps), cookieOf(call) ?? "")).data
  call.header("set-cookie", cookie(deps, "", 0))
  if (!memory || memory.expiresMs <= deps.clock.nowMs()) return refuse(call, "expired")
  const callback = new URL(callbackOf(sso))
  for (const [name, value] of Object.entries(call.query))
    if (value !== undefined) callback.searchParams.set(name, value)
  let identity: SsoIdentity
  try {
    identity = await sso.provider.finish(callback, memory)
  } catch (error) {
    sso.log.info({ err: error }, "single sign-on was refused")
    return refuse(call, "refused")
  }
  const user = await userOf(deps, sso, { identity, call })
  if (!user) return refuse(call, "unknown_user")
  await joinBySso(deps, user, { identity, call })
  await signIn(deps, call, { user, method: "sso" })
  call.header("location", "/")
}

/**
 * Known by subject; the first time by email address, which then binds the subject. A user is created where an organization
 * takes the address or group.
 */
async function userOf(
  deps: SessionDeps,
  sso: SingleSignOn,
  { identity, call }: { identity: SsoIdentity; call: Pick<Call, "request"> },
): Promise<User | null> {
  const { issuer, subject, email, emailVerified } = identity
  const known = await findUserByIdentity(deps.database, issuer, subject)
  if (known) return known
  if (email === null || (sso.verifiedEmailOnly && !emailVerified)) return null
  return await bindSsoUser(deps, identity, { email, call })
}

function refuse(call: Pick<Call, "header">, why: "expired" | "refused" | "unknown_user"): void {
  call.header("location", `/?sso_error=${why}`)
}

const callbackOf = (sso: SingleSignOn): string =>
  `${sso.publicUrl().replace(/\/$/, "")}${cookiePath}/callback`

/** The same for every gateway, so that any of them can finish what another began. */
async function sealKey({ database, clock }: SessionDeps): Promise<Uint8Array> {
  const fresh = randomBytes(sealKeyBytes).toString("base64url")
  const kept = await ensureSetting(database, sealSetting, fresh, new Date(clock.nowMs()))
  return Buffer.from(kept, "base64url")
}

function cookieOf({ request }: Pick<Call, "request">): string | null {
  const pairs = (request.header("cookie") ?? "").split(";").map((pair) => pair.trim().split("=", 2))
  return pairs.find(([name]) => name === cookieName)?.[1] ?? null
}

function cookie({ secureCookies }: SessionDeps, value: string, maxAgeSeconds: number): string {
  const secure = secureCookies ? "; Secure" : ""
  return `${cookieName}=${value}; Path=${cookiePath}; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}${secure}`
}

/** Only a verified address says which domain someone belongs to. */
function domainOf({ email, emailVerified }: SsoIdentity): string | null {
  return emailVerified && email !== null ? email.slice(email.lastIndexOf("@") + 1).toLowerCase() : null
}

interface Joining {
  readonly id: string
  readonly role: Role
}

async function joinable(sql: Sql, identity: SsoIdentity): Promise<Joining[]> {
  const organizations = await findJoinableOrganizations(sql, domainOf(identity), identity.groups)
  return organizations.map(({ id, ssoRole }) => ({ id, role: ssoRole }))
}

/** The user who has the address, or a new one; null when no organization takes the address or group. */
async function bindSsoUser(
  deps: SessionDeps,
  identity: SsoIdentity,
  { email, call }: { email: string; call: Pick<Call, "request"> },
): Promise<User | null> {
  const user =
    (await findUserByEmail(deps.database, email)) ??
    (await createSsoUser(deps, identity, email)) ??
    // Another request may have made the user since.
    (await findUserByEmail(deps.database, email))
  return user && (await bind(deps, identity, { user, call }))
}

async function createSsoUser(deps: SessionDeps, identity: SsoIdentity, email: string): Promise<User | null> {
  return await deps.database.transaction(async (sql) => {
    if ((await joinable(sql, identity)).length === 0) return null
    const now = new Date(deps.clock.nowMs())
    return await insertUser(sql, {
      id: deps.ids.next("usr"),
      email,
      name: identity.name,
      createdAt: now,
      updatedAt: now,
    })
  })
}

/**
 * The user may have been made by another person than the one whom the provider means: anyone can invite any address and accept the
 * invitation. So what the user could sign in with until now ends.
 */
async function bind(
  deps: SessionDeps,
  { issuer, subject }: SsoIdentity,
  { user, call }: { user: User; call: Pick<Call, "request"> },
): Promise<User | null> {
  return await change(deps, becoming(user, deps.ids.next("ses"), call), async (scope) => {
    const { sql, now, invalidate } = scope
    const bound = await insertSsoIdentity(sql, { issuer, subject, userId: user.id, createdAt: now })
    // Another request was first.
    if (!bound) return await findUserByIdentity(sql, issuer, subject)
    const updated = await updateUser(sql, user.id, { passwordHash: null }, now)
    await endOneTimeLinks(sql, user.id)
    await deleteSecondFactor(sql, user.id)
    await deletePasskeys(sql, user.id)
    for (const { id } of await revokeSessionsOfUser(sql, user.id, now)) invalidate({ table: "sessions", id })
    await tellOrganizations(scope, user.id, { action: "user.bind_sso" })
    return updated
  })
}

/** Joins every organization that takes the user and that the user is no member of; no membership is removed or changed. */
async function joinBySso(
  deps: SessionDeps,
  user: User,
  { identity, call }: { identity: SsoIdentity; call: Pick<Call, "request"> },
): Promise<void> {
  const wanted = await joinable(deps.database, identity)
  if (wanted.length === 0) return
  await change(deps, becoming(user, deps.ids.next("ses"), call), async ({ sql, now, audit, invalidate }) => {
    for (const { id: organizationId, role } of wanted) {
      const membership = { organizationId, userId: user.id, role, createdAt: now, updatedAt: now }
      if (!(await insertMembership(sql, membership))) continue
      const after = { email: user.email, role, by: "single sign-on" }
      await audit("member.join", { organizationId, id: user.id }, { after })
      invalidate({ table: "memberships", id: organizationId })
    }
  })
}

const cipher = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16
export const sealKeyBytes = 32

export function seal(key: Uint8Array, value: unknown): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, key, nonce)
  const sealed = Buffer.concat([sealing.update(JSON.stringify(value), "utf8"), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), sealed]).toString("base64url")
}

/** Null when it was not sealed with this key, or was changed. */
export function unseal(key: Uint8Array, text: string): unknown {
  const bytes = Buffer.from(text, "base64url")
  if (bytes.length <= nonceBytes + tagBytes) return null
  try {
    const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes))
    opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    const opened = Buffer.concat([opening.update(bytes.subarray(nonceBytes + tagBytes)), opening.final()])
    return JSON.parse(opened.toString("utf8"))
  } catch {
    return null
  }
}
