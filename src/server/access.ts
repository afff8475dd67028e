/** Who may call: finds the principal behind a request, takes from its rate limit, and checks what it may do where. */
import { containsAddress, parseNetworks } from "../base/addresses.ts"
import { type RateLimits, RateLimiter } from "../base/rate-limiter.ts"
import { type Principal, type RateLimit, type Membership, isOwner } from "../contract/access.ts"
import { type Endpoint, type RequestFacts, isWrite } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { csrfHeader, organizationHeader } from "../contract/headers.ts"
import { parseParams, takesNoBody } from "./input.ts"

/** What a call is about, as far as access is concerned. */
type Subject =
  | { readonly kind: "organization"; readonly organizationId: string }
  | { readonly kind: "billing_account"; readonly billingAccountId: string }
  /** Inference: a key's own organization, or the one that a session names (null: its personal one). */
  | { readonly kind: "inference"; readonly organizationId: string | null }

/** What the server must be told about principals; the composition root brings the answers. */
interface Gate {
  /** The principal of a bearer value, or null when there is none. */
  authenticate(bearer: string): Promise<Principal | null>
  /** What the principal is there, or null when it must not learn that the subject exists. */
  membership(principal: Principal, subject: Subject): Promise<Membership | null>
  /** Whether what the path names is there in the organization; true where that is not known. */
  exists(organizationId: string, params: Readonly<Record<string, string>>): Promise<boolean>
}

export interface RequestLimiter {
  /** Takes one request from the principal's allowance, or throws `rate_limited`. Returns the headers to send. */
  take(principal: Principal): Promise<Readonly<Record<string, string>>>
}

export interface AccessDeps {
  /** The address that browsers know the server by, where a proxy has another one. */
  readonly publicUrl?: () => string
  /** Who every caller is, where only one can reach the server. */
  readonly principal?: Principal
  readonly gate: Gate
  readonly limiter: RequestLimiter
}

/** What is asked, and how far it got: the principal is known as soon as it is found, also where it is refused. */
export interface Caller {
  readonly endpoint: Endpoint
  /** Of the path, as they were sent. */
  readonly params: Readonly<Record<string, string>>
  readonly facts: RequestFacts
  principal: Principal | null
  /** Takes the headers of the rate limit. */
  headers?(headers: Readonly<Record<string, string>>): void
}

interface Admission {
  readonly params: Readonly<Record<string, string>>
  readonly membership: Membership | null
}

/**
 * Everything that can be refused without a look at what was sent, in the order in which the contract's errors win: 401, 429,
 * 403 of the principal, 404 of the organization, 403 by role, 404 of what the path names.
 */
export async function admit(caller: Caller, deps: AccessDeps): Promise<Admission> {
  const { gate, limiter } = deps
  const { endpoint, facts } = caller
  const principal = deps.principal ?? (await authenticate(endpoint, facts, deps))
  caller.principal = principal
  if (principal) {
    const headers = await limiter.take(principal)
    caller.headers?.(headers)
    checkNetwork(principal, facts.ip)
    checkPrincipal(endpoint, principal)
  }
  const params = parseParams(endpoint, caller.params)
  const membership = principal && (await findMembership(caller, principal, { params, gate }))
  if (principal && membership) {
    checkMembership(endpoint, principal, membership)
    await checkResource(endpoint, membership, { params, gate })
  }
  return { params, membership }
}

/**
 * 401: an endpoint that is open to anyone still wants valid credentials where some are given. A cookie is sent by the
 * browser, not by the caller, so an old one does not keep anyone from signing in.
 */
async function authenticate(
  endpoint: Endpoint,
  facts: RequestFacts,
  { gate, publicUrl }: AccessDeps,
): Promise<Principal | null> {
  if (endpoint.access.ownBearer) return null
  const isOpen = endpoint.access.principals.length === 0
  const credentials = readCredentials(endpoint, facts, publicUrl)
  if (!credentials && isOpen) return null
  if (!credentials) throw missing()
  const principal = await gate.authenticate(credentials.bearer)
  if (principal || (isOpen && credentials.source === "cookie")) return principal
  throw new Fault(
    "invalid_credentials",
    "Cannot authenticate: the bearer value is unknown, expired or revoked",
  )
}

