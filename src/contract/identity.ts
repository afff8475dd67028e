/** Workload identity: providers that vouch for workloads, the exchange of what they vouch with, and the keys it is signed with. */
import { z } from "zod"
import { bodyText, recordOf } from "./check.ts"
import { permissions, roles } from "./access.ts"
import { endpoint, namedObject, namedStrictObject } from "./endpoint.ts"
import { endpointGroup, ownersAdmin } from "./endpoint-group.ts"
import { Datetime, Text } from "./platform/field-schemas.ts"

const kibibyte = 1024

export const identityLimits = {
  providersPerOrganization: 20,
  bodyBytes: 1024 * kibibyte,
  nameCharacters: 100,
  issuerCharacters: 512,
  audiences: 50,
  audienceCharacters: 512,
  jwksKeys: 100,
  trustAnchors: 16,
  intermediateCas: 32,
  pemCharacters: 16 * kibibyte,
  expressionBytes: 16 * kibibyte,
  transformations: 32,
  rules: 64,
  subjectTokenCharacters: 16 * kibibyte,
  exchangeBytes: 64 * kibibyte,
} as const

/** What the database can keep: no NUL, no half of a surrogate pair. */
const text = (charactersMax: number) =>
  z
    .string()
    .max(charactersMax)
    .refine((value) => value.isWellFormed() && !value.includes("\0"), "holds a character that is not text")

const Expression = text(identityLimits.expressionBytes)
  .min(1)
  .refine((value) => Buffer.byteLength(value) <= identityLimits.expressionBytes, "longer than 16 KiB")
  .meta({ description: "A CEL expression of at most 16 KiB." })

const Pem = text(identityLimits.pemCharacters).meta({ description: "One certificate, as PEM." })

const OidcConfig = namedStrictObject("OidcProviderConfig", {
  type: z.literal("oidc"),
  issuer_uri: text(identityLimits.issuerCharacters).meta({
    description: "The exact HTTPS issuer, equal to the `iss` claim to the character.",
  }),
  allowed_audiences: z
    .array(text(identityLimits.audienceCharacters).min(1))
    .min(1)
    .max(identityLimits.audiences),
  jwks: z.unknown().optional().meta({ description: "A static public key set; null uses discovery." }),
})

const X509Config = namedStrictObject("X509ProviderConfig", {
  type: z.literal("x509"),
  trust_anchors: z.array(Pem).min(1).max(identityLimits.trustAnchors),
  intermediate_cas: z
    .array(Pem)
    .max(identityLimits.intermediateCas)
    .optional()
    .meta({ description: "Used only for chain construction." }),
})

const ProviderConfig = z.discriminatedUnion("type", [OidcConfig, X509Config])

const AuthorizationRule = namedStrictObject("AuthorizationRule", {
  condition: Expression,
  permissions: z
    .array(z.enum(permissions))
    .max(permissions.length)
    .refine((list) => new Set(list).size === list.length, "names a permission twice")
    .meta({ description: "The complete permission set when this rule is the first match." }),
})

const Name = Text(identityLimits.nameCharacters)
const Transformations = recordOf(
  z.string().regex(/^[A-Za-z_]\w{0,63}$/, "is not a name of letters, digits and _"),
  Expression,
  identityLimits.transformations,
)
const Rules = z.array(AuthorizationRule).min(1).max(identityLimits.rules)

export const PublicIssuerConfirmation = z
  .strictObject({ anyone_may_exchange: z.literal(true), issuer_uri: bodyText() })
  .meta({
    id: "PublicIssuerConfirmation",
    description:
      "Needed to save rules that let anyone in whose token a public issuer signs: says so, and repeats the issuer.",
  })
export type PublicIssuerConfirmation = z.infer<typeof PublicIssuerConfirmation>

export const NewProvider = namedStrictObject("NewWorkloadIdentityProvider", {
  name: Name,
  active: z.boolean().default(true),
  config: ProviderConfig,
  attribute_condition: Expression.nullable().default(null),
  attribute_transformations: Transformations.default({}),
  authorization_rules: Rules.default([{ condition: "true", permissions: [] }]).meta({
    description: "Without rules nothing is granted.",
  }),
  public_issuer_confirmation: PublicIssuerConfirmation.optional(),
})
export type NewProvider = z.infer<typeof NewProvider>

export const ProviderChanges = z
  .strictObject({
    name: Name.optional(),
    active: z.boolean().optional(),
    config: ProviderConfig.optional(),
    attribute_condition: Expression.nullable().optional(),
    attribute_transformations: Transformations.optional(),
    authorization_rules: Rules.optional(),
    public_issuer_confirmation: PublicIssuerConfirmation.optional(),
  })
  .refine((changes) => Object.keys(changes).length > 0, "changes nothing")
  .meta({ id: "WorkloadIdentityProviderChanges" })
export type ProviderChanges = z.infer<typeof ProviderChanges>

export const WorkloadIdentityProvider = namedObject("WorkloadIdentityProvider", {
  id: z.string(),
  organization_id: z.string(),
  name: z.string(),
  active: z.boolean(),
  config: z.discriminatedUnion("type", [
    z.object({ ...OidcConfig.shape, jwks: z.unknown() }),
    z.object({ ...X509Config.shape, intermediate_cas: z.array(z.string()) }),
  ]),
  attribute_condition: z.string().nullable(),
  attribute_transformations: z.record(z.string(), z.string()),
  authorization_rules: z.array(AuthorizationRule),
  policy_revision: z.int().min(1),
  created_at: Datetime,
  updated_at: Datetime,
})
export type WorkloadIdentityProvider = z.infer<typeof WorkloadIdentityProvider>

