/** A dry run of the exchange: which step accepts or refuses a token or certificate, and why. Nothing is issued. */
import type { X509Certificate } from "node:crypto"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type ProviderTestResult, testSteps } from "../../contract/identity.ts"
import type { Table } from "../../contract/table.ts"
import type { IdentityProvider } from "../../store/identity-providers.ts"
import type { ControlDeps } from "../audited-change.ts"
import { readCertificates } from "./certificates.ts"
import { type Decision, type DecisionDeps, type Evidence, decide } from "./decision.ts"
import { handlersOf } from "../resource.ts"
import { providers } from "./providers.ts"

export function rehearsalHandlers(
  deps: ControlDeps & DecisionDeps,
): Pick<Handlers<Table>, "testWorkloadIdentityProvider"> {
  return {
    async testWorkloadIdentityProvider(call) {
      const provider = await handlersOf(deps, providers).find(call, call.params.provider_id)
      return await rehearse(deps, provider, call.body)
    },
  }
}

/** One of the two. */
interface RehearsalInput {
  readonly subject_token?: string | undefined
  readonly certificate_chain?: string | undefined
}

async function rehearse(
  deps: DecisionDeps,
  provider: IdentityProvider,
  given: RehearsalInput,
): Promise<ProviderTestResult> {
  const decision = await decide(deps, provider, readEvidence(given))
  const steps = describeSteps(provider, decision)
  return {
    accepted: decision.accepted && provider.active,
    steps,
    assertion: decision.assertion ? { ...decision.assertion.claims } : null,
    attributes: decision.attributes ? { ...decision.attributes } : null,
    matched_rule: decision.matchedRule,
    permissions: decision.accepted && provider.active ? [...decision.permissions] : [],
  }
}

function readEvidence(given: RehearsalInput): Evidence {
  if (given.subject_token !== undefined) return { kind: "token", token: given.subject_token }
  let chain: X509Certificate[]
  try {
    chain = readCertificates(given.certificate_chain ?? "")
  } catch (cause) {
    throw new Fault("invalid_body", "Cannot test the certificates: one of them cannot be read", {
      cause,
      details: [{ path: "certificate_chain", message: "holds something that is not a certificate" }],
    })
  }
  return { kind: "certificates", chain }
}

type StepResult = ProviderTestResult["steps"][number]

/** The provider's own state is reported first, but a dry run continues: rules are often tested before they are switched on. */
function describeSteps(provider: IdentityProvider, decision: Decision): StepResult[] {
  const refusedAt = decision.accepted ? testSteps.length : testSteps.indexOf(decision.step)
  return testSteps.map((step, index): StepResult => {
    if (step === "provider") return describeProvider(provider)
    if (!decision.accepted && index === refusedAt)
      return { step, outcome: "refused", message: decision.reason }
    if (index > refusedAt) return { step, outcome: "not_reached", message: "" }
    return { step, outcome: "passed", message: describePass(step, provider, decision) }
  })
}

function describeProvider({ active, config }: IdentityProvider): StepResult {
  const message = `the provider takes ${config.type === "oidc" ? "tokens" : "certificates"}`
  return active
    ? { step: "provider", outcome: "passed", message }
    : { step: "provider", outcome: "refused", message: `${message}, but is not active` }
}

function describePass(
  step: Exclude<StepResult["step"], "provider">,
  provider: IdentityProvider,
  decision: Decision,
): string {
  switch (step) {
    case "assertion":
      return provider.config.type === "oidc"
        ? "signature, issuer, audience and times are right"
        : "the certificate leads to a trust anchor; limits on names are checked in the TLS handshake of a real exchange"
    case "attribute_condition":
      return provider.attributeCondition === null ? "there is no condition" : "the condition is true"
    case "attribute_transformations":
      return `${Object.keys(decision.attributes ?? {}).length} attributes`
    case "authorization_rules":
      return `rule ${decision.matchedRule} is the first that matches`
  }
}
