/** The HTTP server: where it listens, whom it believes, how it stops. */
import { z } from "zod"
import { parseTrustedProxies } from "../addresses.ts"
import { parseOrigins } from "../origins.ts"
import { whole } from "./values.ts"

export const ServerConfig = z.strictObject({
  host: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
  port: whole(0, 65535).default(8484).describe("Port to listen on; 0 picks a free one."),
  public_url: z
    .url()
    .optional()
    .describe("Public address of the server, when it differs from host and port."),
  trusted_proxies: z.coerce
    .string()
    .default("")
    .refine((text) => parseTrustedProxies(text) !== null, "neither a number of proxies nor networks")
    .describe(
      "Proxies whose X-Forwarded-For is used: their number, or their networks, as 10.0.0.0/8,192.0.2.7; without it the header is ignored.",
    ),
  connections_max: whole(1, 1_000_000)
    .default(10_000)
    .describe("Most open connections; more are closed at once."),
  connections_per_address_max: whole(1, 1_000_000)
    .default(2_000)
    .describe(
      "Most open connections per client address (per /64 for IPv6); trusted proxies are not counted.",
    ),
  shutdown_ms: whole(0, 300_000).default(25_000).describe("How long shutdown waits for requests in flight."),
  drain_ms: whole(0, 300_000)
    .optional()
    .describe(
      "How long shutdown still accepts requests after /readyz fails, so that load balancers notice; defaults to 5 s if /readyz was requested twice in the last minute, else 0.",
    ),
  mcp_origins: z
    .string()
    .default("")
    .refine((text) => parseOrigins(text) !== null, "not a list of origins")
    .describe(
      "Origins of web pages that may call /mcp, as https://agents.example.com, separated by commas; pages of this machine and of public_url always may.",
    ),
  request_timeout_ms: whole(1000, 3_600_000).default(300_000).describe("Deadline of one request."),
})
