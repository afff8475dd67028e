/** The principal of a bearer value, what it may do where (from short-lived caches), and when it was last used. */
import { hash, timingSafeEqual } from "node:crypto"
import type { Clock } from "../base/clock.ts"
import { newSecret } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import {
  type Permission,
  type Principal,
  type Role,
  type Membership,
  permissionsOfRole,
  roles,
} from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import { type Change, listenToChanges } from "../store/changes.ts"
import { FreshCache } from "../store/fresh-cache.ts"
import { type Key, type KeyPrincipal, findKeyPrincipal, touchKeys } from "../store/keys.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import { type Organization, listOrganizationsOfUser } from "../store/organizations.ts"
import { type NamedResource, namedResources, resourceExists } from "../store/resources.ts"
import { type SessionPrincipal, findSessionPrincipal, touchSession } from "../store/sessions.ts"
import { type Database, StoreUnavailable } from "../store/sql.ts"
import { rateLimitOf } from "./key-limits.ts"

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
/** How long cached principals are used while the database is unavailable. */
const staleMs = 300_000
const cachedMax = 10_000
/** A session in use is marked this often: idleness counts in hours. */
const seenEveryMs = 60_000

/** What a call is about: an organization (null: the personal one, or a key's own) or a billing account. */
type MembershipSubject = { readonly organizationId: string | null } | { readonly billingAccountId: string }

export interface Principals {
  /** The principal of a bearer value; null when it has none. */
  authenticate(bearer: string): Promise<Principal | null>
  /** What the principal is there, or null when it must not learn that the subject exists. */
  membership(principal: Principal, subject: MembershipSubject): Promise<Membership | null>
  /** Whether what the path names is there in the organization; true where that cannot be known without the body. */
  exists(organizationId: string, params: Readonly<Record<string, string>>): Promise<boolean>
  /**
   * The principal with what it is in the organization now, for work that goes on after its request: null when its key is no
   * longer valid or it is no longer a member. A session need not last, and a workload token is as it was.
   */
  current(principal: Principal, organizationId: string): Promise<Current | null>
  /** For changes made by this process: the next request sees them. */
  invalidate(change: Change): void
  close(): Promise<void>
}

interface Current {
  readonly principal: Principal
  readonly membership: Membership
}

interface PrincipalsDeps {
  readonly organizations: Pick<Organizations, "of" | "invalidate">
  readonly database: Database
  readonly clock: Clock
  readonly lastUsed: Pick<LastUsed, "key" | "session">
  /** The principal of a workload access token. */
  readonly workload?: (token: string) => Promise<Principal | null>
}

type OwnOrganization = Organization & { readonly role: Role }

/** A key with its principal while it is valid. */
interface KnownKey extends KeyPrincipal {
  readonly principal: Principal
}

interface Caches {
  readonly keys: FreshCache<KnownKey>
  /** By the hash of the token, in hex. */
  readonly sessions: FreshCache<SessionPrincipal>
  /** The organizations of a user, newest first. */
  readonly memberships: FreshCache<readonly OwnOrganization[]>
  readonly organizations: Pick<Organizations, "of" | "invalidate">
  /** By organization and what is named, as JSON. */
  readonly resources: FreshCache<true>
}

export async function openPrincipals(deps: PrincipalsDeps): Promise<Principals> {
  const { database } = deps
  const caches = openCaches(deps)
  const stopListening = await listenToChanges(database, (change) => invalidate(caches, change))
  return {
    authenticate: (value) => authenticate(value, caches, deps),
    membership: (principal, subject) => membershipIn(principal, subject, caches),
    exists: (organizationId, params) => exist(organizationId, params, caches),
    current: (principal, organizationId) => currentIn(principal, deps, { organizationId, caches }),
    invalidate: (change) => invalidate(caches, change),
    close: async () => {
      await stopListening().catch((error: unknown) => {
        // A store that is unavailable sends no notifications, so there is nothing to stop.
        if (!(error instanceof StoreUnavailable)) throw error
      })
    },
  }
}