const ProviderTest = z
  .strictObject({
    subject_token: text(identityLimits.subjectTokenCharacters).optional(),
    certificate_chain: text(identityLimits.bodyBytes / 2)
      .optional()
      .meta({ description: "PEM, the workload's own certificate first." }),
  })
  .refine(
    ({ subject_token, certificate_chain }) =>
      (subject_token === undefined) !== (certificate_chain === undefined),
    "needs subject_token or certificate_chain, not both",
  )

export const testSteps = [
  "provider",
  "assertion",
  "attribute_condition",
  "attribute_transformations",
  "authorization_rules",
] as const

export const ProviderTestResult = namedObject("WorkloadIdentityTest", {
  accepted: z.boolean(),
  steps: z.array(
    z.object({
      step: z.enum(testSteps),
      outcome: z.enum(["passed", "refused", "not_reached"]),
      message: z.string(),
    }),
  ),
  assertion: z.record(z.string(), z.unknown()).nullable(),
  attributes: z.record(z.string(), z.unknown()).nullable(),
  matched_rule: z.int().nullable().meta({ description: "Index of the first rule that matched." }),
  permissions: z.array(z.enum(permissions)),
})
export type ProviderTestResult = z.infer<typeof ProviderTestResult>

const area = "Workload identity"
const readers = {
  principals: ["session", "key", "workload"],
  permission: "api-admin",
  alsoRoles: roles,
} as const

export const tokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
export const tokenTypes = {
  jwt: "urn:ietf:params:oauth:token-type:jwt",
  idToken: "urn:ietf:params:oauth:token-type:id_token",
  accessToken: "urn:ietf:params:oauth:token-type:access_token",
} as const

const TokenExchange = z
  .object({
    grant_type: z.literal(tokenExchangeGrant),
    subject_token: bodyText().optional().meta({ description: "Left out on the mTLS port." }),
    subject_token_type: z.enum([tokenTypes.jwt, tokenTypes.idToken]).optional(),
    identity_provider_id: bodyText().optional().meta({ description: "The provider, `wi_...`." }),
    audience: bodyText().optional().meta({ description: "The same as `identity_provider_id`." }),
  })
  .meta({ id: "TokenExchange", description: "As application/x-www-form-urlencoded or JSON (RFC 8693)." })

export const IssuedToken = namedObject("IssuedToken", {
  access_token: z.string(),
  issued_token_type: z.literal(tokenTypes.accessToken),
  token_type: z.literal("Bearer"),
  expires_in: z.int().min(1),
})
export type IssuedToken = z.infer<typeof IssuedToken>

export const exchangeToken = endpoint({
  method: "POST",
  path: "/v1/oauth/token",
  area,
  surface: "oauth",
  summary:
    "Exchange an identity for an access token; an OIDC token, or on the mTLS port a client certificate",
  access: { principals: [] },
  body: TokenExchange,
  reads: "bytes",
  bodyBytesMax: identityLimits.exchangeBytes,
  output: IssuedToken,
  errors: [
    "invalid_exchange",
    "unsupported_grant_type",
    "invalid_grant",
    "invalid_target",
    "overloaded",
    "not_json",
    "body_over_limit",
  ],
})

const getJwks = endpoint({
  method: "GET",
  path: "/.well-known/jwks.json",
  area,
  surface: "service",
  summary: "Read the public keys of workload access tokens",
  access: { principals: [] },
  output: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }).meta({ id: "JsonWebKeySet" }),
})

const providers = endpointGroup("/v1/organizations/{org_id}/workload_identity/providers", {
  area: "Workload identity",
  read: readers,
  write: ownersAdmin,
})
const provider = providers.at("/{provider_id}")

export const identityEndpoints = {
  listWorkloadIdentityProviders: providers.get({
    summary: "List workload identity providers",
    output: z.array(WorkloadIdentityProvider),
  }),
  createWorkloadIdentityProvider: providers.post({
    summary: "Create a workload identity provider",
    body: NewProvider,
    bodyBytesMax: identityLimits.bodyBytes,
    output: WorkloadIdentityProvider,
    errors: ["conflict"],
  }),
  getWorkloadIdentityProvider: provider.get({
    summary: "Read a workload identity provider",
    output: WorkloadIdentityProvider,
  }),
  updateWorkloadIdentityProvider: provider.patch({
    summary: "Change a workload identity provider; tokens issued before stop working",
    body: ProviderChanges,
    bodyBytesMax: identityLimits.bodyBytes,
    output: WorkloadIdentityProvider,
    errors: ["conflict", "precondition_failed"],
  }),
  deleteWorkloadIdentityProvider: provider.remove({
    summary: "Delete a workload identity provider; tokens issued before stop working",
    errors: ["precondition_failed"],
  }),
  testWorkloadIdentityProvider: provider.at("/test").post({
    summary: "Test an exchange; issues no token",
    body: ProviderTest,
    bodyBytesMax: identityLimits.bodyBytes,
    output: ProviderTestResult,
    errors: ["overloaded"],
  }),
  exchangeToken,
  getJwks,
}
