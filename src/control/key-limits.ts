/** The limits of an API key: read from a request, shown with what was spent, and who may change them. */
import { parseNetworks } from "../base/addresses.ts"
import type { Catalog } from "../base/catalog.ts"
import { centsExact } from "../base/money.ts"
import type { Membership, RateLimit } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import type { ApiKey, GivenBudget, KeyBudget } from "../contract/platform/keys.ts"
import type { Budget, BudgetState } from "../store/budgets.ts"
import type { Key, KeyLimitColumns } from "../store/keys.ts"

/** A name that nothing has would leave a key that may ask nothing; those that it has already stay. */
export function checkModels(catalog: Catalog, given: readonly string[], before: readonly string[]): void {
  const index = given.findIndex((name) => !before.includes(name) && !catalog.find(name))
  if (index < 0) return
  const name = given[index] ?? ""
  throw new Fault("invalid_body", `Cannot use allowed_models: no model of the catalog is called ${name}`, {
    details: [{ path: `allowed_models.${index}`, message: "no model of this name" }],
  })
}

interface GivenLimits {
  readonly tokens_per_minute?: number | null | undefined
  readonly allowed_models?: readonly string[] | null | undefined
  readonly allowed_networks?: readonly string[] | null | undefined
  readonly budgets?: readonly GivenBudget[] | undefined
}

/** What is left out is left out. */
export function limitsOf(given: GivenLimits): Partial<KeyLimitColumns> {
  const { tokens_per_minute, allowed_models, allowed_networks, budgets } = given
  if (allowed_networks) checkNetworks(allowed_networks)
  return {
    ...(tokens_per_minute === undefined
      ? {}
      : { tokensPerMinute: tokens_per_minute === null ? null : BigInt(tokens_per_minute) }),
    ...(allowed_models === undefined
      ? {}
      : { allowedModels: allowed_models && [...new Set(allowed_models)] }),
    ...(allowed_networks === undefined ? {} : { allowedNetworks: allowed_networks }),
    ...(budgets === undefined ? {} : { budgets: budgets.map(toBudget) }),
  }
}

export const toBudget = ({
  period,
  cutoff_threshold_cents,
  warning_threshold_cents,
}: GivenBudget): Budget => ({
  period,
  cutoff_cents: cutoff_threshold_cents,
  warning_cents: warning_threshold_cents,
})

function checkNetworks(given: readonly string[]): void {
  const index = given.findIndex((text) => parseNetworks([text]) === null)
  if (index < 0) return
  throw new Fault(
    "invalid_body",
    "Cannot use allowed_networks: an address or a network is needed, as 192.0.2.7 or 10.0.0.0/8",
    { details: [{ path: `allowed_networks.${index}`, message: "not an address or a network" }] },
  )
}

/** Members make keys with limits, which they cannot lift. */
export function checkMayLimit({ permissions }: Membership, limits: Partial<KeyLimitColumns>): void {
  if (Object.keys(limits).length === 0 || permissions.includes("api-admin")) return
  throw new Fault(
    "permission_denied",
    "Cannot change the limits of the key: an owner is needed; members set them when they create a key",
  )
}

interface Limited {
  readonly rateLimitPerMinute: number | null
  readonly rateLimitBurst: number | null
}

/** The limit of its own of a key, a tag or an organization, where it has one. */
export function rateLimitOf({ rateLimitPerMinute, rateLimitBurst }: Limited): RateLimit | null {
  if (rateLimitPerMinute === null) return null
  return { requestsPerMinute: rateLimitPerMinute, burst: rateLimitBurst ?? rateLimitPerMinute }
}

export function showRates(limited: Limited & { readonly tokensPerMinute: bigint | null }) {
  const limit = rateLimitOf(limited)
  return {
    rate_limit: limit && { requests_per_minute: limit.requestsPerMinute, burst: limit.burst },
    tokens_per_minute: limited.tokensPerMinute === null ? null : Number(limited.tokensPerMinute),
  }
}

type LimitField = "rate_limit" | "tokens_per_minute" | "allowed_models" | "allowed_networks" | "budgets"

export function showLimits(key: Key, states: readonly BudgetState[]): Pick<ApiKey, LimitField> {
  return {
    ...showRates(key),
    allowed_models: key.allowedModels && [...key.allowedModels],
    allowed_networks: key.allowedNetworks && [...key.allowedNetworks],
    budgets: states.map(showBudget),
  }
}

export const showBudget = (state: BudgetState): KeyBudget => ({
  period: state.period,
  cutoff_threshold_cents: state.cutoff_cents,
  warning_threshold_cents: state.warning_cents,
  spent_cents: centsExact(state.spentTicks),
  local_state: state.isBlocked ? "blocked" : "ok",
  period_start: state.startsOn,
  period_end: state.endsOn,
})
