/** What the HTTP server takes from the configuration. */
import { noProxies, parseTrustedProxies } from "../base/addresses.ts"
import type { Config } from "../base/config-schema.ts"
import type { RateLimits } from "../base/rate-limiter.ts"
import { createRequestLimiter } from "../server/access.ts"
import { ByteBudget } from "../server/byte-budget.ts"
import type { HttpDeps } from "../server/http.ts"
import { rateLimitOf } from "./platform.ts"

const mebibyte = 1024 * 1024

type HttpSettings = Pick<HttpDeps, "limiter" | "trustedProxies" | "limits" | "requestTimeoutMs"> & {
  readonly bytes: ByteBudget
}

export function httpSettings(config: Config, rateLimits: RateLimits): HttpSettings {
  const { server, limits } = config
  const { request_bytes_max_mib: bytesMaxMib } = limits
  return {
    limiter: createRequestLimiter(rateLimitOf(config), rateLimits),
    trustedProxies: parseTrustedProxies(server.trusted_proxies) ?? noProxies,
    limits: {
      connectionsMax: server.connections_max,
      perAddressMax: server.connections_per_address_max,
    },
    requestTimeoutMs: server.request_timeout_ms,
    bytes: new ByteBudget(bytesMaxMib === undefined ? undefined : bytesMaxMib * mebibyte),
  }
}
