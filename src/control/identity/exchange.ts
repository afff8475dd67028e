/** The token exchange (RFC 8693): what a workload shows for itself becomes an access token, or a refusal that is on record. */
import { z } from "zod"
import type { Clock } from "../../base/clock.ts"
import { parsedJson, isObject } from "../../base/json.ts"
import type { Log } from "../../base/log.ts"
import { type Rate, RateLimiter } from "../../base/rate-limiter.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type IssuedToken, identityLimits, tokenExchangeGrant, tokenTypes } from "../../contract/identity.ts"
import { type ControlDeps, change } from "../audited-change.ts"
import {
  type AccessTokens,
  principalOf,
  type KnownProvider,
  type KnownProviders,
  isUsable,
} from "./access-tokens.ts"
import { type Decision, type DecisionDeps, type Evidence, decide } from "./decision.ts"
import { Refusal } from "./refusal.ts"
import type { Handshake } from "./x509.ts"

/** The caller is not known yet, so there is no rate limit of its own: this bounds what all of them can cost. */
const runningMax = 256

interface TokenExchangeDeps extends ControlDeps, DecisionDeps {
  readonly providers: KnownProviders
  readonly tokens: AccessTokens
  readonly log: Log
  readonly lifetimeSecondsMax: number
  /** Called after every exchange with `issued` or OAuth's error. */
  readonly onExchanged: (outcome: string) => void
}

export type ExchangeRequest = Pick<RequestFacts, "id" | "ip" | "userAgent">

/** A certificate that came with the connection, and the provider whose port name was asked for. */
export interface Presented {
  /** Null when no provider of certificates was named. */
  readonly providerId: string | null
  readonly handshake: Handshake
}

export interface TokenExchange {
  (
    parameters: Readonly<Record<string, string>>,
    request: ExchangeRequest,
    presented: Presented | null,
  ): Promise<IssuedToken>
}

export function createTokenExchange(deps: TokenExchangeDeps): TokenExchange {
  let running = 0
  const limit = createRefusalLimit(deps.clock)
  return async (parameters, request, presented) => {
    if (running >= runningMax)
      throw new Fault("overloaded", "Cannot exchange the token: too many exchanges run; try again later", {
        retryAfterMs: 1000,
      })
    running += 1
    try {
      const { providerId, evidence } = readParameters(parameters, presented)
      const known = providerId === null ? null : await deps.providers.find(providerId)
      const issued = await exchange(deps, known, evidence).catch(async (error: unknown) => {
        if (error instanceof Refused) await recordRefusal(deps, error, { known, request, limit })
        throw error
      })
      deps.onExchanged("issued")
      return issued
    } catch (error) {
      deps.onExchanged(error instanceof Fault ? error.code : "internal_error")
      throw error
    } finally {
      running -= 1
    }
  }
}

const Parameters = z.object({
  grant_type: z.string({ error: "is missing" }),
  subject_token: z.string().min(1).max(identityLimits.subjectTokenCharacters).optional(),
  subject_token_type: z.string().optional(),
  requested_token_type: z.string().optional(),
  identity_provider_id: z.string().min(1).optional(),
  audience: z.string().min(1).optional(),
})

interface TokenRequest {
  readonly providerId: string | null
  readonly evidence: Evidence
}

/** What RFC 8693 knows beyond these parameters (scope, resource, actor) is ignored, as RFC 6749 asks: the rules decide. */
function readParameters(given: Readonly<Record<string, string>>, presented: Presented | null): TokenRequest {
  const parsed = Parameters.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw invalid(`${issue?.path.join(".") ?? "a parameter"} ${issue?.message ?? "is invalid"}`)
  }
  const { grant_type, requested_token_type, identity_provider_id, audience } = parsed.data
  if (grant_type !== tokenExchangeGrant)
    throw new Fault(
      "unsupported_grant_type",
      `Cannot issue a token: the only grant_type is ${tokenExchangeGrant}`,
    )
  if (requested_token_type !== undefined && requested_token_type !== tokenTypes.accessToken)
    throw invalid(`requested_token_type can only be ${tokenTypes.accessToken}`)
  if (identity_provider_id !== undefined && audience !== undefined && identity_provider_id !== audience)
    throw invalid("identity_provider_id and audience name different providers")
  const named = identity_provider_id ?? audience ?? null
  return presented ? readPresented(parsed.data, named, presented) : readToken(parsed.data, named)
}

function readToken(
  { subject_token, subject_token_type }: z.infer<typeof Parameters>,
  providerId: string | null,
): TokenRequest {
  if (subject_token === undefined)
    throw invalid("subject_token is missing; certificates are exchanged on the mTLS port")
  if (subject_token_type !== tokenTypes.jwt && subject_token_type !== tokenTypes.idToken)
    throw invalid(`subject_token_type must be ${tokenTypes.jwt} or ${tokenTypes.idToken}`)
  if (providerId === null) throw invalid("identity_provider_id is missing")
  return { providerId, evidence: { kind: "token", token: subject_token } }
}

function readPresented(
  { subject_token }: z.infer<typeof Parameters>,
  named: string | null,
  { providerId, handshake }: Presented,
): TokenRequest {
  if (subject_token !== undefined)
    throw invalid("a subject_token is not taken on the mTLS port: the certificate is the assertion")
  if (named !== null && named !== providerId)
    throw new Fault(
      "invalid_target",
      "Cannot exchange the certificate: the connection was made to another provider's name, or to none; use <provider id with - for _>.<host>",
    )
  return { providerId, evidence: { kind: "handshake", handshake } }
}

