/** Chooses the regions to try for a request, in order, by the organization's routing policy. Pure: health comes later. */
import type { Region } from "../../base/catalog.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { regionHeader } from "../../contract/headers.ts"

/** The region that the request asks for, or null. The plan refuses one that does not exist. */
export const readRoutingHint = (request: RequestFacts): string | null => request.header(regionHeader)

/** The part of a routing policy that decides; the contract's RoutingPolicy. */
interface Policy {
  readonly mode: "nearest" | "ordered" | "required"
  readonly fallback: "disabled" | "same_country" | "visible_regions"
  /** In order of priority; empty means every visible region. */
  readonly regions: readonly string[]
}

/** What a routing policy is for one organization. */
interface OrganizationRouting {
  readonly policy: Policy
  /** Null means every region. */
  readonly visible: readonly string[] | null
}

export interface Policies {
  of(organizationId: string): Promise<OrganizationRouting>
}

export interface PlanRequest {
  readonly policy: Policy
  /** Every region there is. */
  readonly regions: readonly Region[]
  /** Those the organization sees; null means all. */
  readonly visible: readonly string[] | null
  /** Whether the region has a worker for the model. */
  readonly hosts: (regionId: string) => boolean
  /** The region that the request asks for. */
  readonly hint: string | null
  /** Where this gateway stands; null when nowhere, and then every region is equally far. */
  readonly from: Region | null
  /** How long a worker there takes to answer; Infinity when unknown. */
  readonly latencyMs: (regionId: string) => number
}

/** At least one region, the first choice first. Throws `unknown_routing_hint` or `region_denied`. */
export function planRoute(request: PlanRequest): readonly Region[] {
  const { regions, hint, policy } = request
  if (hint !== null && !regions.some(({ id }) => id === hint))
    throw new Fault("unknown_routing_hint", "Cannot route the request: the hint names no known region", {
      param: regionHeader,
    })
  const eligible = inModeOrder(
    request,
    regions.filter((region) => isEligible(request, region)),
  )
  const first = firstRegion(request, eligible)
  const rest = eligible.filter((region) => region !== first)
  switch (policy.fallback) {
    case "disabled":
      return [first]
    case "same_country":
      return [first, ...rest.filter(({ country }) => country === first.country)]
    case "visible_regions":
      return [first, ...rest]
  }
}

function isEligible({ policy, visible, hosts }: PlanRequest, { id }: Region): boolean {
  const isListed = policy.regions.length === 0 || policy.regions.includes(id)
  return isListed && (visible === null || visible.includes(id)) && hosts(id)
}

function inModeOrder({ policy, from, latencyMs }: PlanRequest, eligible: readonly Region[]): Region[] {
  const listed = policy.regions
  if (policy.mode !== "nearest" && listed.length > 0)
    return eligible.toSorted((a, b) => listed.indexOf(a.id) - listed.indexOf(b.id))
  const far = (region: Region): number => (from === null ? 0 : distanceKm(from, region))
  return eligible.toSorted((a, b) => far(a) - far(b) || compare(latencyMs(a.id), latencyMs(b.id)))
}

function firstRegion({ policy, hint }: PlanRequest, eligible: readonly Region[]): Region {
  const wanted = policy.mode === "required" ? (policy.regions[0] ?? "") : hint
  if (policy.mode === "required" && hint !== null && hint !== wanted)
    throw denied("the routing policy requires another region than the hint names")
  const first = wanted === null ? eligible[0] : eligible.find(({ id }) => id === wanted)
  if (first) return first
  if (policy.mode === "required")
    throw denied("the required region is not visible or does not host the model")
  throw denied(
    hint === null
      ? "no visible region that the routing policy allows hosts the model"
      : "the region of the hint is not allowed by the routing policy, not visible, or does not host the model",
  )
}

const denied = (found: string): Fault => new Fault("region_denied", `Cannot route the request: ${found}`)

/** Infinity minus Infinity is not a number, so that two unknown latencies need a comparison of their own. */
const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

const earthRadiusKm = 6371

/** Along the great circle, by the haversine formula. */
export function distanceKm(a: Pick<Region, "latitude" | "longitude">, b: typeof a): number {
  const chord =
    halfSine(a.latitude, b.latitude) +
    Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * halfSine(a.longitude, b.longitude)
  return 2 * earthRadiusKm * Math.asin(Math.min(1, Math.sqrt(chord)))
}

const radians = (degrees: number): number => (degrees * Math.PI) / 180
const halfSine = (from: number, to: number): number => Math.sin(radians(to - from) / 2) ** 2
