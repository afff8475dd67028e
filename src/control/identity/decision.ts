/** What a provider decides about an assertion: verify, condition, transformations, rules. Nothing is issued here. */
import type { Clock } from "../../base/clock.ts"
import type { Permission } from "../../contract/access.ts"
import type { testSteps } from "../../contract/identity.ts"
import type { IdentityProvider } from "../../store/identity-providers.ts"
import { type CelPool, CelStopped } from "./cel-pool.ts"
import type { PolicyOutcome } from "./cel.ts"
import type { KeySets } from "./key-sets.ts"
import { verifyOidcToken } from "./oidc.ts"
import { type Assertion, Refusal } from "./refusal.ts"
import { policyOf } from "./validation.ts"
import { type Handshake, rehearseChain, verifyHandshake } from "./x509.ts"

/** What a workload shows for itself. */
export type Evidence =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "handshake"; readonly handshake: Handshake }
  /** Certificates alone, without proof that their private key is held: good for a dry run only. */
  | { readonly kind: "certificates"; readonly chain: Handshake["chain"] }

type Step = (typeof testSteps)[number]

export type Decision =
  | {
      readonly accepted: true
      readonly assertion: Assertion
      readonly attributes: Readonly<Record<string, unknown>>
      readonly matchedRule: number
      readonly permissions: readonly Permission[]
    }
  | ({ readonly accepted: false; readonly step: Step; readonly reason: string } & KnownSoFar)

/** What was found out before the refusal. */
interface KnownSoFar {
  readonly assertion: Assertion | null
  readonly attributes: Readonly<Record<string, unknown>> | null
  readonly matchedRule: number | null
}

export interface DecisionDeps {
  readonly clock: Clock
  readonly cel: CelPool
  readonly keySets: KeySets
}

export async function decide(
  deps: DecisionDeps,
  provider: IdentityProvider,
  evidence: Evidence,
): Promise<Decision> {
  let assertion: Assertion
  try {
    assertion = await verify(deps, provider, evidence)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return refused("assertion", error.message, { assertion: null, attributes: null, matchedRule: null })
  }
  const outcome = await runPolicy(deps, provider, assertion)
  if ("refusedBy" in outcome)
    return refused(outcome.refusedBy, outcome.reason, {
      assertion,
      attributes: outcome.attributes,
      matchedRule: null,
    })
  const { matched, attributes } = outcome
  const permissions = provider.authorizationRules[matched]?.permissions ?? []
  const known = { assertion, attributes, matchedRule: matched }
  if (permissions.length === 0)
    return refused("authorization_rules", "the first rule that matches grants nothing", known)
  return { accepted: true, permissions, ...known }
}

const refused = (step: Step, reason: string, known: KnownSoFar): Decision => ({
  accepted: false,
  step,
  reason,
  ...known,
})

async function verify(
  { clock, keySets }: DecisionDeps,
  { id, policyRevision, config }: IdentityProvider,
  evidence: Evidence,
): Promise<Assertion> {
  const nowMs = clock.nowMs()
  const revision = `${id}:${policyRevision}`
  if (evidence.kind === "token") {
    if (config.type !== "oidc") throw new Refusal("the provider takes certificates, not tokens")
    return await verifyOidcToken(evidence.token, config, { keySets, cacheKey: revision, nowMs })
  }
  if (config.type !== "x509") throw new Refusal("the provider takes tokens, not certificates")
  return evidence.kind === "handshake"
    ? verifyHandshake(evidence.handshake, config, { cacheKey: revision, nowMs })
    : rehearseChain(evidence.chain, config, nowMs)
}

async function runPolicy(
  { cel }: DecisionDeps,
  provider: IdentityProvider,
  assertion: Assertion,
): Promise<PolicyOutcome> {
  try {
    return await cel.run(provider.organizationId, policyOf(provider), assertion.claims)
  } catch (error) {
    if (!(error instanceof CelStopped)) throw error
    return {
      refusedBy: "authorization_rules",
      reason: `the policy cannot be evaluated: ${error.message}`,
      attributes: null,
    }
  }
}