/** A refusal that is recorded. */
class Refused extends Fault {
  readonly record: Readonly<Record<string, unknown>>

  constructor(code: "invalid_grant" | "invalid_target", reason: string, record: Record<string, unknown>) {
    super(code, `Cannot exchange the assertion: ${reason}`)
    this.record = { error: code, reason, ...record }
  }
}

async function exchange(
  deps: TokenExchangeDeps,
  known: KnownProvider | null,
  evidence: Evidence,
): Promise<IssuedToken> {
  const type = evidence.kind === "token" ? "oidc" : "x509"
  // One sentence for every way in which a provider cannot be used, so that ids cannot be probed.
  if (!isUsable(known) || known.provider.config.type !== type)
    throw new Refused(
      "invalid_target",
      `there is no active ${type === "oidc" ? "OIDC" : "X.509"} provider of this id`,
      { step: "provider" },
    )
  const decision = await decide(deps, known.provider, evidence)
  const subject = decision.assertion?.subject ?? null
  if (!decision.accepted)
    throw new Refused("invalid_grant", decision.reason, { step: decision.step, subject })
  try {
    return await issue(deps, known, decision)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refused("invalid_grant", error.message, { step: "token", subject })
  }
}

async function issue(
  { tokens, clock, lifetimeSecondsMax }: TokenExchangeDeps,
  known: KnownProvider,
  { assertion, attributes, permissions }: Extract<Decision, { accepted: true }>,
): Promise<IssuedToken> {
  const left = Math.floor((assertion.expiresMs - clock.nowMs()) / 1000)
  const lifetimeSeconds = Math.min(lifetimeSecondsMax, left)
  if (lifetimeSeconds < 1) throw new Refusal("the assertion is about to expire")
  const token = await tokens.issue({
    known,
    subject: assertion.subject,
    attributes,
    permissions,
    lifetimeSeconds,
  })
  return {
    access_token: token,
    issued_token_type: tokenTypes.accessToken,
    token_type: "Bearer",
    expires_in: lifetimeSeconds,
  }
}

/** What names no provider has no organization, whose audit log it could be in: it is logged and counted. */
const unknownProvider = "none"

/** A refusal is returned even when it cannot be recorded: an unavailable store changes no decision about access. */
async function recordRefusal(
  deps: TokenExchangeDeps,
  { record }: Refused,
  {
    known,
    request,
    limit,
  }: { known: KnownProvider | null; request: ExchangeRequest; limit: ReturnType<typeof createRefusalLimit> },
): Promise<void> {
  const turn = limit.take(known?.provider.id ?? unknownProvider)
  if (!turn) return
  const after = { ...record, ...(turn.suppressed > 0 ? { unrecorded_before: turn.suppressed } : {}) }
  const { id: request_id, ip } = request
  const provider = known?.provider.id ?? null
  deps.log.info({ request_id, ip, provider, ...after }, "a token exchange was refused")
  if (!known) return
  const { id, organizationId } = known.provider
  const caller = { principal: principalOf(known, []), request, idempotency: null }
  await change(deps, caller, async ({ audit }) => {
    await audit("workload_identity_provider.exchange_refused", { organizationId, id }, { after })
  }).catch((error: unknown) => deps.log.error({ err: error }, "a refused exchange could not be recorded"))
}

const invalid = (found: string): Fault => new Fault("invalid_exchange", `Cannot exchange the token: ${found}`)

/** The parameters of a form or of a JSON object; RFC 6749 forbids giving one twice. */
export function parseParameters(bytes: Uint8Array, contentType: string | null): Record<string, string> {
  const text = new TextDecoder().decode(bytes)
  const entries = /json/i.test(contentType ?? "") ? jsonEntries(text) : [...new URLSearchParams(text)]
  const parameters: Record<string, string> = Object.create(null)
  for (const [name, value] of entries) {
    if (name in parameters) throw invalid(`${name.slice(0, 64)} is given more than once`)
    parameters[name] = value
  }
  return parameters
}

function jsonEntries(text: string): [string, string][] {
  const body = parsedJson(text)
  if (body === undefined) throw invalid("the body is not JSON")
  if (!isObject(body)) throw invalid("the body is not a JSON object")
  return Object.entries(body).flatMap(([name, value]: [string, unknown]) => {
    if (value === null) return []
    if (typeof value !== "string") throw invalid(`${name.slice(0, 64)} is not text`)
    return [[name, value]]
  })
}

const rate: Rate = { burst: 60, intervalMs: 1_000 }
const countedMax = 10_000

function createRefusalLimit(clock: Clock): {
  /** Null when this one is not recorded; otherwise how many were not since the last that was. */
  take(providerId: string): { readonly suppressed: number } | null
} {
  const limiter = new RateLimiter(clock)
  const suppressed = new Map<string, number>()
  return {
    take(providerId) {
      const count = suppressed.get(providerId) ?? 0
      if (limiter.take(providerId, rate).isAllowed) {
        suppressed.delete(providerId)
        return { suppressed: count }
      }
      const [oldest] = suppressed.keys()
      if (count === 0 && suppressed.size >= countedMax && oldest !== undefined) suppressed.delete(oldest)
      suppressed.set(providerId, count + 1)
      return null
    },
  }
}
