/** Who may call: the kinds of principal, their permissions and their roles, as the contract names them. */

export const principalKinds = ["session", "key", "workload"] as const
export type PrincipalKind = (typeof principalKinds)[number]

export const permissions = ["inference", "api-read", "api-write", "api-admin"] as const
export type Permission = (typeof permissions)[number]

export const roles = ["primary_owner", "owner", "member"] as const
export type Role = (typeof roles)[number]

/** Permissions that a console session holds by its role in the organization. */
export function permissionsOfRole(role: Role): readonly Permission[] {
  return role === "member" ? ["inference", "api-read", "api-write"] : permissions
}

export const isOwner = (role: Role): boolean => role !== "member"
