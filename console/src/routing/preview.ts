/** What the gateway would do with a request under a policy that may not be saved yet, by the gateway's own plan. */
import { planRoute } from "../../../src/gateway/routing/plan.ts"
import type { RoutingPolicy } from "../../../src/contract/platform/routing-policy.ts"
import type { OrganizationResources } from "../../../src/contract/platform/organizations.ts"
import { Fault } from "../../../src/contract/errors.ts"

type Region = OrganizationResources["regions"][number]
export type Preview = { readonly tries: readonly string[] } | { readonly refused: string }

export function previewRoute(policy: RoutingPolicy, regions: readonly Region[], model: string): Preview {
  try {
    const plan = planRoute({
      policy,
      regions,
      visible: null,
      hosts: (regionId) => regions.some(({ id, models }) => id === regionId && models.includes(model)),
      hint: null,
      from: regions.find(({ home }) => home) ?? null,
      latencyMs: () => Number.POSITIVE_INFINITY,
    })
    return { tries: plan.map(({ id }) => id) }
  } catch (error) {
    if (error instanceof Fault) return { refused: error.message }
    throw error
  }
}