function openCaches({ database, organizations, clock }: PrincipalsDeps): Caches {
  const options = { clock, freshMs, staleMs, entriesMax: cachedMax }
  return {
    keys: new FreshCache(options, async (id) => {
      const known = await findKeyPrincipal(database, id)
      return known && { ...known, principal: principalOfKey(known) }
    }),
    sessions: new FreshCache(
      options,
      async (hash) => await findSessionPrincipal(database, Uint8Array.from(Buffer.from(hash, "hex"))),
    ),
    memberships: new FreshCache(options, async (userId) => await listOrganizationsOfUser(database, userId)),
    organizations,
    resources: new FreshCache(options, async (key) => {
      // As `exist` writes it.
      const [organizationId, named]: [string, NamedResource] = JSON.parse(key)
      return await resourceExists(database, organizationId, named).then(
        (isThere) => isThere || null,
        passUnknown,
      )
    }),
  }
}

/** While the store is away the handler says so, or answers from what it knows. */
function passUnknown(error: unknown): true {
  if (error instanceof StoreUnavailable) return true
  throw error
}

/** One that was deleted a moment ago passes: its handler looks again. */
async function exist(
  organizationId: string,
  params: Readonly<Record<string, string>>,
  { resources }: Caches,
): Promise<boolean> {
  const found = await Promise.all(
    namedResources(params).map(async (named) => await resources.get(JSON.stringify([organizationId, named]))),
  )
  return !found.includes(null)
}

/** Null when the secret is not the key's, or the key is no longer valid. */
function principalBehind(
  known: KnownKey,
  secret: string,
  { clock, lastUsed }: PrincipalsDeps,
): Principal | null {
  const nowMs = clock.nowMs()
  if (!secretMatches(hashSecret(secret), known.key, nowMs) || !isValid(known, nowMs)) return null
  lastUsed.key(known.key.id, nowMs)
  return known.principal
}

async function authenticate(
  value: string,
  { keys, sessions }: Caches,
  deps: PrincipalsDeps,
): Promise<Principal | null> {
  const { clock, lastUsed, workload } = deps
  const bearer = parseBearer(value)
  const nowMs = clock.nowMs()
  switch (bearer?.kind) {
    case undefined:
      return null
    case "workload":
      return (await workload?.(bearer.token)) ?? null
    case "session": {
      const known = await sessions.get(Buffer.from(hashSecret(bearer.secret)).toString("hex"))
      const principal = known && principalOfSession(known, nowMs)
      if (principal && nowMs - known.session.lastSeenAt.getTime() >= seenEveryMs)
        lastUsed.session(principal.id, nowMs)
      return principal
    }
    case "key": {
      const known = await keys.get(bearer.keyId)
      return known && principalBehind(known, bearer.secret, deps)
    }
  }
}

/** Both secrets are compared whatever the outcome of the first, so that timing tells nothing. */
function secretMatches(secretHash: Uint8Array, key: Key, nowMs: number): boolean {
  const current = sameHash(secretHash, key.secretHash)
  const previous = key.previousSecretHash !== null && sameHash(secretHash, key.previousSecretHash)
  return current || (previous && key.previousExpiresAt !== null && nowMs < key.previousExpiresAt.getTime())
}

/** Not when the key is revoked or expired, or its user is no longer a member. */
function isValid({ key, userRole }: KeyPrincipal, nowMs: number): boolean {
  if (key.revokedAt !== null || (key.expiresAt !== null && nowMs >= key.expiresAt.getTime())) return false
  return key.scope !== "user" || userRole !== null
}

