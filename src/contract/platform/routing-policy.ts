/** Where the inference of an organization may run. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import { OrganizationPath } from "./values.ts"

const area = "Routing policy"
const surface = "platform"
const path = "/v1/organizations/{org_id}/routing_policy"
const principals = ["session", "key"] as const

const regionsMax = 200

const routingModes = ["nearest", "ordered", "required"] as const
const routingFallbacks = ["disabled", "same_country", "visible_regions"] as const

export const RoutingPolicy = z
  .object({
    mode: z.enum(routingModes).describe("How the first execution region is chosen."),
    fallback: z.enum(routingFallbacks).describe("Which regions may be tried after the first."),
    regions: z.array(z.string()).meta({
      // The contract allows null, which this server never sends.
      type: ["array", "null"],
      description: "In order of priority; empty or null means every visible region.",
    }),
  })
  .meta({ id: "RoutingPolicy" })
export type RoutingPolicy = z.infer<typeof RoutingPolicy>

export const defaultRoutingPolicy: RoutingPolicy = {
  mode: "nearest",
  fallback: "visible_regions",
  regions: [],
}

export const getRoutingPolicy = endpoint({
  method: "GET",
  path,
  area,
  surface,
  summary: "Read the routing policy",
  access: { principals, permission: "api-read" },
  params: OrganizationPath,
  output: RoutingPolicy,
})

export const putRoutingPolicy = endpoint({
  method: "PUT",
  path,
  area,
  surface,
  summary: "Replace the routing policy; fields left out get their defaults",
  access: { principals, permission: "api-admin", owner: "everyone" },
  params: OrganizationPath,
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
})
