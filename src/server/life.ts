/** The life of a request: each stage refuses or hands on, in the order in which the contract's errors win. */
import type { Soon } from "../base/soon.ts"
import { type Principal, type Standing, isOwner } from "../contract/access.ts"
import type { Call, Endpoint, RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Message } from "./message.ts"
import { parseJson, readBody } from "./body.ts"
import { type Credentials, missing, readCredentials } from "./credentials.ts"
import type { Gate, Subject } from "./gate.ts"
import { parseBody, parseParams, parseQuery, takesNoBody } from "./input.ts"
import type { RateLimiter } from "./rate-limit.ts"
import type { Reply } from "./reply.ts"
import { type Repeats, once, repeatedRequest } from "./repeats.ts"

/** A message that came for an endpoint, and how far it got, for those who must know after it failed. */
export interface Arrival {
  readonly endpoint: Endpoint
  readonly handler: LooseHandler
  readonly found: {
    readonly message: Message
    readonly path: string
    readonly params: unknown
    readonly search: URLSearchParams
    readonly reply: Pick<Reply, "header" | "headers">
  }
  readonly facts: RequestFacts
  principal: Principal | null
  /** Its handler has it. */
  handled: boolean
}

export type LooseHandler = (call: Call) => Promise<unknown>

export interface Stages {
  readonly gate: Gate
  readonly limiter: RateLimiter
  readonly repeats: Repeats
}

/** Takes a request through all stages and answers what its handler answers. */
export async function live(arrival: Arrival, stages: Stages): Promise<unknown> {
  const { endpoint, found } = arrival
  const known = authenticate(endpoint, arrival.facts, stages.gate)
  arrival.principal = known instanceof Promise ? await known : known
  checkArrival(arrival, stages.limiter)
  const query = parseQuery(endpoint, found.search)
  const reading = takesNoBody(endpoint) ? undefined : readBody(endpoint, found.message)
  const bytes = reading instanceof Promise ? await reading : reading
  const body = bytes && parse(endpoint, bytes)
  const params = parseParams(endpoint, found.params)
  const stood = stand(arrival, params, stages.gate)
  const standing = stood instanceof Promise ? await stood : stood
  return await handle(arrival, { params, query, body, standing }, stages.repeats)
}

/** 429, then 403. */
function checkArrival({ endpoint, found, principal }: Arrival, limiter: RateLimiter): void {
  if (!principal) return
  found.reply.headers(limiter.take(principal))
  checkPrincipal(endpoint, principal)
}

function handle(
  arrival: Arrival,
  { params, query, body, standing }: Pick<Call, "params" | "query" | "body" | "standing">,
  repeats: Repeats,
): Promise<unknown> {
  const { endpoint, handler, found, facts: request, principal } = arrival
  if (principal && standing) checkStanding(endpoint, principal, standing)
  arrival.handled = true
  const header = (name: string, value: string): void => found.reply.header(name, value)
  const call: Call = { params, query, body, principal, standing, request, attempt: null, header }
  const write = { endpoint, principal, path: found.path, body, request, header }
  const repeated = repeatedRequest(write)
  if (!repeated) return handler(call)
  return once(repeated, write, repeats, async (attempt) => await handler({ ...call, attempt }))
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
  const standing = await stand({ endpoint, principal, facts }, {}, gate)
  if (standing) checkStanding(endpoint, principal, standing)
  return { principal, standing }
}

/**
 * 401: an endpoint that is open to anyone still wants valid credentials where some are given. A cookie is sent by the
 * browser, not by the caller, so an old one does not keep anyone from signing in.
 */
function authenticate(endpoint: Endpoint, facts: RequestFacts, gate: Gate): Soon<Principal | null> {
  const open = endpoint.access.principals.length === 0
  const credentials = readCredentials(endpoint, facts)
  if (!credentials && open) return null
  if (!credentials) throw missing()
  return (
    gate.recall?.(credentials.bearer, facts.connection) ?? lookUp(credentials, open, facts.connection, gate)
  )
}

async function lookUp(
  { bearer, source }: Credentials,
  open: boolean,
  connection: object | undefined,
  gate: Gate,
): Promise<Principal | null> {
  const principal = await gate.authenticate(bearer, connection)
  if (principal || (open && source === "cookie")) return principal
  throw new Fault(
    "invalid_credentials",
    "Cannot authenticate: the bearer value is unknown, expired or revoked",
  )
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

/** 400, 422, after the 415 and 413 of reading. */
function parse(endpoint: Endpoint, bytes: Uint8Array): unknown {
  return endpoint.reads === "bytes" ? bytes : parseBody(endpoint, parseJson(bytes, endpoint.surface))
}

function stand(
  { endpoint, principal, facts }: Pick<Arrival, "endpoint" | "principal" | "facts">,
  params: unknown,
  gate: Gate,
): Soon<Standing | null> {
  if (!principal) return null
  const subject = subjectOf(endpoint, params as Record<string, string>, facts)
  if (!subject) return null
  const found = gate.standing(principal, subject)
  return found instanceof Promise
    ? found.then((standing) => visible(standing, subject))
    : visible(found, subject)
}

/** 404: what is not visible does not exist. Inference has no path to hide, so there it is 403. */
function visible(standing: Standing | null, subject: Subject): Standing {
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
