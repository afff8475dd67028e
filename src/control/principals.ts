/** Says who a bearer value stands for, from a short-lived cache so that a request does not wait for the database. */
import type { Clock } from "../base/clock.ts"
import {
  type Permission,
  type Principal,
  type Role,
  type Standing,
  permissionsOfRole,
} from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import { type Change, listenToChanges } from "../store/changes.ts"
import { type Key, type KeyPrincipal, findKeyPrincipal } from "../store/keys.ts"
import { type Database, StoreUnavailable } from "../store/sql.ts"
import { parseBearer, sameSecret } from "./bearer.ts"

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
/** How long known principals go on working while the database is away. */
const staleMs = 300_000
const cachedMax = 10_000

interface Cached {
  readonly known: KeyPrincipal
  readonly readMs: number
}

export interface Principals {
  authenticate(bearer: string): Promise<Principal | null>
  standing(principal: Principal, organizationId: string | null): Promise<Standing | null>
  close(): Promise<void>
}

export async function openPrincipals(database: Database, clock: Clock): Promise<Principals> {
  const cache = new Map<string, Cached>()
  const stopListening = await listenToChanges(database, (change) => forget(cache, change))

  const find = async (keyId: string): Promise<KeyPrincipal | null> => {
    const cached = cache.get(keyId)
    const ageMs = cached ? clock.monotonicMs() - cached.readMs : Infinity
    if (cached && ageMs < freshMs) return cached.known
    try {
      const known = await findKeyPrincipal(database, keyId)
      if (!known) cache.delete(keyId)
      else remember(cache, keyId, { known, readMs: clock.monotonicMs() })
      return known
    } catch (cause) {
      if (cached && ageMs < staleMs && cause instanceof StoreUnavailable) return cached.known
      throw new Fault(
        "authentication_failed",
        "Cannot check the credentials: the store does not answer; try again later",
        { cause },
      )
    }
  }

  return {
    async authenticate(value) {
      const bearer = parseBearer(value)
      if (bearer?.kind !== "key") return null
      const known = await find(bearer.keyId)
      return known && secretMatches(bearer.secret, known.key, clock.nowMs())
        ? principalOf(known, clock.nowMs())
        : null
    },
    async standing(principal, organizationId) {
      if (principal.kind === "session" || principal.organizationId === null) return null
      if (organizationId !== null && organizationId !== principal.organizationId) return null
      return {
        organizationId: principal.organizationId,
        role: principal.role ?? "member",
        permissions: principal.permissions ?? [],
      }
    },
    close: stopListening,
  }
}

/** Both secrets are compared whatever the outcome of the first, so that timing tells nothing. */
function secretMatches(secret: string, key: Key, nowMs: number): boolean {
  const current = sameSecret(secret, key.secretHash)
  const previous = key.previousSecretHash !== null && sameSecret(secret, key.previousSecretHash)
  return current || (previous && key.previousExpiresAt !== null && nowMs < key.previousExpiresAt.getTime())
}

/** Null when the key is revoked or expired, or its user is no longer a member. */
function principalOf({ key, organization, userRole }: KeyPrincipal, nowMs: number): Principal | null {
  if (key.revokedAt !== null || (key.expiresAt !== null && nowMs >= key.expiresAt.getTime())) return null
  if (key.scope === "user" && userRole === null) return null
  const role: Role = key.scope === "user" && userRole !== null ? userRole : "member"
  return {
    kind: "key",
    id: key.id,
    userId: key.userId,
    organizationId: organization.deletedAt === null ? organization.id : null,
    role,
    permissions: key.scope === "user" ? heldBy(role, key.permissions) : key.permissions,
    rateLimit: limitOf(key) ?? limitOf(organization),
  }
}

function heldBy(role: Role, carried: readonly Permission[]): Permission[] {
  const held = permissionsOfRole(role)
  return carried.filter((permission) => held.includes(permission))
}

function limitOf(source: {
  readonly rateLimitPerMinute: number | null
  readonly rateLimitBurst: number | null
}): Principal["rateLimit"] {
  if (source.rateLimitPerMinute === null) return null
  return {
    requestsPerMinute: source.rateLimitPerMinute,
    burst: source.rateLimitBurst ?? source.rateLimitPerMinute,
  }
}

function remember(cache: Map<string, Cached>, keyId: string, cached: Cached): void {
  cache.delete(keyId)
  if (cache.size >= cachedMax) {
    const oldest = cache.keys().next().value
    if (oldest !== undefined) cache.delete(oldest)
  }
  cache.set(keyId, cached)
}

function forget(cache: Map<string, Cached>, change: Change): void {
  if (change.table === "api_keys") cache.delete(change.id)
  // Organizations and memberships touch many keys; reading those again is cheap and rare.
  else if (change.table === "organizations" || change.table === "memberships") cache.clear()
}
