/** The routing hint: a caller's wish, by header, for the region that runs its request; the answer says in the same way. */
import type { RequestFacts } from "../contract/endpoint.ts"

export const regionHeader = "x-umpire-region"

/** The region that the request asks for, or null. The plan refuses one that does not exist. */
export const readRoutingHint = (request: RequestFacts): string | null => request.header(regionHeader)
