/** Checks a JWT of an OIDC issuer against one provider. */
import type { JWTPayload, JWTVerifyGetKey } from "jose"
import type { OidcConfig } from "../../store/identity-providers.ts"
import { jose } from "./jose.ts"
import type { KeySets } from "./key-sets.ts"
import { type Assertion, Refusal } from "./refusal.ts"

const leewaySeconds = 60
const lifetimeSecondsMax = 24 * 3600
/** Asymmetric only: with a symmetric one, the public key would be enough to sign. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
]

export async function verifyOidcToken(
  token: string,
  config: OidcConfig,
  {
    keySets,
    cacheKey,
    nowMs,
  }: { readonly keySets: KeySets; readonly cacheKey: string; readonly nowMs: number },
): Promise<Assertion> {
  const kid = readKeyId(token)
  const set = await keySets.find(cacheKey, config, kid)
  if (kid === null && set.size > 1) throw new Refusal("the token names no key, and the issuer has several")
  const payload = await verify(token, async (header, input) => await set.getKey(header, input), {
    config,
    nowMs,
  })
  const expires = checkTimes(payload, nowMs / 1000)
  return {
    claims: payload,
    expiresMs: expires * 1000,
    subject: payload.sub ?? null,
  }
}

function readKeyId(token: string): string | null {
  try {
    const { kid, alg } = jose().decodeProtectedHeader(token)
    // Before the issuer is asked for its keys.
    if (!algorithms.includes(alg ?? "")) throw new Refusal("the token's algorithm is not accepted")
    return typeof kid === "string" ? kid : null
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw new Refusal("the token is not a signed JWT", error)
  }
}

async function verify(
  token: string,
  getKey: JWTVerifyGetKey,
  { config, nowMs }: { readonly config: OidcConfig; readonly nowMs: number },
): Promise<JWTPayload> {
  try {
    const { payload } = await jose().jwtVerify(token, getKey, {
      algorithms,
      issuer: config.issuer_uri,
      audience: [...config.allowed_audiences],
      clockTolerance: leewaySeconds,
      currentDate: new Date(nowMs),
      requiredClaims: ["exp"],
    })
    return payload
  } catch (error) {
    throw new Refusal(reasonOf(error), error)
  }
}

function reasonOf(error: unknown): string {
  const { errors } = jose()
  if (error instanceof errors.JWTExpired) return "the token has expired"
  if (error instanceof errors.JWTClaimValidationFailed)
    return claimReasons[error.claim] ?? "a claim is invalid"
  if (error instanceof errors.JWKSNoMatchingKey)
    return "the issuer has no key of the token's name and algorithm"
  if (error instanceof errors.JWKSMultipleMatchingKeys) return "several keys of the issuer fit the token"
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the token's signature is wrong"
  if (error instanceof errors.JOSEAlgNotAllowed) return "the token's algorithm is not accepted"
  if (error instanceof errors.JOSENotSupported) return "the token needs something that is not supported"
  if (error instanceof errors.JOSEError) return "the token is malformed"
  // The cryptography refuses keys that are too short, or of another kind than the algorithm, with a TypeError.
  return "the issuer's key cannot be used"
}

const claimReasons: Readonly<Record<string, string>> = {
  iss: "the token is of another issuer",
  aud: "the token's audience is not one of the allowed",
  nbf: "the token is not valid yet",
  exp: "the token does not say when it expires",
  iat: "the token's time of issue is invalid",
}

/** Answers when it expires, in seconds. */
function checkTimes({ exp = 0, iat, nbf }: JWTPayload, nowSeconds: number): number {
  if (iat !== undefined && iat > nowSeconds + leewaySeconds)
    throw new Refusal("the token was issued in the future")
  const from = iat ?? nbf ?? nowSeconds
  if (exp - from > lifetimeSecondsMax) throw new Refusal("the token is valid for more than 24 hours")
  return exp
}
