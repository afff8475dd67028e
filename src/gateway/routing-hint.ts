/** The routing hint: a caller's wish, by header, for the region that runs its request. */
import type { RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"

const header = "x-umpire-region"

/** The region that the request asks for, or null; one that does not exist is refused. */
export function readRoutingHint(request: RequestFacts, regions: readonly string[]): string | null {
  const hint = request.header(header)
  if (hint === null || regions.includes(hint)) return hint
  throw new Fault("unknown_routing_hint", `Cannot route the request: ${header} names no known region`, {
    param: header,
  })
}
