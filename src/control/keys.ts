/** API keys: made, changed, rotated and ended by those who may. */
import type { Permission, Principal, RateLimit, Membership } from "../contract/access.ts"
import type { CallOf, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { ApiKey, ApiKeyWithSecret, keyTable } from "../contract/platform/keys.ts"
import { type Key, findKey, insertKey, pageKeys, revokeKey, rotateKey, updateKey } from "../store/keys.ts"
import type { Sql } from "../store/sql.ts"
import { type BudgetState, readBudgetStates } from "../store/budgets.ts"
import { checkMayLimit, limitsChanged, limitsOf, showLimits } from "./key-limits.ts"
import { newKeyValue } from "./principals.ts"
import {
  type AuditedViews,
  type ChangeScope,
  type ControlDeps,
  acting,
  change,
  difference,
  notFound,
  toList,
} from "./audited-change.ts"
import { checkVersion, etag } from "./etag.ts"
import { rateLimitOf, readOrganization } from "./organizations.ts"
import { changeView, given } from "./resource.ts"
import { toWire } from "./to-wire.ts"

interface KeyDeps extends ControlDeps {
  /** What organizations without a limit of their own have. */
  readonly rateLimit: RateLimit
}

interface GivenLimit {
  readonly requests_per_minute: number
  readonly burst: number
}

export function keyHandlers(deps: KeyDeps): Handlers<typeof keyTable> {
  return {
    async listApiKeys(call) {
      const { organizationId } = acting(call)
      const page = await pageKeys(deps.database, organizationId, call.query)
      const states = await readBudgetStates(deps.database, page.items, deps.clock.nowMs())
      return toList(page, (key) => toApiKey(key, states.get(key.id)))
    },
    createApiKey: async (call) => await create(deps, call),
    updateApiKey: async (call) => await update(deps, call),
    rotateApiKey: async (call) => await rotate(deps, call),
    deleteApiKey: async (call) => await end(deps, call),
  }
}

async function create(
  deps: KeyDeps,
  call: CallOf<(typeof keyTable)["createApiKey"]>,
): Promise<ApiKeyWithSecret> {
  const { principal, membership, organizationId } = acting(call)
  const { name, permissions, scope, expires_at, rate_limit } = call.body
  if (!mayAdminister(membership) && scope !== "user")
    throw new Fault(
      "permission_denied",
      "Cannot create a key of the organization: an owner is needed; members create keys of their own (scope user)",
    )
  checkHeld(membership, permissions)
  const expiresAt = readExpiry(expires_at, deps.clock.nowMs()) ?? null
  const limits = limitsOf(call.body)
  const userId = scope === "user" ? userOf(principal) : null
  const id = deps.ids.next("key")
  const { value, secretHash } = newKeyValue(id)
  return await change(deps, call, async (scoped) => {
    const { sql, now } = scoped
    await checkLimit(sql, { principal, organizationId }, { given: rate_limit, standard: deps.rateLimit })
    const key = await insertKey(sql, {
      id,
      organizationId,
      name,
      permissions,
      scope,
      userId,
      secretHash,
      createdBy: await creatorOf(sql, principal),
      expiresAt,
      ...limitColumns(rate_limit ?? null),
      ...limits,
      createdAt: now,
      updatedAt: now,
    })
    const shown = toApiKey(key, await statesOf(sql, key, now))
    await auditKey(scoped, "api_key.create", { key, views: { after: shown } })
    call.header("etag", etag(key.version))
    return { ...shown, secret: value }
  })
}

async function update(deps: KeyDeps, call: CallOf<(typeof keyTable)["updateApiKey"]>): Promise<ApiKey> {
  const { principal, membership, organizationId } = acting(call)
  const { name, permissions, expires_at, rate_limit } = call.body
  const expiresAt = readExpiry(expires_at, deps.clock.nowMs())
  const limits = limitsOf(call.body)
  return await change(deps, call, async (scoped) => {
    const { sql, now } = scoped
    const before = await lockKey(sql, membership, call.params.key_id)
    checkMayChange(principal, membership, before)
    checkVersion(call.request, before.version)
    checkMayLimit(membership, limits)
    // What the key has already is not given to it now.
    checkHeld(membership, permissions?.filter((one) => !before.permissions.includes(one)) ?? [])
    await checkLimit(sql, { principal, organizationId }, { given: rate_limit, standard: deps.rateLimit })
    const after = await updateKey(sql, organizationId, before.id, {
      ...given({ name, permissions, expiresAt }),
      ...(rate_limit === undefined ? {} : limitColumns(rate_limit)),
      ...limits,
      updatedAt: now,
    })
    if (!after) throw notFound("API key")
    await limitsChanged(sql, after.id, limits)
    const shown = toApiKey(after, await statesOf(sql, after, now))
    const shownBefore = toApiKey(before, await statesOf(sql, before, now))
    await auditKey(scoped, "api_key.update", { key: after, views: difference(shownBefore, shown) })
    call.header("etag", etag(after.version))
    return shown
  })
}

async function rotate(
  deps: KeyDeps,
  call: CallOf<(typeof keyTable)["rotateApiKey"]>,
): Promise<ApiKeyWithSecret> {
  const { principal, membership, organizationId } = acting(call)
  const { key_id } = call.params
  const { value, secretHash } = newKeyValue(key_id)
  return await change(deps, call, async (scoped) => {
    const { sql, now } = scoped
    const before = await lockKey(sql, membership, key_id)
    checkMayChange(principal, membership, before)
    checkMayHold(principal, membership, before)
    const graceMs = call.body.grace_seconds * 1000
    const after = await rotateKey(sql, organizationId, key_id, {
      secretHash,
      previousExpiresAt: graceMs > 0 ? new Date(now.getTime() + graceMs) : null,
      updatedAt: now,
    })
    if (!after) throw notFound("API key")
    const states = await statesOf(sql, after, now)
    await auditKey(scoped, "api_key.rotate", {
      key: after,
      views: difference(toApiKey(before, states), toApiKey(after, states)),
    })
    call.header("etag", etag(after.version))
    return { ...toApiKey(after, states), secret: value }
  })
}

async function end(deps: KeyDeps, call: CallOf<(typeof keyTable)["deleteApiKey"]>): Promise<void> {
  const { principal, membership, organizationId } = acting(call)
  await change(deps, call, async (scoped) => {
    const { sql, now } = scoped
    checkMayChange(principal, membership, await lockKey(sql, membership, call.params.key_id))
    const ended = await revokeKey(sql, organizationId, call.params.key_id, now)
    if (!ended) throw notFound("API key")
    await auditKey(scoped, "api_key.delete", {
      key: ended,
      views: { before: toApiKey(ended, await statesOf(sql, ended, now)) },
    })
  })
}

async function auditKey(
  { audit, invalidate }: ChangeScope,
  action: string,
  { key, views }: { readonly key: Key; readonly views: AuditedViews },
): Promise<void> {
  await audit(action, key, views)
  invalidate({ table: "api_keys", id: key.id })
}

/** Held until the transaction ends, so that two changes follow one another. */
async function lockKey(sql: Sql, { organizationId }: Membership, id: string): Promise<Key> {
  await sql.query("SELECT FROM api_keys WHERE organization_id = $1 AND id = $2 FOR UPDATE", [
    organizationId,
    id,
  ])
  const key = await findKey(sql, organizationId, id)
  if (!key || key.revokedAt !== null) throw notFound("API key")
  return key
}

const mayAdminister = (membership: Membership): boolean => membership.permissions.includes("api-admin")

/** Members change only the keys that carry their own role. */
function checkMayChange(principal: Principal, membership: Membership, key: Key): void {
  if (mayAdminister(membership) || (key.scope === "user" && key.userId === principal.userId)) return
  throw new Fault(
    "permission_denied",
    "Cannot change the key: it is not the caller's own; an owner is needed",
  )
}

/** A caller cannot grant a key permissions that the caller does not hold. */
function checkHeld(membership: Membership, permissions: readonly Permission[]): void {
  const missing = permissions.filter((permission) => !membership.permissions.includes(permission))
  if (missing.length > 0)
    throw new Fault("permission_denied", `Cannot grant ${missing.join(", ")}: the caller does not hold it`, {
      details: [{ path: "permissions", message: "the caller does not hold them all" }],
    })
}

/** The caller receives the new secret, so it must hold every permission of the key. */
function checkMayHold(principal: Principal, membership: Membership, key: Key): void {
  checkHeld(membership, key.permissions)
  if (key.scope === "user" && key.userId !== principal.userId)
    throw new Fault(
      "permission_denied",
      "Cannot rotate the key: it carries another user's role; only that user may have its secret",
    )
}

function userOf(principal: Principal): string {
  if (principal.userId !== null) return principal.userId
  throw new Fault(
    "invalid_body",
    "Cannot make a user-scoped key: the caller is no user; use a session, or the scope organization",
    { details: [{ path: "scope", message: "the caller is no user" }] },
  )
}

/** The user behind the caller: of an organization's key, the one who made it. */
export async function creatorOf(sql: Sql, principal: Principal): Promise<string | null> {
  if (principal.userId !== null || principal.kind !== "key" || principal.organizationId === null)
    return principal.userId
  return (await findKey(sql, principal.organizationId, principal.id))?.createdBy ?? null
}

/** Undefined stays undefined: the expiry is not to be changed. */
function readExpiry(given: string | null | undefined, nowMs: number): Date | null | undefined {
  if (given === undefined || given === null) return given
  const at = new Date(given)
  if (at.getTime() > nowMs) return at
  throw new Fault("invalid_body", "Cannot use expires_at: it is not in the future", {
    details: [{ path: "expires_at", message: "not in the future" }],
  })
}

/** A key may have less than its organization; an operator may give it more. */
async function checkLimit(
  sql: Sql,
  { principal, organizationId }: Pick<ReturnType<typeof acting>, "principal" | "organizationId">,
  { given, standard }: { readonly given: GivenLimit | null | undefined; readonly standard: RateLimit },
): Promise<void> {
  if (!given || principal.kind === "operator") return
  const { requestsPerMinute, burst } = rateLimitOf(await readOrganization(sql, organizationId)) ?? standard
  if (given.requests_per_minute <= requestsPerMinute && given.burst <= burst) return
  throw new Fault(
    "invalid_body",
    `Cannot use rate_limit: the organization has ${requestsPerMinute} requests a minute and a burst of ${burst}`,
    { details: [{ path: "rate_limit", message: "above the limit of the organization" }] },
  )
}

function limitColumns(given: GivenLimit | null): Pick<Key, "rateLimitPerMinute" | "rateLimitBurst"> {
  return {
    rateLimitPerMinute: given?.requests_per_minute ?? null,
    rateLimitBurst: given?.burst ?? null,
  }
}

async function statesOf(sql: Sql, key: Key, now: Date): Promise<readonly BudgetState[] | undefined> {
  return (await readBudgetStates(sql, [key], now.getTime())).get(key.id)
}

function toApiKey(key: Key, budgets: readonly BudgetState[] = []): ApiKey {
  return {
    ...toWire(key, "id", "name", "permissions", "scope", "userId", "expiresAt", "lastUsedAt"),
    ...changeView(key),
    previous_secret_expires_at: key.previousExpiresAt?.toISOString() ?? null,
    rate_limit:
      key.rateLimitPerMinute === null
        ? null
        : {
            requests_per_minute: key.rateLimitPerMinute,
            burst: key.rateLimitBurst ?? key.rateLimitPerMinute,
          },
    ...showLimits(key, budgets),
  }
}
