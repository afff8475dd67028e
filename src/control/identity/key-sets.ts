/** The public keys of OIDC issuers: given with the provider, or found by discovery and kept for a while. */
import type { JSONWebKeySet, JWK, JWTVerifyGetKey } from "jose"
import type { Clock } from "../../base/clock.ts"
import { objectOf } from "../../base/json.ts"
import { identityLimits } from "../../contract/identity.ts"
import type { OidcConfig } from "../../store/identity-providers.ts"
import { jose } from "./jose.ts"
import type { JsonFetcher } from "./fetch-json.ts"
import { Refusal } from "./refusal.ts"

const freshMs = 10 * 60_000
/** However many tokens name keys that are not known, an issuer is asked once in this time. */
const cooldownMs = 30_000
/** Keys that were valid are still accepted while the issuer is unreachable. */
const staleMs = 24 * 3_600_000
const cachedMax = 1000

interface KeySet {
  readonly size: number
  has(kid: string): boolean
  readonly getKey: JWTVerifyGetKey
}

interface Known {
  set: KeySet | null
  fetchedMs: number
  triedMs: number
  /** When it was last fetched because of a key that it did not hold. */
  missedMs: number
  failure: Refusal | null
  pending: Promise<void> | null
}

export interface KeySets {
  /** The keys of an issuer. `cacheKey` changes with the provider's configuration; `kid` is the key that is wanted. */
  find(cacheKey: string, config: OidcConfig, kid: string | null): Promise<KeySet>
}

export function createKeySets(fetcher: Pick<JsonFetcher, "fetch">, clock: Clock): KeySets {
  const known = new Map<string, Known>()

  const refresh = async (entry: Known, issuer: string): Promise<void> => {
    entry.triedMs = clock.monotonicMs()
    try {
      entry.set = keySetOf(await discover(fetcher, issuer))
      entry.fetchedMs = clock.monotonicMs()
      entry.failure = null
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      entry.failure = error
    } finally {
      entry.pending = null
    }
  }

  return {
    async find(cacheKey, config, kid) {
      const entry = known.get(cacheKey) ?? remember(known, cacheKey)
      if (config.jwks !== null && config.jwks !== undefined) return (entry.set ??= keySetOf(config.jwks))
      const nowMs = clock.monotonicMs()
      if (entry.set && nowMs - entry.fetchedMs < freshMs && (kid === null || entry.set.has(kid)))
        return entry.set
      if (entry.pending === null && mayFetch(entry, nowMs)) entry.pending = refresh(entry, config.issuer_uri)
      if (entry.pending) await entry.pending
      if (entry.set !== null && clock.monotonicMs() - entry.fetchedMs < staleMs) return entry.set
      throw entry.failure ?? new Refusal("the issuer's keys are not known")
    },
  }
}

/** A set that is fresh but lacks a key is fetched at once, for the issuer may just have changed its keys; then not for a while. */
function mayFetch(entry: Known, nowMs: number): boolean {
  const missed = entry.set !== null && nowMs - entry.fetchedMs < freshMs
  if (!missed) return nowMs - entry.triedMs >= cooldownMs
  if (nowMs - entry.missedMs < cooldownMs) return false
  entry.missedMs = nowMs
  return true
}

function remember(known: Map<string, Known>, cacheKey: string): Known {
  if (known.size >= cachedMax) known.delete(known.keys().next().value ?? "")
  const entry: Known = {
    set: null,
    fetchedMs: -Infinity,
    triedMs: -Infinity,
    missedMs: -Infinity,
    failure: null,
    pending: null,
  }
  known.set(cacheKey, entry)
  return entry
}

/** OpenID Connect Discovery 1.0, section 4: the document must name the very issuer that was asked. */
async function discover({ fetch }: Pick<JsonFetcher, "fetch">, issuer: string): Promise<unknown> {
  const document = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)
  const { issuer: named, jwks_uri } = objectOf(document)
  if (named !== issuer) throw new Refusal("the issuer's discovery document names another issuer")
  if (typeof jwks_uri !== "string") throw new Refusal("the issuer's discovery document names no keys")
  return await fetch(jwks_uri)
}

/** Symmetric and private keys are no public keys: a set that holds one of them is used without it. */
function keySetOf(jwks: unknown): KeySet {
  const { keys } = objectOf(jwks)
  if (!Array.isArray(keys)) throw new Refusal("the issuer's key set is not one")
  if (keys.length > identityLimits.jwksKeys)
    throw new Refusal(`the issuer's key set has more than ${identityLimits.jwksKeys} keys`)
  const usable = keys.filter(isPublicKey)
  const kids = new Set(usable.map(({ kid }) => kid))
  const set: JSONWebKeySet = { keys: usable }
  return { size: usable.length, has: (kid) => kids.has(kid), getKey: jose().createLocalJWKSet(set) }
}

export function isPublicKey(key: unknown): key is JWK {
  if (typeof key !== "object" || key === null) return false
  const { kty, d, k }: JWK = key
  return (kty === "RSA" || kty === "EC" || kty === "OKP") && d === undefined && k === undefined
}