const minuteMs = 60_000

/** 429: each principal has its own limit, or the standard one. */
export function createRequestLimiter(
  standard: RateLimit,
  limits: RateLimits = new RateLimiter(),
): RequestLimiter {
  return {
    async take({ id, rateLimit }) {
      const { requestsPerMinute, burst } = rateLimit ?? standard
      const rate = { burst, intervalMs: minuteMs / requestsPerMinute }
      const decision = await limits.take(`requests ${id}`, rate)
      const headers = {
        "x-ratelimit-limit-requests": String(burst),
        "x-ratelimit-remaining-requests": String(decision.remaining),
        "x-ratelimit-reset-requests": `${Math.ceil(decision.resetMs)}ms`,
      }
      if (decision.isAllowed) return headers
      throw new RateLimited(requestsPerMinute, decision.retryAfterMs, headers)
    },
  }
}

/** A refusal that also carries the headers of the limit. */
export class RateLimited extends Fault {
  readonly headers: Readonly<Record<string, string>>

  constructor(requestsPerMinute: number, retryAfterMs: number, headers: Readonly<Record<string, string>>) {
    super(
      "rate_limited",
      `Cannot take the request: more than ${requestsPerMinute} a minute; try again later`,
      { retryAfterMs: Math.max(1, retryAfterMs) },
    )
    this.headers = headers
  }
}

/** 403: the kind of principal, and the permission that a key or token carries. */
function checkPrincipal({ access }: Endpoint, principal: Principal): void {
  // What the operator may do is what its socket serves.
  if (access.principals.length === 0 || principal.kind === "operator") return
  if (!access.principals.includes(principal.kind))
    throw new Fault(
      "principal_not_accepted",
      "Cannot perform the operation: this kind of principal is not accepted here",
    )
  if (access.permission && principal.permissions && !principal.permissions.includes(access.permission))
    throw lacks(access.permission)
}

/** 403: where the caller is, for a key that may be used from some networks only. */
function checkNetwork({ keyLimits }: Principal, ip: string): void {
  const allowed = keyLimits?.allowedNetworks
  if (!allowed) return
  const networks = networksOf(allowed)
  if (networks && containsAddress(networks, ip)) return
  throw new Fault(
    "network_denied",
    `Cannot use the API key from ${ip}: its allowed_networks do not hold this address`,
  )
}

/** The list belongs to a cached key, so it is parsed once for as long as that is known. */
const parsedNetworks = new WeakMap<readonly string[], ReturnType<typeof parseNetworks>>()

function networksOf(allowed: readonly string[]): ReturnType<typeof parseNetworks> {
  let networks = parsedNetworks.get(allowed)
  if (networks === undefined) parsedNetworks.set(allowed, (networks = parseNetworks(allowed)))
  return networks
}

