/** The stages of a request for tests of the server alone: one key of one organization, and no limits. */
import type { Principal } from "../src/contract/access.ts"
import type { Stages } from "../src/server/life.ts"

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
export function openStages(isKnown: () => boolean = () => true): Stages {
  return {
    gate: {
      authenticate: async () => (isKnown() ? principal : null),
      standing: async () => ({ organizationId: "org_1", role: "member", permissions: ["inference"] }),
    },
    limiter: { take: () => ({}) },
    repeats: null as never,
  }
}
