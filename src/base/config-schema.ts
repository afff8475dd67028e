/** What can be configured: every key with its bounds, its default and its meaning. */
import { z } from "zod"
import { parseTrustedProxies } from "./addresses.ts"
import { ModelConfig, RegionConfig, secret } from "./config-models.ts"
import type { WorkerConfig } from "./config-models.ts"
import { logLevels } from "./log.ts"

export const Config = z.strictObject({
  data_dir: z.string().min(1).default(".umpire").describe("Everything the embedded parts keep."),
  server: z
    .strictObject({
      host: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
      port: z.coerce
        .number()
        .int()
        .min(0)
        .max(65535)
        .default(8484)
        .describe("Port to listen on; 0 picks a free one."),
      public_url: z
        .url()
        .optional()
        .describe("The address that users see, when it differs from host and port."),
      trusted_proxies: z.coerce
        .string()
        .default("")
        .refine((text) => parseTrustedProxies(text) !== null, "neither a number of proxies nor networks")
        .describe(
          "Whose X-Forwarded-For is believed: the number of proxies in front of this server, or their networks, as 10.0.0.0/8,192.0.2.7; without it nobody's.",
        ),
      connections_max: z.coerce
        .number()
        .int()
        .min(1)
        .max(1_000_000)
        .default(10_000)
        .describe("Most open connections; more are closed at once."),
      connections_per_address_max: z.coerce
        .number()
        .int()
        .min(1)
        .max(1_000_000)
        .default(2_000)
        .describe(
          "Most open connections of one client address (of IPv6, one /64); trusted proxies are not counted.",
        ),
      shutdown_ms: z.coerce
        .number()
        .int()
        .min(0)
        .max(300_000)
        .default(25_000)
        .describe("How long a stop waits for requests in flight."),
      drain_ms: z.coerce
        .number()
        .int()
        .min(0)
        .max(300_000)
        .optional()
        .describe(
          "How long a stop goes on accepting while /readyz already says no, for load balancers to see; without it 5 s where /readyz was asked twice in the last minute, else not at all.",
        ),
      request_timeout_ms: z.coerce
        .number()
        .int()
        .min(1000)
        .max(3_600_000)
        .default(300_000)
        .describe("Deadline of one request."),
    })
    .prefault({}),
  database: z
    .strictObject({
      url: secret("PostgreSQL address; without it an embedded database in data_dir is used."),
      pool_max: z.coerce
        .number()
        .int()
        .min(1)
        .max(500)
        .default(10)
        .describe("Most connections to PostgreSQL."),
    })
    .prefault({}),
  analytics: z
    .strictObject({
      clickhouse_url: secret(
        "ClickHouse address, http://user:password@host:8123/database; without it events are kept in data_dir.",
      ),
      embedded: z
        .stringbool()
        .or(z.boolean())
        .default(true)
        .describe("Keep events in an embedded DuckDB where no address is given; false keeps none."),
      retention_days: z.coerce
        .number()
        .int()
        .min(1)
        .max(36_500)
        .default(90)
        .describe("How long events are kept."),
    })
    .prefault({}),
  log: z
    .strictObject({ level: z.enum(logLevels).default("info").describe("How much is logged.") })
    .prefault({}),
  engine: z
    .strictObject({
      threads: z.coerce
        .number()
        .int()
        .min(1)
        .max(1024)
        .optional()
        .describe(
          "Threads per model; without it, one per core for decisions, and one less for chat and embeddings.",
        ),
      kv_memory_mib: z.coerce
        .number()
        .int()
        .min(16)
        .max(1_048_576)
        .default(512)
        .describe("Memory per model for the text of requests that run."),
      cache_memory_mib: z.coerce
        .number()
        .int()
        .min(0)
        .max(1_048_576)
        .default(512)
        .describe("Memory per model for evidence kept for the next request about it; 0 keeps none."),
      queue_max: z.coerce
        .number()
        .int()
        .min(1)
        .max(1_000_000)
        .default(4096)
        .describe("Most requests waiting for one model."),
      gpu: z
        .enum(["off", "auto"])
        .default("auto")
        .describe("Use a GPU build of the library where one is installed."),
      library_dir: z
        .string()
        .min(1)
        .optional()
        .describe(
          "A folder with a build of llama.cpp to score with, instead of an installed one; see gpu.md.",
        ),
    })
    .prefault({}),
  limits: z
    .strictObject({
      requests_per_minute: z.coerce
        .number()
        .int()
        .min(1)
        .max(10_000_000)
        .default(6000)
        .describe("Sustained requests a minute for each principal."),
      burst: z.coerce
        .number()
        .int()
        .min(1)
        .max(10_000_000)
        .default(1000)
        .describe("Requests that may come at once."),
    })
    .prefault({}),
  identity: z
    .strictObject({
      token_lifetime_minutes: z.coerce
        .number()
        .int()
        .min(5)
        .max(60)
        .default(15)
        .describe(
          "How long a workload access token is valid, unless what it was exchanged for ends earlier.",
        ),
      allow_private: z
        .stringbool()
        .or(z.boolean())
        .default(false)
        .describe("Fetch the keys of issuers from loopback and private networks too."),
      ca_file: z
        .string()
        .min(1)
        .optional()
        .describe("PEM certificates to trust when issuers are asked, instead of the usual authorities."),
      mtls_port: z.coerce
        .number()
        .int()
        .min(0)
        .max(65535)
        .optional()
        .describe("Port where client certificates are exchanged; without it there is none."),
      mtls_host: z.string().min(1).default("127.0.0.1").describe("Address that the mTLS port listens on."),
      mtls_cert_file: z
        .string()
        .min(1)
        .optional()
        .describe("PEM certificate chain of the mTLS port, good for the names of its providers."),
      mtls_key_file: z.string().min(1).optional().describe("PEM private key of the mTLS port."),
    })
    .prefault({}),
  compat: z
    .strictObject({
      systemone_null_descriptions: z
        .stringbool()
        .or(z.boolean())
        .default(false)
        .describe("Accept null instructions and criteria on /v1/systemone."),
    })
    .prefault({}),
  calibrations: z
    .record(
      z.string().min(1).max(64),
      z.strictObject({ temperature: z.number().positive().max(100), bias: z.number().min(-100).max(100) }),
    )
    .default({})
    .describe("Named temperature and bias; a request names one with the header x-umpire-calibration."),
  sso: z
    .strictObject({
      issuer: z
        .url()
        .optional()
        .describe("OpenID Connect provider for single sign-on; without it there is none."),
      client_id: z.string().min(1).optional().describe("What the provider calls this installation."),
      client_secret: secret("The client secret at the provider."),
      verified_email_only: z
        .stringbool()
        .or(z.boolean())
        .default(true)
        .describe("Match users by email only when the provider says that the address was verified."),
    })
    .prefault({}),
  journal: z
    .strictObject({
      durability: z
        .enum(["process", "power"])
        .default("process")
        .describe("When an answer may leave: its usage survives the process, or a power cut too."),
      size_max_mib: z.coerce
        .number()
        .int()
        .min(1)
        .max(1_048_576)
        .default(1024)
        .describe("Usage that may wait for the database; beyond it requests are refused."),
    })
    .prefault({}),
  billing: z
    .strictObject({
      outage_grace_s: z.coerce
        .number()
        .int()
        .min(1)
        .max(86_400)
        .default(300)
        .describe("How long requests go on while the database is away."),
      recall_wait_ms: z.coerce
        .number()
        .int()
        .min(0)
        .max(10_000)
        .default(250)
        .describe("How long a request that lacks credit waits for what other gateways hold and do not use."),
      provider: z
        .enum(["local", "stripe"])
        .default("local")
        .describe("Who moves money in for new billing accounts; local approves test purchases."),
      stripe_secret_key: secret("The secret key at Stripe."),
      stripe_webhook_secret: secret("The signing secret of the webhook endpoint at Stripe."),
      stripe_api_url: z.url().optional().describe("Where Stripe's API is, when not at Stripe."),
      seller_name: z.string().min(1).max(200).default("Umpire").describe("Who sends the invoices."),
      seller_address: z
        .string()
        .max(1000)
        .default("")
        .describe("The address on invoices; lines are separated by semicolons."),
    })
    .prefault({}),
  gateway: z
    .strictObject({
      region: z
        .string()
        .min(1)
        .optional()
        .describe("The region that this gateway stands in; without it, the first one."),
    })
    .prefault({}),
  routing: z
    .strictObject({
      concurrency_max: z.coerce
        .number()
        .int()
        .min(1)
        .max(100_000)
        .default(64)
        .describe("Requests that one worker works on at the same time, where it does not say itself."),
      queue_max: z.coerce
        .number()
        .int()
        .min(1)
        .max(100_000)
        .default(1024)
        .describe("Requests that may wait for one worker; more are refused with 429."),
      queue_wait_ms: z.coerce
        .number()
        .int()
        .min(1)
        .max(3_600_000)
        .default(30_000)
        .describe("How long a request may wait for a worker before it is refused with 429."),
      attempt_timeout_ms: z.coerce
        .number()
        .int()
        .min(10)
        .max(3_600_000)
        .default(120_000)
        .describe("How long a remote worker may take to begin its answer before another one is tried."),
      health_interval_ms: z.coerce
        .number()
        .int()
        .min(10)
        .max(3_600_000)
        .default(2_000)
        .describe("Time between health checks of a remote worker."),
      health_timeout_ms: z.coerce
        .number()
        .int()
        .min(10)
        .max(3_600_000)
        .default(3_000)
        .describe("How long a health check may take; two that fail in a row take the worker out."),
    })
    .prefault({}),
  regions: z
    .array(RegionConfig)
    .max(1000)
    .default([])
    .describe("Where inference can run; without any, one region named local."),
  models: z.array(ModelConfig).max(1000).default([]).describe("Models beside the embedded default."),
})
export type Config = Omit<z.infer<typeof Config>, "models"> & {
  readonly models: readonly (ModelConfig & { readonly workers: readonly WorkerConfig[] })[]
  readonly database: { readonly url?: string }
  readonly analytics: { readonly clickhouse_url?: string }
  readonly sso: { readonly client_secret?: string }
  readonly billing: { readonly stripe_secret_key?: string; readonly stripe_webhook_secret?: string }
}
