/** Workload identity as a whole: its handlers, the check of its tokens, and what the mTLS port needs of it. */
import type { Log } from "../../base/log.ts"
import type { Labels, Metrics } from "../../base/telemetry.ts"
import type { Principal } from "../../contract/access.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import type { IssuedToken, identityEndpoints } from "../../contract/identity.ts"
import { type Change, listenToChanges } from "../../store/changes.ts"
import { hasActiveProviders, listActiveX509Ids } from "../../store/identity-providers.ts"
import type { ControlDeps } from "../audited-change.ts"
import { createAccessTokens, createKnownProviders, isUsable } from "./access-tokens.ts"
import { createCelPool } from "./cel-pool.ts"
import {
  type TokenExchange,
  type ExchangeRequest,
  type Presented,
  createTokenExchange,
  parseParameters,
} from "./exchange.ts"
import { createJsonFetcher } from "./fetch-json.ts"
import { createKeySets } from "./key-sets.ts"
import { providerHandlers } from "./providers.ts"
import { rehearsalHandlers } from "./rehearsal.ts"
import { createSigningKeys } from "./signing-keys.ts"

interface IdentityDeps extends ControlDeps {
  readonly log: Log
  /** The address of this installation, as tokens name it. */
  readonly issuer: string
  readonly lifetimeMinutes: number
  readonly allowPrivate: boolean
  readonly ca?: string | undefined
  readonly fetchTimeoutMs?: number
}

/** Whose certificates a connection may show. */
interface CertificateTrust {
  readonly providerId: string
  readonly revision: string
  readonly anchors: readonly string[]
  readonly intermediates: readonly string[]
}

export interface Identity {
  readonly handlers: Handlers<typeof identityEndpoints>
  /** The principal of a workload access token, or null. */
  authenticate(token: string): Promise<Principal | null>
  /** The provider of this id, if exchanges may use it; null asks for the only one there is. */
  trust(providerId: string | null): Promise<CertificateTrust | null>
  /** An exchange on the mTLS port. */
  exchangeCertificate(
    body: { readonly bytes: Uint8Array; readonly contentType: string | null },
    request: ExchangeRequest,
    presented: Presented,
  ): Promise<IssuedToken>
  invalidate(change: Change): void
  addMetrics(metrics: Metrics): void
  close(): Promise<void>
}

const jwksMaxAgeSeconds = 300

export async function openIdentity(deps: IdentityDeps): Promise<Identity> {
  const { database, clock, log } = deps
  const cel = createCelPool()
  const fetcher = createJsonFetcher({
    allowPrivate: deps.allowPrivate,
    ca: deps.ca,
    ...(deps.fetchTimeoutMs === undefined ? {} : { timeoutMs: deps.fetchTimeoutMs }),
  })
  const keySets = createKeySets(fetcher, clock)
  const providers = createKnownProviders(database, clock)
  const keys = createSigningKeys(database, clock)
  const tokens = createAccessTokens({ clock, keys, providers, issuer: deps.issuer })
  const lifetimeSecondsMax = deps.lifetimeMinutes * 60
  const counted: { count?: (labels: Labels) => void } = {}
  const onExchanged = (outcome: string): void => counted.count?.({ outcome })
  const exchange = createTokenExchange({
    ...deps,
    cel,
    keySets,
    providers,
    tokens,
    log,
    lifetimeSecondsMax,
    onExchanged,
  })
  const invalidate = (change: Change): void => {
    providers.invalidate(change)
    keys.invalidate(change)
  }
  const stopListening = await listenToChanges(database, invalidate)
  // An installation with providers expects exchanges: threads are started before the first one.
  if (await hasActiveProviders(database)) cel.warm()
  return {
    handlers: {
      ...providerHandlers({ ...deps, cel }),
      ...rehearsalHandlers({ ...deps, cel, keySets }),
      ...openHandlers(exchange),
      async getJwks(call) {
        call.header("cache-control", `public, max-age=${jwksMaxAgeSeconds}`)
        return { keys: await keys.published() }
      },
    },
    authenticate: async (token) => await tokens.authenticate(token),
    async trust(providerId) {
      const id = providerId ?? (await onlyX509Id(deps))
      const known = id === null ? null : await providers.find(id)
      if (!isUsable(known) || known.provider.config.type !== "x509") return null
      const { config, policyRevision } = known.provider
      return {
        providerId: known.provider.id,
        revision: String(policyRevision),
        anchors: config.trust_anchors,
        intermediates: config.intermediate_cas,
      }
    },
    exchangeCertificate: async ({ bytes, contentType }, request, presented) =>
      await exchange(parseParameters(bytes, contentType), request, presented),
    invalidate,
    addMetrics(metrics) {
      counted.count = metrics.counter(
        "umpire_identity_exchanges_total",
        "Token exchanges, by how they ended.",
      )
    },
    async close() {
      await stopListening()
      await Promise.all([cel.close(), fetcher.close()])
    },
  }
}

function openHandlers(exchange: TokenExchange): Pick<Handlers<typeof identityEndpoints>, "exchangeToken"> {
  return {
    exchangeToken: async (call) =>
      await exchange(parseParameters(call.body, call.request.header("content-type")), call.request, null),
  }
}

/** Two are as good as none: without a name the connection could mean either. */
async function onlyX509Id({ database }: ControlDeps): Promise<string | null> {
  const [only, another] = await listActiveX509Ids(database, 2)
  return another === undefined ? (only ?? null) : null
}
