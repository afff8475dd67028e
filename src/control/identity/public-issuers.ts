/** Finds policies at issuers that sign tokens for anyone which would admit any workload of any customer of theirs, by evaluating them for one. */
import { Fault } from "../../contract/errors.ts"
import type { PublicIssuerConfirmation } from "../../contract/identity.ts"
import type { IdentityProvider } from "../../store/identity-providers.ts"
import { type CelPool, CelStopped } from "./cel-pool.ts"
import type { Claims } from "./cel.ts"

/** Issuers where anybody can open an account and have a workload's token signed. */
const publicIssuers = new Set([
  "https://accounts.google.com",
  "https://agent.buildkite.com",
  "https://app.terraform.io",
  "https://appleid.apple.com",
  "https://gitlab.com",
  "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
  "https://login.microsoftonline.com/common/v2.0",
  "https://oauth2.sigstore.dev/auth",
  "https://oidc.codefresh.io",
  "https://oidc.vercel.com",
  "https://token.actions.githubusercontent.com",
])

const isPublicIssuer = (issuer: string): boolean =>
  publicIssuers.has(issuer.toLowerCase().replace(/\/+$/, ""))

/** Claims that the issuer sets to the owner of the workload: an owner cannot forge those of another. */
const identityClaims = [
  ..."sub repository repository_id repository_owner repository_owner_id enterprise enterprise_id".split(" "),
  ..."project project_id project_path namespace_id namespace_path organization organization_id".split(" "),
  ..."organization_name organization_slug account_id account_name owner owner_id team team_id".split(" "),
  ..."email hd oid tid azp terraform_organization_id terraform_project_id terraform_workspace_id".split(" "),
  ..."pipeline_id pipeline_slug user_id user_login user_email".split(" "),
]

/** Who have nothing to do with the organization, named as the issuers name their users. */
const strangers: readonly Claims[] = [
  strangerNamed("zq7-stranger", "900719925474", "repo:zq7-stranger/any:ref:refs/heads/main"),
  strangerNamed("Unrelated.Person", "17", "project_path:Unrelated.Person/any:ref_type:branch:ref:main"),
  strangerNamed("somebody", "5", "100000000000000000005"),
].map((claims) => ({ ...claims, google: { compute_engine: { project_id: claims["project_id"] } } }))

function strangerNamed(name: string, id: string, sub: string): Record<string, unknown> {
  const claims = Object.fromEntries(
    identityClaims.map((claim) => [claim, /(?:^|_)id$/.test(claim) ? id : `${name}-${claim}`]),
  )
  return {
    ...claims,
    sub,
    repository: `${name}/${name}`,
    repository_owner: name,
    project_path: `${name}/${name}`,
    namespace_path: name,
    email: `${name}@${name}.example`,
    hd: `${name}.example`,
  }
}

/** What else a token usually says, which any account can have in its own tokens. */
const usualClaims: Claims = {
  aud: "any",
  actor: "anyone",
  ref: "refs/heads/main",
  ref_type: "branch",
  ref_protected: "true",
  environment: "production",
  event_name: "push",
  job_workflow_ref: "any/any/.github/workflows/ci.yml@refs/heads/main",
  runner_environment: "github-hosted",
  repository_visibility: "public",
  email_verified: true,
}

/** Refuses a provider that would let anyone in at a public issuer, unless the caller says twice that this is meant. */
export async function refuseOpenPolicy(
  provider: Policy & Pick<IdentityProvider, "config">,
  confirmation: PublicIssuerConfirmation | undefined,
  cel: CelPool,
): Promise<void> {
  const { config } = provider
  if (config.type !== "oidc" || !isPublicIssuer(config.issuer_uri)) return
  if (confirmation?.anyone_may_exchange === true && confirmation.issuer_uri === config.issuer_uri) return
  if (!(await admitsStrangers(provider, cel))) return
  throw new Fault(
    "invalid_body",
    `Cannot use the provider: ${config.issuer_uri} signs tokens for anyone, and these rules would let in others than yours; ` +
      "restrict the subject, repository or project, or confirm with public_issuer_confirmation",
    { details: [{ path: "attribute_condition", message: "lets in workloads of strangers" }] },
  )
}

type Policy = Pick<
  IdentityProvider,
  "organizationId" | "attributeCondition" | "attributeTransformations" | "authorizationRules"
>

/**
 * Whether somebody else's token may get a permission. The policy is evaluated for strangers whose tokens carry only the
 * claims that say who they are: any other claim can have whatever value the policy asks for, so a result that hangs on
 * one counts as true. CEL evaluates exactly so: `false && error` is false, `true && error` stays an error.
 */
async function admitsStrangers(policy: Policy, cel: CelPool): Promise<boolean> {
  for (const stranger of strangers)
    for (const claims of [stranger, { ...usualClaims, ...stranger }])
      if (await admits(policy, claims, cel)) return true
  return false
}

type Verdict = "true" | "false" | "unknown"

async function admits(policy: Policy, claims: Claims, cel: CelPool): Promise<boolean> {
  const { organizationId: owner, attributeCondition: condition } = policy
  const evaluate = async (text: string, transformations: Record<string, string>): Promise<Verdict> =>
    await evaluateRule(cel, owner, { text: withoutPresence(text), transformations, claims })
  if (condition !== null && (await evaluate(condition, {})) === "false") return false
  const known: Record<string, string> = {}
  // An attribute that hangs on an unknown claim is left out, so that rules which read it are unknown too.
  for (const [name, text] of Object.entries(policy.attributeTransformations)) {
    const plain = withoutPresence(text)
    const outcome = await evaluateRule(cel, owner, {
      text: "true",
      transformations: { [name]: plain },
      claims,
    })
    if (outcome === "true") known[name] = plain
  }
  for (const { condition: rule, permissions } of policy.authorizationRules) {
    const verdict = await evaluate(rule, known)
    if (verdict !== "false" && permissions.length > 0) return true
    if (verdict === "true") return false
  }
  return false
}

interface Evaluation {
  readonly text: string
  readonly transformations: Readonly<Record<string, string>>
  readonly claims: Claims
}

async function evaluateRule(
  cel: CelPool,
  owner: string,
  { text, transformations, claims }: Evaluation,
): Promise<Verdict> {
  const policy = { condition: null, transformations, rules: [text] }
  const outcome = await cel.run(owner, policy, claims).catch((error: unknown) => {
    if (error instanceof CelStopped) return null
    throw error
  })
  if (outcome === null) return "unknown"
  if ("matched" in outcome) return "true"
  return outcome.refusedBy === "authorization_rules" && outcome.reason === "no rule matches"
    ? "false"
    : "unknown"
}

const presence = /\bhas\s*\(\s*assertion\s*\.\s*(\w+)[^()]*\)/g
const membership = /(?:"(\w+)"|'(\w+)')\s+in\s+assertion(?![\w.[])/g

/** Whether a claim that anyone can have is there is unknown as well; CEL would call it absent. */
function withoutPresence(text: string): string {
  return text
    .replaceAll(presence, (whole, claim: string) => unknownUnlessIdentity(whole, claim))
    .replaceAll(membership, (whole, double?: string, single?: string) =>
      unknownUnlessIdentity(whole, double ?? single ?? ""),
    )
}

const unknownUnlessIdentity = (whole: string, claim: string): string =>
  identityClaims.includes(claim) ? whole : "(assertion.unknown == true)"