function principalOfKey({ key, organization, userRole }: KeyPrincipal): Principal {
  const role: Role = key.scope === "user" && userRole !== null ? userRole : "member"
  return {
    kind: "key",
    id: key.id,
    userId: key.userId,
    organizationId: organization.deletedAt === null ? organization.id : null,
    role,
    permissions: key.scope === "user" ? heldBy(role, key.permissions) : key.permissions,
    rateLimit: rateLimitOf(key) ?? rateLimitOf(organization),
    keyLimits: {
      tokensPerMinute: key.tokensPerMinute === null ? null : Number(key.tokensPerMinute),
      allowedModels: key.allowedModels,
      allowedNetworks: key.allowedNetworks,
      budgets: key.budgets.flatMap(({ period, cutoff_cents }) => (cutoff_cents === null ? [] : [period])),
    },
  }
}

/** Null when the session is ended, expired, or was idle for too long. */
function principalOfSession({ session }: SessionPrincipal, nowMs: number): Principal | null {
  if (session.revokedAt !== null || nowMs >= session.expiresAt.getTime()) return null
  if (nowMs >= session.lastSeenAt.getTime() + sessionIdleMs) return null
  return {
    kind: "session",
    id: session.id,
    userId: session.userId,
    organizationId: null,
    role: null,
    permissions: null,
    rateLimit: null,
    signedInBy: session.method,
  }
}

function heldBy(role: Role, carried: readonly Permission[]): Permission[] {
  const held = permissionsOfRole(role)
  return carried.filter((permission) => held.includes(permission))
}

/** A key or token brings its organization along, so that mostly nothing has to be looked up. */
async function membershipIn(
  principal: Principal,
  subject: MembershipSubject,
  caches: Caches,
): Promise<Membership | null> {
  if (principal.kind === "session") return await membershipOfMember(principal, subject, caches)
  if ("organizationId" in subject) return membershipOf(principal, subject.organizationId)
  return await membershipOfPayer(principal, subject.billingAccountId, caches)
}

async function currentIn(
  principal: Principal,
  { clock }: PrincipalsDeps,
  { organizationId, caches }: { organizationId: string; caches: Caches },
): Promise<Current | null> {
  const known = principal.kind === "key" ? await caches.keys.get(principal.id) : { principal }
  if (known === null || ("key" in known && !isValid(known, clock.nowMs()))) return null
  const membership = await membershipIn(known.principal, { organizationId }, caches)
  return membership && { principal: known.principal, membership }
}

/** `asked` is null for the one that the principal belongs to. */
function membershipOf(principal: Principal, asked: string | null): Membership | null {
  const { organizationId, role, permissions } = principal
  if (organizationId === null || (asked !== null && asked !== organizationId)) return null
  return { organizationId, role: role ?? "member", permissions: permissions ?? [] }
}

async function membershipOfMember(
  { userId, signedInBy }: Principal,
  subject: MembershipSubject,
  { memberships }: Caches,
): Promise<Membership | null> {
  const own = (userId !== null && (await memberships.get(userId))) || []
  const organization = pick(own, subject)
  if (!organization) return null
  if (organization.ssoRequired && signedInBy !== "sso")
    throw new Fault(
      "single_sign_on_required",
      "Cannot act in the organization: it requires single sign-on; sign in with it",
    )
  const { id, role } = organization
  return { organizationId: id, role, permissions: permissionsOfRole(role) }
}

async function membershipOfPayer(
  principal: Principal,
  billingAccountId: string,
  { organizations }: Caches,
): Promise<Membership | null> {
  const { organizationId } = principal
  const found = organizationId === null ? null : await organizations.of(organizationId)
  const organization = found?.organization
  const isPayer = organization?.deletedAt === null && organization.billingAccountId === billingAccountId
  return isPayer ? membershipOf(principal, null) : null
}

/** Among organizations that share a billing account, the one where the user may do most. */
function pick(own: readonly OwnOrganization[], subject: MembershipSubject): OwnOrganization | undefined {
  if ("organizationId" in subject) {
    const { organizationId } = subject
    return own.find(({ id, isPersonal }) => (organizationId === null ? isPersonal : id === organizationId))
  }
  return own
    .filter(({ billingAccountId }) => billingAccountId === subject.billingAccountId)
    .toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role))[0]
}

