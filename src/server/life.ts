/** The life of a request: each stage refuses or hands on, in the order in which the contract's errors win. */
import { type Principal, type Standing, isOwner } from "../contract/access.ts"
import type { Call, Endpoint, RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { IncomingMessage } from "node:http"
import { z } from "zod"
import { parseJson, readBody } from "./body.ts"
import { missing, readCredentials } from "./credentials.ts"
import type { Gate, Subject } from "./gate.ts"
import { parseBody, parseParams, parseQuery } from "./input.ts"
import type { RateLimiter } from "./rate-limit.ts"
import { type Repeats, once } from "./repeats.ts"

export interface Arrival {
  readonly message: IncomingMessage
  readonly path: string
  readonly params: unknown
  readonly search: URLSearchParams
  readonly facts: RequestFacts
  readonly progress: Progress
  header(name: string, value: string): void
}

/** How far a request got, for those who must know after it failed. */
export interface Progress {
  principal: Principal | null
  handled: boolean
}

export type LooseHandler = (call: Call) => Promise<unknown>

export interface Stages {
  readonly gate: Gate
  readonly limiter: RateLimiter
  readonly repeats: Repeats
}

/** Takes a request through all stages and answers what its handler answers. */
export async function live(
  endpoint: Endpoint,
  handler: LooseHandler,
  arrival: Arrival,
  { gate, limiter, repeats }: Stages,
): Promise<unknown> {
  const principal = await authenticate(endpoint, arrival.facts, gate)
  arrival.progress.principal = principal
  if (principal) limit(principal, arrival, limiter)
  if (principal) checkPrincipal(endpoint, principal)
  const query = parseQuery(endpoint, arrival.search)
  const body = await readInput(endpoint, arrival.message)
  const params = parseParams(endpoint, arrival.params)
  const standing = principal ? await stand(endpoint, principal, params, arrival.facts, gate) : null
  if (principal && standing) checkStanding(endpoint, principal, standing)
  arrival.progress.handled = true
  const header = (name: string, value: string): void => arrival.header(name, value)
  const write = { endpoint, principal, path: arrival.path, body, request: arrival.facts, header }
  return await once(write, repeats, async (attempt) => {
    const request = arrival.facts
    return await handler({ params, query, body, principal, standing, request, attempt, header })
  })
}

/** The checks of who asks, for a message that came by another way than a request of its own. */
export async function admit(
  endpoint: Endpoint,
  facts: RequestFacts,
  { gate, limiter }: Pick<Stages, "gate" | "limiter">,
): Promise<{ principal: Principal | null; standing: Standing | null }> {
  const principal = await authenticate(endpoint, facts, gate)
  if (!principal) return { principal, standing: null }
  limiter.take(principal)
  checkPrincipal(endpoint, principal)
  const standing = await stand(endpoint, principal, {}, facts, gate)
  if (standing) checkStanding(endpoint, principal, standing)
  return { principal, standing }
}

/**
 * 401: an endpoint that is open to anyone still wants valid credentials where some are given. A cookie is sent by the
 * browser, not by the caller, so an old one does not keep anyone from signing in.
 */
async function authenticate(endpoint: Endpoint, facts: RequestFacts, gate: Gate): Promise<Principal | null> {
  const open = endpoint.access.principals.length === 0
  const credentials = readCredentials(endpoint, facts)
  if (!credentials && open) return null
  if (!credentials) throw missing()
  const { bearer } = credentials
  const principal =
    gate.recall?.(bearer, facts.connection) ?? (await gate.authenticate(bearer, facts.connection))
  if (!principal && open && credentials.source === "cookie") return null
  if (!principal)
    throw new Fault(
      "invalid_credentials",
      "Cannot authenticate: the bearer value is unknown, expired or revoked",
    )
  return principal
}

/** 429. */
function limit(principal: Principal, arrival: Arrival, limiter: RateLimiter): void {
  const headers = limiter.take(principal)
  for (const name in headers) arrival.header(name, headers[name] ?? "")
}

/** 403: the kind of principal, and the permission that a key or token carries. */
function checkPrincipal({ access }: Endpoint, principal: Principal): void {
  if (access.principals.length === 0) return
  if (!access.principals.includes(principal.kind))
    throw new Fault(
      "principal_not_accepted",
      "Cannot perform the operation: this kind of principal is not accepted here",
    )
  if (access.permission && principal.permissions && !principal.permissions.includes(access.permission))
    throw lacks(access.permission)
}

/** 415, 413, 400, 422. */
async function readInput(endpoint: Endpoint, message: IncomingMessage): Promise<unknown> {
  if (endpoint.body instanceof z.ZodUndefined) return undefined
  const bytes = await readBody(endpoint, message)
  return endpoint.reads === "bytes" ? bytes : parseBody(endpoint, parseJson(bytes, endpoint.surface))
}

/** 404: what is not visible does not exist. Inference has no path to hide, so there it is 403. */
async function stand(
  endpoint: Endpoint,
  principal: Principal,
  params: unknown,
  facts: RequestFacts,
  gate: Gate,
): Promise<Standing | null> {
  const subject = subjectOf(endpoint, params as Record<string, string>, facts)
  if (!subject) return null
  const standing = await gate.standing(principal, subject)
  if (standing) return standing
  if (subject.kind === "inference")
    throw new Fault(
      "permission_denied",
      "Cannot run inference: the principal is not a member of the organization",
    )
  throw new Fault(
    "not_found",
    `Cannot find the ${subject.kind.replace("_", " ")}: no such id is visible to this principal`,
  )
}

function subjectOf(endpoint: Endpoint, params: Record<string, string>, facts: RequestFacts): Subject | null {
  if (params["org_id"] !== undefined) return { kind: "organization", organizationId: params["org_id"] }
  if (params["billing_account_id"] !== undefined)
    return { kind: "billing_account", billingAccountId: params["billing_account_id"] }
  if (endpoint.access.permission === "inference")
    return {
      kind: "inference",
      organizationId: facts.header("x-umpire-organization") ?? facts.header("openai-organization"),
    }
  return null
}

/** 403: what a session may do by its role, and what only an owner may do. */
function checkStanding({ access }: Endpoint, principal: Principal, standing: Standing): void {
  const session = principal.kind === "session"
  if (
    access.permission &&
    !(session && access.anyMember) &&
    !standing.permissions.includes(access.permission)
  )
    throw lacks(access.permission)
  if (access.owner && (session || access.owner === "everyone") && !isOwner(standing.role))
    throw new Fault("permission_denied", "Cannot perform the operation: an organization owner is needed")
}

function lacks(permission: string): Fault {
  return new Fault(
    "permission_denied",
    `Cannot perform the operation: the permission ${permission} is needed`,
  )
}