/** 404: what is not visible does not exist. Inference has no path to hide, so there it is 403. */
async function findMembership(
  { endpoint, facts }: Caller,
  principal: Principal,
  { params, gate }: { readonly params: Readonly<Record<string, string>>; readonly gate: Gate },
): Promise<Membership | null> {
  const subject = subjectOf(endpoint, params, facts)
  if (!subject) return null
  const membership = await gate.membership(principal, subject)
  if (membership) return membership
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

function subjectOf(
  endpoint: Endpoint,
  params: Readonly<Record<string, string>>,
  facts: RequestFacts,
): Subject | null {
  if (params["org_id"] !== undefined) return { kind: "organization", organizationId: params["org_id"] }
  if (params["billing_account_id"] !== undefined)
    return { kind: "billing_account", billingAccountId: params["billing_account_id"] }
  if (endpoint.access.permission === "inference")
    return {
      kind: "inference",
      organizationId: facts.header(organizationHeader) ?? facts.header("openai-organization"),
    }
  return null
}

/** 403: what a session may do by its role, and what only an owner may do. */
function checkMembership({ access }: Endpoint, principal: Principal, membership: Membership): void {
  const session = principal.kind === "session"
  if (
    access.permission &&
    !(session && access.alsoRoles?.includes(membership.role)) &&
    !membership.permissions.includes(access.permission)
  )
    throw lacks(access.permission)
  if (access.owner && (session || access.owner === "everyone") && !isOwner(membership.role))
    throw new Fault("permission_denied", "Cannot perform the operation: an organization owner is needed")
}

/** 404 before the body is read. Without one, the handler finds out by itself. */
async function checkResource(
  endpoint: Endpoint,
  { organizationId }: Membership,
  { params, gate }: { readonly params: Readonly<Record<string, string>>; readonly gate: Gate },
): Promise<void> {
  if (takesNoBody(endpoint)) return
  if (await gate.exists(organizationId, params)) return
  throw new Fault("not_found", "Cannot find the resource: no such id is visible to this principal")
}

function lacks(permission: string): Fault {
  return new Fault(
    "permission_denied",
    `Cannot perform the operation: the permission ${permission} is needed`,
  )
}

const sessionCookie = "umpire_session"

interface Credentials {
  readonly bearer: string
  readonly source: "header" | "cookie"
}

/** Where Anthropic's clients put their key; they ask for models, too. */
const keyHeader = "x-api-key"

const takesKeyHeader = ({ surface }: Endpoint): boolean => surface === "anthropic" || surface === "openai"

/** Null when none are given. A malformed Authorization header is refused rather than ignored. */
export function readCredentials(
  endpoint: Endpoint,
  facts: RequestFacts,
  publicUrl?: () => string,
): Credentials | null {
  const given = facts.header("authorization")
  if (given !== null) {
    const bearer = bearerOf(given)
    if (!bearer) throw missing()
    return { bearer, source: "header" }
  }
  const key = takesKeyHeader(endpoint) ? facts.header(keyHeader) : null
  if (key !== null) return { bearer: key, source: "header" }
  const bearer = readCookie(facts, sessionCookie)
  if (bearer === null) return null
  // A socket is opened with GET, and what is said over it costs money.
  const needsProof = isWrite(endpoint) || facts.header("upgrade") !== null
  if (!needsProof || isFromOurPage(facts, publicUrl)) return { bearer, source: "cookie" }
  // An endpoint that needs no credentials ignores a cookie without proof of origin.
  if (endpoint.access.principals.length === 0) return null
  throw new Fault(
    "csrf_refused",
    `Cannot use the session cookie: the request does not come from this site; send the header ${csrfHeader}`,
  )
}

/** Undefined when the header is of another form. */
function bearerOf(header: string): string | undefined {
  // As nearly every client writes it.
  if (header.startsWith("Bearer ") && !header.includes(" ", "Bearer ".length))
    return header.slice("Bearer ".length) || undefined
  return /^Bearer +(\S+) *$/i.exec(header)?.[1]
}

function missing(): Fault {
  return new Fault(
    "missing_credentials",
    "Cannot authenticate: the Authorization header holds no bearer value; send Authorization: Bearer <key>",
  )
}

function readCookie(facts: RequestFacts, name: string): string | null {
  for (const pair of (facts.header("cookie") ?? "").split(";")) {
    const [key, value] = pair.trim().split("=", 2)
    if (key === name && value) return value
  }
  return null
}

/** Browsers send cookies for pages of other sites too, so a write must show that the page is ours (CSRF). */
function isFromOurPage(facts: RequestFacts, publicUrl?: () => string): boolean {
  const origin = facts.header("origin")
  // Who says that it is another page is believed.
  if (origin === null) return facts.header(csrfHeader) !== null
  const host = hostOf(origin)
  return (
    host !== null &&
    (host === facts.header("host") || (publicUrl !== undefined && host === hostOf(publicUrl())))
  )
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}
