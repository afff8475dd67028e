/** Single sign-on by OpenID Connect: authorization code with PKCE, one provider for the installation. */
import type * as oidc from "openid-client"
import { later } from "../base/memo.ts"

const client = later(async () => await import("openid-client"))

const requestTimeoutSeconds = 30

interface OidcSettings {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string
  /** The claim that lists the groups of a user. */
  readonly groupsClaim: string
}

/** Who the provider says has signed in. */
export interface SsoIdentity {
  readonly issuer: string
  readonly subject: string
  readonly email: string | null
  readonly emailVerified: boolean
  readonly name: string | null
  readonly groups: readonly string[]
}

/** What must come back unchanged with the browser. */
interface SsoMemory {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

export interface SsoProvider {
  begin(redirectUri: string): Promise<{ readonly url: string; readonly memory: SsoMemory }>
  /** Throws when the provider refused, or when what came back does not fit what was sent. */
  finish(callback: URL, memory: SsoMemory): Promise<SsoIdentity>
}

export function createOidcProvider(settings: OidcSettings): SsoProvider {
  let discovered: Promise<oidc.Configuration> | undefined
  const configuration = async (): Promise<oidc.Configuration> => {
    discovered ??= discover(settings).catch((error: unknown) => {
      // The provider may be away for now; the next sign-in looks again.
      discovered = undefined
      throw error
    })
    return await discovered
  }
  return {
    async begin(redirectUri) {
      const oidc = await client()
      const memory = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        codeVerifier: oidc.randomPKCECodeVerifier(),
      }
      const url = oidc.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: settings.scope,
        state: memory.state,
        nonce: memory.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(memory.codeVerifier),
        code_challenge_method: "S256",
      })
      return { url: url.href, memory }
    },
    async finish(callback, { state, nonce, codeVerifier }) {
      const oidc = await client()
      const config = await configuration()
      const tokens = await oidc.authorizationCodeGrant(config, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (!claims) throw new Error("the provider sent no id token")
      const facts = await withEmail(config, tokens.access_token, {
        claims,
        groupsClaim: settings.groupsClaim,
      })
      const { email, email_verified, name } = facts
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email: typeof email === "string" ? email : null,
        emailVerified: email_verified === true,
        name: typeof name === "string" ? name.slice(0, nameCharactersMax) || null : null,
        groups: groupsOf(facts[settings.groupsClaim]),
      }
    },
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<oidc.Configuration> {
  const oidc = await client()
  const server = new URL(issuer)
  return await oidc.discovery(server, clientId, clientSecret, undefined, {
    timeout: requestTimeoutSeconds,
    execute: isLoopback(server) ? [oidc.allowInsecureRequests] : [],
  })
}

/** Plain HTTP stays on this machine or is not spoken. */
const isLoopback = ({ protocol, hostname }: URL): boolean =>
  protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(hostname)

/** Some providers put the email into the id token, others only into the user's facts. */
async function withEmail(
  config: oidc.Configuration,
  accessToken: string,
  { claims, groupsClaim }: { claims: oidc.IDToken; groupsClaim: string },
): Promise<Readonly<Record<string, unknown>>> {
  const isWhole = claims["email"] !== undefined && claims[groupsClaim] !== undefined
  if (isWhole || config.serverMetadata().userinfo_endpoint === undefined) return claims
  const oidc = await client()
  return { ...(await oidc.fetchUserInfo(config, accessToken, claims.sub)), ...claims }
}

const groupsMax = 500
const groupCharactersMax = 256
const nameCharactersMax = 200

/** One name or a list of them; whatever else a provider sends is no group. */
function groupsOf(claim: unknown): string[] {
  const listed: unknown[] = Array.isArray(claim) ? claim.slice(0, groupsMax) : [claim]
  return listed.filter(
    (group): group is string => typeof group === "string" && group.length <= groupCharactersMax,
  )
}
