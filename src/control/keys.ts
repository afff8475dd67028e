/** API keys: made, changed, rotated and ended by those who may. */
import type { Catalog } from "../base/catalog.ts"
import type { Permission, Principal, RateLimit, Membership } from "../contract/access.ts"
import type { CallOf, Handlers, Handle } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { ApiKey, keyTable } from "../contract/platform/keys.ts"
import { type Key, findKey, keys } from "../store/keys.ts"
import type { Sql } from "../store/sql.ts"
import { type BudgetState, forgetRefusals, readBudgetStates } from "../store/budgets.ts"
import { checkMayLimit, checkModels, limitsOf, rateLimitOf, showLimits } from "./key-limits.ts"
import { newKeyValue } from "./principals.ts"
import { type ChangeScope, type ControlDeps, acting, change, toList } from "./audited-change.ts"
import { readOrganization } from "./organizations.ts"
import { add, changeView, given, handlersOf, remove, replace, resource } from "./resource.ts"
import { checkVersion, etag, toWire } from "./to-wire.ts"

type Table = typeof keyTable

interface KeyDeps extends ControlDeps {
  catalog(): Promise<Catalog>
  /** What organizations without a limit of their own have. */
  readonly rateLimit: RateLimit
}

interface GivenLimit {
  readonly requests_per_minute: number
  readonly burst: number
}

export function keyHandlers(deps: KeyDeps): Handlers<Table> {
  return {
    async listApiKeys(call) {
      const { organizationId } = acting(call)
      const page = await keys.page(deps.database, organizationId, call.query)
      const states = await readBudgetStates(deps.database, page.items, deps.clock.nowMs())
      return toList(page, (key) => toApiKey(key, states.get(key.id)))
    },
    createApiKey: async (call) => await create(deps, call),
    updateApiKey: async (call) => await update(deps, call),
    rotateApiKey: async (call) => await rotate(deps, call),
    deleteApiKey: async (call) => await end(deps, call),
  }
}

const resources = resource({
  type: "api_key",
  noun: "API key",
  idPrefix: "key",
  table: keys,
  versionOf: ({ version }) => version,
  toView: (key: Key) => key,
  audited: (key) => ({ ...toApiKey(key), budgets: key.budgets }),
  invalidates: ({ id }) => ({ table: "api_keys", id }),
})

const create: Handle<KeyDeps, Table["createApiKey"]> = async (deps, call) => {
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
  checkModels(await deps.catalog(), limits.allowedModels ?? [], [])
  const userId = scope === "user" ? userOf(principal) : null
  const id = deps.ids.next(resources.idPrefix)
  const { value, secretHash } = newKeyValue(id)
  return await change(deps, call, async (scoped) => {
    const { sql } = scoped
    await checkLimit(sql, { principal, organizationId }, { given: rate_limit, standard: deps.rateLimit })
    const createdBy = await creatorOf(sql, principal)
    const own = { name, permissions, scope, userId, secretHash, createdBy, expiresAt }
    const fields = async () => ({ ...own, ...limitColumns(rate_limit ?? null), ...limits })
    const key = await add(scoped, resources, { id, organizationId, fields })
    return { ...(await show(call, scoped, key)), secret: value }
  })
}

const update: Handle<KeyDeps, Table["updateApiKey"]> = async (deps, call) => {
  const { principal, membership, organizationId } = acting(call)
  const { name, permissions, expires_at, rate_limit } = call.body
  const expiresAt = readExpiry(expires_at, deps.clock.nowMs())
  const limits = limitsOf(call.body)
  const catalog = await deps.catalog()
  return await change(deps, call, async (scoped) => {
    const { sql } = scoped
    const before = await lockOwn(deps, scoped, call)
    checkVersion(call.request, before.version)
    checkMayLimit(membership, limits)
    checkModels(catalog, limits.allowedModels ?? [], before.allowedModels ?? [])
    // What the key has already is not given to it now.
    checkHeld(membership, permissions?.filter((one) => !before.permissions.includes(one)) ?? [])
    await checkLimit(sql, { principal, organizationId }, { given: rate_limit, standard: deps.rateLimit })
    // Whether new budgets refuse is found anew.
    if (limits.budgets !== undefined) await forgetRefusals(sql, before.id)
    const changes = {
      ...given({ name, permissions, expiresAt }),
      ...(rate_limit === undefined ? {} : limitColumns(rate_limit)),
      ...limits,
    }
    return await show(call, scoped, await replace(scoped, resources, { before, changes }))
  })
}

const rotate: Handle<KeyDeps, Table["rotateApiKey"]> = async (deps, call) => {
  const { principal, membership } = acting(call)
  const { value, secretHash } = newKeyValue(call.params.key_id)
  const graceMs = call.body.grace_seconds * 1000
  return await change(deps, call, async (scoped) => {
    const before = await lockOwn(deps, scoped, call)
    checkMayHold(principal, membership, before)
    const changes = {
      secretHash,
      previousSecretHash: graceMs > 0 ? before.secretHash : null,
      previousExpiresAt: graceMs > 0 ? new Date(scoped.now.getTime() + graceMs) : null,
    }
    const key = await replace(scoped, resources, { before, changes, verb: "rotate" })
    return { ...(await show(call, scoped, key)), secret: value }
  })
}

const end: Handle<KeyDeps, Table["deleteApiKey"]> = async (deps, call) =>
  await change(deps, call, async (scoped) => remove(scoped, resources, await lockOwn(deps, scoped, call)))

type KeyCall = CallOf<Table["deleteApiKey"]>

async function lockOwn(deps: KeyDeps, scoped: ChangeScope, call: Omit<KeyCall, "body">): Promise<Key> {
  const { principal, membership } = acting(call)
  const key = await handlersOf(deps, resources).lock(scoped, call, call.params.key_id)
  checkMayChange(principal, membership, key)
  return key
}

async function show(call: Pick<KeyCall, "header">, { sql, now }: ChangeScope, key: Key): Promise<ApiKey> {
  call.header("etag", etag(key.version))
  return toApiKey(key, (await readBudgetStates(sql, [key], now.getTime())).get(key.id))
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
  { given, standard }: { given: GivenLimit | null | undefined; standard: RateLimit },
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
  return { rateLimitPerMinute: given?.requests_per_minute ?? null, rateLimitBurst: given?.burst ?? null }
}

function toApiKey(key: Key, budgets: readonly BudgetState[] = []): ApiKey {
  return {
    ...toWire(key, "id", "name", "permissions", "scope", "userId", "expiresAt", "lastUsedAt"),
    ...changeView(key),
    previous_secret_expires_at: key.previousExpiresAt?.toISOString() ?? null,
    ...showLimits(key, budgets),
  }
}
