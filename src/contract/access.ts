/** Who may call: the kinds of principal, their permissions and their roles, as the contract names them. */

/** The operator is a user who can open the socket in the data directory. */
export const principalKinds = ["session", "key", "workload", "operator"] as const
export type PrincipalKind = (typeof principalKinds)[number]

export const permissions = ["inference", "api-read", "api-write", "api-admin"] as const
export type Permission = (typeof permissions)[number]

/** Who may grant a role has it or one before it. */
export const roles = ["primary_owner", "owner", "billing", "member", "reviewer"] as const
export type Role = (typeof roles)[number]

/** The principal of a bearer value. */
export interface Principal {
  readonly kind: PrincipalKind
  /** The key, session or provider behind it; what the audit log names. */
  readonly id: string
  /** The user of a session or of a user-scoped key. */
  readonly userId: string | null
  /** The one organization of a key or workload token, null when it no longer exists; a session may act in several. */
  readonly organizationId: string | null
  /** What a key or workload token is in its organization; a session's role depends on the organization. */
  readonly role: Role | null
  /** What a key or workload token carries; a session's follow from its role in the organization it acts in. */
  readonly permissions: readonly Permission[] | null
  /** A limit of its own, where the key or its organization has one. */
  readonly rateLimit: RateLimit | null
  /** How a session began, where that is known. */
  readonly signedInBy?: string | null
  /** What else a key is limited to. */
  readonly keyLimits?: KeyLimits
}

export const budgetPeriods = ["day", "week", "month"] as const
export type BudgetPeriod = (typeof budgetPeriods)[number]

/** Null: no limit of its own. */
export interface KeyLimits {
  readonly tokensPerMinute: number | null
  readonly allowedModels: readonly string[] | null
  /** Addresses and networks, as 10.0.0.0/8. */
  readonly allowedNetworks: readonly string[] | null
  /** The periods for which it has a cutoff. */
  readonly budgets: readonly BudgetPeriod[]
}

export interface RateLimit {
  readonly requestsPerMinute: number
  readonly burst: number
}

/** What a principal is in the organization a call is about. */
export interface Membership {
  readonly organizationId: string
  readonly role: Role
  readonly permissions: readonly Permission[]
}

/** Permissions that a console session holds by its role in the organization. */
export function permissionsOfRole(role: Role): readonly Permission[] {
  if (isOwner(role)) return permissions
  return role === "member" ? ["inference", "api-read", "api-write"] : ["api-read"]
}

/** At the command line of the installation; may act in every organization. */
export const operator: Principal = {
  kind: "operator",
  id: "operator",
  userId: null,
  organizationId: null,
  role: null,
  permissions: null,
  rateLimit: null,
}

export const isOwner = (role: Role): boolean => role === "primary_owner" || role === "owner"

export const mayPay = (role: Role): boolean => isOwner(role) || role === "billing"