function invalidate({ keys, sessions, memberships, organizations }: Caches, { table, id }: Change): void {
  switch (table) {
    case "api_keys":
      return keys.invalidate(id)
    case "sessions":
      return sessions.invalidateWhere(({ session }) => session.id === id)
    case "organizations":
      organizations.invalidate({ table, id })
      memberships.invalidateWhere((own) => own.some((organization) => organization.id === id))
      return keys.invalidateWhere(({ organization }) => organization.id === id)
    case "memberships":
      // Someone may have joined, whose list does not name the organization yet.
      memberships.invalidateAll()
      return keys.invalidateWhere(({ organization }) => organization.id === id)
    default:
      return
  }
}

const flushEveryMs = 15_000
const pendingMax = 10_000
/** Uses that follow one another within this time are one. */
const exactMs = 100

interface LastUsed {
  key(id: string, atMs: number): void
  session(id: string, atMs: number): void
  /** Writes what is pending now. */
  flush(): Promise<void>
  close(): Promise<void>
}

export function openLastUsed(database: Database, log: Log): LastUsed {
  let keys = new Map<string, number>()
  let sessions = new Map<string, number>()

  const flush = async (): Promise<void> => {
    const [usedKeys, usedSessions] = [keys, sessions]
    keys = new Map()
    sessions = new Map()
    await touchKeys(database, new Map([...usedKeys].map(([id, atMs]) => [id, new Date(atMs)])))
    for (const [id, atMs] of usedSessions) await touchSession(database, id, new Date(atMs))
  }
  const flushOrLog = async (): Promise<void> => {
    await flush().catch((error: unknown) => log.warn({ err: error }, "last uses could not be written"))
  }
  const timer = setInterval(() => void flushOrLog(), flushEveryMs).unref()

  return {
    key: (id, atMs) => note(keys, id, atMs),
    session: (id, atMs) => note(sessions, id, atMs),
    flush,
    close: async () => {
      clearInterval(timer)
      await flushOrLog()
    },
  }
}

function note(uses: Map<string, number>, id: string, atMs: number): void {
  const known = uses.get(id)
  if (known !== undefined && atMs - known < exactMs) return
  // Beyond the bound a use goes unrecorded until the next batch; nothing depends on it.
  if (uses.size < pendingMax || known !== undefined) uses.set(id, atMs)
}

const keyForm = /^ump_([0-9A-Za-z-]{1,64})_([0-9A-Za-z_-]{16,256})$/
const sessionForm = /^ums_([0-9A-Za-z_-]{16,256})$/
const workloadForm = /^[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}$/

type Bearer =
  | { readonly kind: "key"; readonly keyId: string; readonly secret: string }
  | { readonly kind: "session"; readonly secret: string }
  | { readonly kind: "workload"; readonly token: string }

export function parseBearer(value: string): Bearer | null {
  const [, id, keySecret] = keyForm.exec(value) ?? []
  if (id !== undefined && keySecret !== undefined)
    return { kind: "key", keyId: `key_${id}`, secret: keySecret }
  const [, sessionSecret] = sessionForm.exec(value) ?? []
  if (sessionSecret !== undefined) return { kind: "session", secret: sessionSecret }
  return workloadForm.test(value) ? { kind: "workload", token: value } : null
}

/** A fresh key value; only its hash is ever stored. */
export function newKeyValue(keyId: string): { readonly value: string; readonly secretHash: Uint8Array } {
  const secret = newSecret()
  return { value: `ump_${keyId.slice("key_".length)}_${secret}`, secretHash: hashSecret(secret) }
}

export const hashSecret = (secret: string): Uint8Array => hash("sha256", secret, "buffer")

/** Compares hashes, in a time that does not tell how much of them is alike. */
export const sameHash = (given: Uint8Array, known: Uint8Array): boolean => timingSafeEqual(given, known)

const hourMs = 3_600_000

/** Unused for this long, a session ends. */
export const sessionIdleMs = 12 * hourMs
/** However busy it is. */
export const sessionMaxMs = 30 * 24 * hourMs
