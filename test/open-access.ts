/** Access for tests of the server alone: one key of one organization, and no limits. */
import type { Principal } from "../src/contract/access.ts"
import type { AccessDeps } from "../src/server/access.ts"
import type { IdempotencyStore } from "../src/server/idempotency.ts"

const principal: Principal = {
  kind: "key",
  id: "key_1",
  userId: null,
  organizationId: "org_1",
  role: "member",
  permissions: ["inference"],
  rateLimit: null,
}

/** `isKnown` says whether the key is still one. */
export function openAccess(
  isKnown: () => boolean = () => true,
): AccessDeps & { idempotency: IdempotencyStore } {
  return {
    gate: {
      authenticate: async () => (isKnown() ? principal : null),
      exists: async () => true,
      membership: async () => ({ organizationId: "org_1", role: "member", permissions: ["inference"] }),
    },
    limiter: { take: async () => ({}) },
    idempotency: null as never,
  }
}
