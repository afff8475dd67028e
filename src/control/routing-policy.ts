/** The routing policy of an organization, checked against the regions that it sees. */
import { type Region, visibleRegions } from "../base/catalog.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type RoutingPolicy,
  defaultRoutingPolicy,
  type routingPolicyTable,
} from "../contract/platform/routing-policy.ts"
import { lockOrganization } from "../store/organizations.ts"
import {
  findRoutingPolicy,
  putRoutingPolicy,
  type RoutingPolicy as StoredPolicy,
} from "../store/organization-snapshot.ts"
import { type ControlDeps, acting, change, difference, notFound } from "./audited-change.ts"
import { checkVersion, etag } from "./to-wire.ts"

interface RoutingPolicyDeps extends ControlDeps {
  readonly regions: readonly Region[]
}

/** The version of a policy that was never set. */
const unsetVersion = 0n

export function routingPolicyHandlers(deps: RoutingPolicyDeps): Handlers<typeof routingPolicyTable> {
  return {
    async getRoutingPolicy(call) {
      const stored = await findRoutingPolicy(deps.database, acting(call).organizationId)
      call.header("etag", etag(stored?.version ?? unsetVersion))
      return toPolicy(stored)
    },
    async putRoutingPolicy(call) {
      const { organizationId } = acting(call)
      const policy = call.body
      await change(deps, call, async ({ sql, now, audit, invalidate }) => {
        const organization = await lockOrganization(sql, organizationId)
        if (!organization) throw notFound("organization")
        checkRegions(policy, visibleRegions(deps.regions, organization.visibleRegions))
        const before = await findRoutingPolicy(sql, organizationId)
        checkVersion(call.request, before?.version ?? unsetVersion)
        await putRoutingPolicy(sql, { organizationId, ...policy, updatedAt: now })
        await audit(
          "routing_policy.replace",
          { organizationId, id: organizationId },
          difference(toPolicy(before), policy),
        )
        invalidate({ table: "routing_policies", id: organizationId })
      })
    },
  }
}

function toPolicy(stored: Readonly<StoredPolicy> | null): RoutingPolicy {
  if (!stored) return defaultRoutingPolicy
  const { mode, fallback, regions } = stored
  return { mode, fallback, regions: [...regions] }
}

/** An unknown region and one that the organization does not see are the same to it. */
function checkRegions({ mode, regions }: RoutingPolicy, visible: readonly Region[]): void {
  for (const [index, id] of regions.entries()) {
    if (!visible.some((region) => region.id === id))
      throw refuse(`regions.${index}`, `no region of this name is visible; visible are ${listOf(visible)}`)
    if (regions.indexOf(id) !== index) throw refuse(`regions.${index}`, `the region ${id} is listed twice`)
  }
  if (mode === "required" && regions.length === 0)
    throw refuse("regions", "the mode required needs a region; list one, or use another mode")
}

function refuse(path: string, found: string): Fault {
  const details = [{ path, message: found }]
  return new Fault("invalid_body", `Cannot use the routing policy: ${found}`, { details })
}

const listOf = (regions: readonly Region[]): string => regions.map(({ id }) => id).join(", ") || "none"
