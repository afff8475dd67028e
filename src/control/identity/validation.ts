/** What a provider must fulfil to be saved, beyond its shape: addresses, keys, certificates, and expressions that compile. */
import type { X509Certificate } from "node:crypto"
import { objectOf } from "../../base/json.ts"
import { Fault } from "../../contract/errors.ts"
import { identityLimits } from "../../contract/identity.ts"
import type { IdentityProvider, OidcConfig, X509Config } from "../../store/identity-providers.ts"
import type { CelPool } from "./cel-pool.ts"
import type { PolicyText } from "./policy-text.ts"
import { findWeakness, isSelfSigned, readCertificates } from "./certificates.ts"
import { jose } from "./jose.ts"
import { isPublicKey } from "./key-sets.ts"

interface Flaw {
  readonly path: string
  readonly message: string
  readonly line?: number
  readonly column?: number
}

type ProviderText = Pick<
  IdentityProvider,
  "organizationId" | "config" | "attributeCondition" | "attributeTransformations" | "authorizationRules"
>

const rsaBitsMin = 2048
const flawsMax = 20
const fallback = "true"

/** 422 with the place of every flaw. */
export async function checkProvider(provider: ProviderText, cel: CelPool): Promise<void> {
  const { config } = provider
  const flaws = config.type === "oidc" ? await findOidcFlaws(config) : findX509Flaws(config)
  flaws.push(...findFallbackFlaw(provider), ...(await cel.check(provider.organizationId, policyOf(provider))))
  const [first] = flaws
  if (!first) return
  const place = first.line === undefined ? "" : ` (line ${first.line}, column ${first.column})`
  throw new Fault("invalid_body", `Cannot use the provider: ${first.path}: ${first.message}${place}`, {
    details: flaws.slice(0, flawsMax),
  })
}

export function policyOf({
  attributeCondition,
  attributeTransformations,
  authorizationRules,
}: Pick<
  IdentityProvider,
  "attributeCondition" | "attributeTransformations" | "authorizationRules"
>): PolicyText {
  return {
    condition: attributeCondition,
    transformations: attributeTransformations,
    rules: authorizationRules.map(({ condition }) => condition),
  }
}

/** First match wins, so what matches everything must be said, and be said last. */
function findFallbackFlaw({ authorizationRules: rules }: ProviderText): Flaw[] {
  if (rules.at(-1)?.condition.trim() === fallback) return []
  const path = `authorization_rules.${rules.length - 1}.condition`
  return [{ path, message: "the last rule must be the fallback: its condition is the literal true" }]
}

async function findOidcFlaws(config: OidcConfig): Promise<Flaw[]> {
  const flaws: Flaw[] = []
  const issuer = findIssuerFlaw(config.issuer_uri)
  if (issuer !== null) flaws.push({ path: "config.issuer_uri", message: issuer })
  if (new Set(config.allowed_audiences).size < config.allowed_audiences.length)
    flaws.push({ path: "config.allowed_audiences", message: "an audience is listed twice" })
  if (config.jwks !== null && config.jwks !== undefined) flaws.push(...(await findKeySetFlaws(config.jwks)))
  return flaws
}

function findIssuerFlaw(issuer: string): string | null {
  const url = URL.parse(issuer)
  if (url?.protocol !== "https:") return "is not an https:// address"
  if (url.search !== "" || url.hash !== "" || /[?#\s]/.test(issuer)) return "has a query or a fragment"
  return url.username !== "" || url.password !== "" ? "holds credentials" : null
}

async function findKeySetFlaws(jwks: unknown): Promise<Flaw[]> {
  const path = "config.jwks"
  const keys = typeof jwks === "object" && jwks !== null && "keys" in jwks ? jwks.keys : undefined
  if (!Array.isArray(keys) || keys.length === 0) return [{ path, message: "is not a key set with keys" }]
  if (keys.length > identityLimits.jwksKeys)
    return [{ path, message: `has more than ${identityLimits.jwksKeys} keys` }]
  if (!isStorable(jwks)) return [{ path, message: "holds a character that is not text" }]
  const kids = keys.map((key: unknown) => objectOf(key)["kid"])
  if (keys.length > 1 && new Set(kids.filter((kid) => typeof kid === "string")).size < keys.length)
    return [{ path, message: "has several keys, which need a kid each, all different" }]
  const found = await Promise.all(keys.map(async (key: unknown) => await findKeyFlaw(key)))
  return found.flatMap((message, index) =>
    message === null ? [] : [{ path: `${path}.keys.${index}`, message }],
  )
}

const algorithmOfKey: Readonly<Record<string, string>> = {
  RSA: "RS256",
  "P-256": "ES256",
  "P-384": "ES384",
  "P-521": "ES512",
  Ed25519: "EdDSA",
}

async function findKeyFlaw(key: unknown): Promise<string | null> {
  if (!isPublicKey(key)) return "is not an asymmetric public key"
  const algorithm = algorithmOfKey[key.crv ?? key.kty ?? ""]
  if (algorithm === undefined) return "has a type or curve that is not supported"
  try {
    await jose().importJWK(key, algorithm)
  } catch {
    return "cannot be read"
  }
  const bits = key.kty === "RSA" ? Buffer.from(key.n ?? "", "base64url").length * 8 : rsaBitsMin
  return bits < rsaBitsMin ? `has less than ${rsaBitsMin} bits` : null
}

/** The database keeps neither NUL nor half a surrogate pair. */
function isStorable(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed() && !value.includes("\0")
  if (typeof value !== "object" || value === null) return true
  return Object.entries(value).every(([key, member]) => isStorable(key) && isStorable(member))
}

function findX509Flaws(config: X509Config): Flaw[] {
  const check = (
    list: readonly string[],
    field: string,
    find: (certificate: X509Certificate) => string | null,
  ) =>
    list.flatMap((pem, index): Flaw[] => {
      const message = findPemFlaw(pem, find)
      return message === null ? [] : [{ path: `config.${field}.${index}`, message }]
    })
  return [
    ...check(config.trust_anchors, "trust_anchors", (certificate) =>
      isSelfSigned(certificate) ? null : "is not self-signed: only a root can be an anchor",
    ),
    ...check(config.intermediate_cas, "intermediate_cas", (certificate) =>
      isSelfSigned(certificate) ? "is self-signed: an intermediate must not be an anchor" : null,
    ),
  ]
}

function findPemFlaw(pem: string, find: (certificate: X509Certificate) => string | null): string | null {
  let certificates: X509Certificate[]
  try {
    certificates = readCertificates(pem)
  } catch {
    return "is not a certificate"
  }
  const [certificate, another] = certificates
  if (!certificate || another) return "is not exactly one certificate in PEM"
  if (/PRIVATE KEY/.test(pem)) return "holds a private key"
  if (!certificate.ca) return "is not a certificate authority"
  return find(certificate) ?? findWeakness(certificate)
}
