/** Workload access tokens: issued after an exchange, and valid while their provider is unchanged. */
import { randomUUID } from "node:crypto"
import { z } from "zod"
import type { Clock } from "../../base/clock.ts"
import { type Permission, type Principal, permissions } from "../../contract/access.ts"
import type { Change } from "../../store/changes.ts"
import { FreshCache } from "../../store/fresh-cache.ts"
import { type IdentityProvider, findProviderAndOrganization } from "../../store/identity-providers.ts"
import type { Organization } from "../../store/organizations.ts"
import type { Database } from "../../store/sql.ts"
import { jose } from "./jose.ts"
import { Refusal } from "./refusal.ts"
import { type SigningKeys, signingAlgorithm } from "./signing-keys.ts"
import { rateLimitOf } from "../key-limits.ts"

/** Set in the header, so that no other JWT of ours or of an issuer can be taken for an access token. */
const tokenType = "umw+jwt"
const audience = "umpire"
/** It travels in a header, which the server reads up to 16 KiB of. */
const tokenCharactersMax = 8 * 1024

const TokenClaims = z.object({
  sub: z.string(),
  exp: z.number(),
  org: z.string(),
  rev: z.int(),
  permissions: z.array(z.enum(permissions)).min(1),
})

interface Grant {
  readonly known: KnownProvider
  /** What the provider calls the workload. */
  readonly subject: string | null
  readonly attributes: Readonly<Record<string, unknown>>
  readonly permissions: readonly Permission[]
  readonly lifetimeSeconds: number
}

export interface AccessTokens {
  issue(grant: Grant): Promise<string>
  /** The principal of the token now, or null. */
  authenticate(token: string): Promise<Principal | null>
}

interface AccessTokenParts {
  readonly clock: Clock
  readonly keys: SigningKeys
  readonly providers: KnownProviders
  /** The address of this installation. */
  readonly issuer: string
}

export function createAccessTokens({ clock, keys, providers, issuer }: AccessTokenParts): AccessTokens {
  return {
    async issue({ known, subject, attributes, permissions, lifetimeSeconds }) {
      const { provider } = known
      const key = await keys.own()
      const now = Math.floor(clock.nowMs() / 1000)
      const token = await new (jose().SignJWT)({
        org: provider.organizationId,
        rev: Number(provider.policyRevision),
        workload: subject,
        attributes,
        permissions,
      })
        .setProtectedHeader({ alg: signingAlgorithm, kid: key.id, typ: tokenType })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(provider.id)
        .setIssuedAt(now)
        .setExpirationTime(now + lifetimeSeconds)
        .setJti(randomUUID())
        .sign(key.privateKey)
      if (token.length > tokenCharactersMax)
        throw new Refusal(`the attributes make a token of more than ${tokenCharactersMax} characters`)
      return token
    },
    async authenticate(token) {
      const claims = await readToken(token, keys, clock.nowMs())
      if (!claims) return null
      const known = await providers.find(claims.sub)
      if (!known?.provider.active || known.provider.organizationId !== claims.org) return null
      if (known.provider.policyRevision !== BigInt(claims.rev)) return null
      return principalOf(known, claims.permissions)
    },
  }
}

async function readToken(
  token: string,
  keys: SigningKeys,
  nowMs: number,
): Promise<z.infer<typeof TokenClaims> | null> {
  if (token.length > tokenCharactersMax) return null
  try {
    const { kid, typ } = jose().decodeProtectedHeader(token)
    const key = typ === tokenType && typeof kid === "string" ? await keys.find(kid) : null
    if (!key) return null
    const { payload } = await jose().jwtVerify(token, key, {
      algorithms: [signingAlgorithm],
      audience,
      typ: tokenType,
      currentDate: new Date(nowMs),
      requiredClaims: ["exp"],
    })
    return TokenClaims.safeParse(payload).data ?? null
  } catch (error) {
    // decodeProtectedHeader throws a TypeError for what is not a JWT.
    if (error instanceof jose().errors.JOSEError || error instanceof TypeError) return null
    throw error
  }
}

/** A token belongs to its provider, so its workloads share one rate limit. */
export function principalOf(
  { provider, organization }: KnownProvider,
  granted: readonly Permission[],
): Principal {
  return {
    kind: "workload",
    id: provider.id,
    userId: null,
    organizationId: organization.deletedAt === null ? organization.id : null,
    role: "member",
    permissions: granted,
    rateLimit: rateLimitOf(organization),
  }
}

/** A provider that was switched off elsewhere is known to be off within this time, whatever gets lost on the way. */
const freshMs = 15_000
const staleMs = 300_000
const cachedMax = 10_000
const idForm = /^wi_[0-9a-z]{26}$/

export interface KnownProvider {
  readonly provider: IdentityProvider
  readonly organization: Organization
}

export interface KnownProviders {
  find(id: string): Promise<KnownProvider | null>
  invalidate(change: Change): void
}

/** Whether exchanges may use it: active, of an organization that exists. */
export function isUsable(known: KnownProvider | null): known is KnownProvider {
  return known?.provider.active === true && known.organization.deletedAt === null
}

export function createKnownProviders(database: Database, clock: Clock): KnownProviders {
  const cache = new FreshCache<KnownProvider>(
    { clock, freshMs, staleMs, entriesMax: cachedMax },
    async (id) => await findProviderAndOrganization(database, id),
  )
  return {
    find: async (id) => (idForm.test(id) ? await cache.get(id) : null),
    invalidate({ table, id }) {
      if (table === "workload_identity_providers") cache.invalidate(id)
      else if (table === "organizations") cache.invalidateWhere(({ organization }) => organization.id === id)
    },
  }
}
