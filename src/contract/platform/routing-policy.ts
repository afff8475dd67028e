/** Where the inference of an organization may run. */
import { z } from "zod"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { namedObject } from "../endpoint.ts"

const regionsMax = 200

const routingModes = ["nearest", "ordered", "required"] as const
const routingFallbacks = ["disabled", "same_country", "visible_regions"] as const

export const RoutingPolicy = namedObject("RoutingPolicy", {
  mode: z.enum(routingModes).describe("How the first execution region is chosen."),
  fallback: z.enum(routingFallbacks).describe("Which regions may be tried after the first."),
  regions: z.array(z.string()).meta({
    // The contract allows null, which this server never sends.
    type: ["array", "null"],
    description: "In order of priority; empty or null means every visible region.",
  }),
})
export type RoutingPolicy = z.infer<typeof RoutingPolicy>

export const defaultRoutingPolicy: RoutingPolicy = {
  mode: "nearest",
  fallback: "visible_regions",
  regions: [],
}

const routingPolicy = endpointGroup("/v1/organizations/{org_id}/routing_policy", {
  area: "Routing policy",
  write: apiAdmin,
})

export const routingPolicyTable = {
  getRoutingPolicy: routingPolicy.get({ summary: "Read the routing policy", output: RoutingPolicy }),
  putRoutingPolicy: routingPolicy.put({
    summary: "Replace the routing policy; fields left out get their defaults",
    access: { principals: ["session", "key"], permission: "api-admin", owner: "everyone" },
    body: z.strictObject({
      mode: z.enum(routingModes).default(defaultRoutingPolicy.mode),
      fallback: z.enum(routingFallbacks).default(defaultRoutingPolicy.fallback),
      regions: z
        .array(z.string().min(1).max(128))
        .max(regionsMax)
        .nullish()
        .transform((regions) => regions ?? []),
    }),
    output: z.void(),
    status: 204,
    errors: ["precondition_failed"],
  }),
}
