/** What can be configured: a section of keys each, with bounds, default and meaning. */
import { z } from "zod"
import { parseOrigins, parseTrustedProxies } from "./addresses.ts"
import { ModelConfig, RegionConfig, type WorkerConfig, secret } from "./config-models.ts"
import { logLevels } from "./log.ts"

/** The environment gives every value as text. */
const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max)

const flag = () => z.stringbool().or(z.boolean())

/** Where events are kept, and for how long. */
const AnalyticsConfig = z.strictObject({
  clickhouse_url: secret(
    "ClickHouse address, http://user:password@host:8123/database; without it events are kept in data_dir.",
  ),
  embedded: flag()
    .default(true)
    .describe("Keep events in an embedded DuckDB where no address is given; false keeps none."),
  retention_days: whole(1, 36_500).default(90).describe("How long events are kept."),
})

/** How batches run beside live traffic. */
const BatchesConfig = z.strictObject({
  lines_max: whole(1, 1_000_000).default(50_000).describe("Most lines of one batch."),
  open_max: whole(1, 10_000)
    .default(100)
    .describe("Batches of one organization that may be open at once; more are refused."),
  concurrency: whole(0, 1_000)
    .default(16)
    .describe("Lines of batches that this gateway runs at once while nothing else runs; 0 runs none here."),
})

/** Payment providers, invoices, and what happens while the database is unavailable. */
const BillingConfig = z.strictObject({
  outage_grace_s: whole(1, 86_400)
    .default(300)
    .describe("How long requests are still admitted while the database is unavailable."),
  recall_wait_ms: whole(0, 60_000)
    .default(250)
    .describe("How long a request that lacks credit waits for unused credit that other gateways hold."),
  provider: z
    .enum(["local", "stripe"])
    .default("local")
    .describe("Payment provider of new billing accounts; local approves test purchases."),
  stripe_secret_key: secret("The secret key at Stripe."),
  stripe_webhook_secret: secret("The signing secret of the webhook endpoint at Stripe."),
  stripe_api_url: z
    .url()
    .optional()
    .describe("Address of Stripe's API, for tests; defaults to Stripe's own."),
  seller_name: z.string().min(1).max(200).default("Umpire").describe("Seller's name on invoices."),
  seller_address: z
    .string()
    .max(1000)
    .default("")
    .describe("Seller's address on invoices; separate lines with semicolons."),
  seller_tax_number: z
    .string()
    .max(100)
    .default("")
    .describe("Seller's tax number on invoices, such as a VAT id; without it none is shown."),
  tax_name: z.string().min(1).max(50).default("VAT").describe("Name of the tax on invoices."),
  tax_percent: z.coerce
    .number()
    .min(0)
    .max(100)
    .default(0)
    .describe("The tax that prices include, shown on invoices; 0 shows no line."),
})

/** Departures from the contract for other clients. */
const CompatConfig = z.strictObject({
  systemone_null_descriptions: flag()
    .default(false)
    .describe("Accept null instructions and criteria on /v1/systemone."),
  decisions_ga: flag()
    .default(false)
    .describe(
      "Accept on /v1/decisions what OpenAI's own endpoint accepts: messages of every role, tool calls and outputs, `input_json`, instructions as parts, prompt cache options.",
    ),
})

/** The keys that kept content is encrypted with, and the room that it waits in. */
const ContentConfig = z.strictObject({
  keys: secret(
    "Keys of kept content, 32 bytes in Base64 each, separated by commas: the first encrypts, all decrypt. " +
      "Without it the embedded database has a key file in data_dir, and PostgreSQL keeps no content.",
  ),
})

/** Where the installation keeps its records. */
const DatabaseConfig = z.strictObject({
  url: secret("PostgreSQL address; without it an embedded database in data_dir is used."),
  direct_url: secret(
    "Address of PostgreSQL itself, where database.url is a pooler in transaction mode (pgbouncer): notifications come over one connection to it.",
  ),
  pool_max: whole(1, 500).default(10).describe("Most connections to PostgreSQL."),
})

/** The mail server that sends alerts. */
const EmailConfig = z.strictObject({
  smtp_host: z
    .string()
    .min(1)
    .optional()
    .describe("Mail server that sends alerts; without it no e-mail is sent."),
  smtp_port: whole(1, 65535).default(587).describe("Its port."),
  smtp_tls: z
    .enum(["starttls", "implicit", "off"])
    .default("starttls")
    .describe(
      "starttls requires an upgrade to TLS, implicit begins with TLS (port 465), off sends in the clear.",
    ),
  smtp_ca_file: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificates to trust for the mail server, instead of the system's authorities."),
  smtp_user: z.string().min(1).optional().describe("User at the mail server, if it wants one."),
  smtp_password: secret("Password at the mail server."),
  from: z.string().min(3).max(320).default("Umpire <umpire@localhost>").describe("Sender of the e-mails."),
  recipients: z
    .enum(["members", "anyone"])
    .default("members")
    .describe("Whom alert rules may write to: members of the organization, or any address."),
})

/** How models run on this machine. */
const EngineConfig = z.strictObject({
  decision_model: z
    .enum(["umpire-decide", "umpire-decide-small", "umpire-decide-multilingual"])
    .default("umpire-decide")
    .describe(
      "The included model that answers decisions under the name `umpire-decide`: the small one takes half the time, and is less often right; the one for many languages is a package to install.",
    ),
  threads: whole(1, 1024)
    .optional()
    .describe(
      "Threads per model; without it, one per core for the included decision models, and one less for GGUF models.",
    ),
  kv_memory_mib: whole(16, 1_048_576)
    .default(512)
    .describe("Memory per GGUF model for the keys and values of running requests."),
  cache_memory_mib: whole(0, 1_048_576)
    .default(512)
    .describe("Memory per included decision model for caching evaluated evidence; 0 disables the cache."),
  queue_max: whole(1, 1_000_000).default(4096).describe("Most requests waiting for one model."),
  idle_unload_s: whole(1, 31_536_000)
    .optional()
    .describe(
      "Models of this machine that were idle for so long leave the memory until they are used again; without it they stay.",
    ),
  memory_budget_mib: whole(64, 16_777_216)
    .optional()
    .describe(
      "Memory that the models of this machine may take together; the least recently used leave for others. Without it there is no limit.",
    ),
  gpu: z
    .enum(["off", "auto"])
    .default("auto")
    .describe(
      "Use an NVIDIA GPU where the libraries for it are installed; `umpire gpu status` says what is missing.",
    ),
})

/** Where uploaded files lie, and how much of them. */
const FilesConfig = z.strictObject({
  directory: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder of uploaded files and results of batches, on a file system that all gateways share; without it they lie in PostgreSQL, or beside the embedded database.",
    ),
  s3_bucket: z
    .string()
    .regex(/^[\w.-]{1,255}$/)
    .optional()
    .describe("Bucket of S3-compatible storage for files and results; for more than some 50 GB of them."),
  s3_endpoint: z
    .url({ protocol: /^https?$/ })
    .default("https://s3.amazonaws.com")
    .describe("Address of the storage; the bucket is named in the path."),
  s3_region: z.string().min(1).max(64).default("us-east-1").describe("Region that requests are signed for."),
  s3_prefix: z
    .string()
    .regex(/^(?:[\w.-]+\/)*$/, { error: "must be empty or end with a slash" })
    .default("umpire/")
    .describe("What the names of objects begin with; gateways that serve the same files need the same."),
  s3_access_key_id: z.string().min(1).optional().describe("Access key of the storage."),
  s3_secret_access_key: secret("Secret of the access key."),
  file_mib_max: whole(1, 16_384).default(200).describe("Largest file that can be uploaded."),
  organization_mib_max: whole(1, 1_073_741_824)
    .default(10_240)
    .describe("Most that the files of one organization may take; a larger upload is refused."),
  expiry_days: whole(1, 3_650)
    .default(30)
    .describe("Files are deleted after so many days, unless their upload says sooner."),
})

/** Where this gateway stands. */
const GatewayConfig = z.strictObject({
  region: z.string().min(1).optional().describe("The region of this gateway; defaults to the first region."),
})

/** Workload identity: tokens, issuers and the port for client certificates. */
const IdentityConfig = z.strictObject({
  token_lifetime_minutes: whole(5, 60)
    .default(15)
    .describe(
      "How long a workload access token is valid; less when the exchanged token or certificate expires earlier.",
    ),
  allow_private: flag()
    .default(false)
    .describe("Also fetch issuers' keys from loopback and private networks."),
  ca_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "PEM certificates to trust when issuers' keys are fetched, instead of the system's authorities.",
    ),
  mtls_port: whole(0, 65535)
    .optional()
    .describe("Port where client certificates are exchanged; without it the exchange is off."),
  mtls_host: z.string().min(1).default("127.0.0.1").describe("Address that the mTLS port listens on."),
  mtls_cert_file: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificate chain of the mTLS port, valid for the names of its providers."),
  mtls_key_file: z.string().min(1).optional().describe("PEM private key of the mTLS port."),
})

/** The journal that usage waits in before it is charged. */
const JournalConfig = z.strictObject({
  durability: z
    .enum(["process", "power"])
    .default("process")
    .describe(
      "What recorded usage survives once a response is sent: a crash of the process, or also a power cut.",
    ),
  size_max_mib: whole(1, 1_048_576)
    .default(1024)
    .describe("Most usage that may wait for the database; beyond it requests are refused."),
  disk_free_min_mib: whole(0, 1_073_741_824)
    .default(512)
    .describe(
      "Free space that is kept for usage: with less on their disk, files and other large bodies that would be stored are refused with 507, so are requests to models with an Idempotency-Key, distilling jobs fail before they ask, responses are not stored, content is dropped and counted, and events wait in the journal.",
    ),
})

/** How often each principal may ask. */
const LimitsConfig = z.strictObject({
  requests_per_minute: whole(1, 10_000_000)
    .default(6000)
    .describe("Sustained requests a minute for each principal."),
  request_bytes_max_mib: whole(16, 1_048_576)
    .optional()
    .describe(
      "Most bytes of request bodies and answers that are in memory at once; more bodies are refused with 503. Defaults to 1/64 of the memory, at least 128 and at most 1024.",
    ),
  burst: whole(1, 10_000_000).default(1000).describe("Requests allowed at once."),
})

/** The log. */
const LogConfig = z.strictObject({
  level: z.enum(logLevels).default("info").describe("Lowest level that is logged."),
})

/** Who may read the metrics, and where. */
const MetricsConfig = z.strictObject({
  host: z.string().min(1).default("127.0.0.1").describe("Address that metrics.port listens on."),
  port: whole(0, 65535)
    .optional()
    .describe("Port of its own for /metrics, which the main one then does not have; 0 picks a free one."),
  token: secret("Bearer value that readers of /metrics must send; without it anyone who reaches it may."),
})

/** How requests find workers. */
const RoutingConfig = z.strictObject({
  concurrency_max: whole(1, 100_000)
    .default(64)
    .describe("Concurrent requests per worker, unless the worker sets concurrency_max."),
  queue_max: whole(1, 100_000)
    .default(1024)
    .describe("Requests that may wait for one worker; more are refused with 429."),
  queue_wait_ms: whole(1, 3_600_000)
    .default(30_000)
    .describe("How long a request may wait for a worker before it is refused with 429."),
  attempt_timeout_ms: whole(10, 3_600_000)
    .default(120_000)
    .describe("How long a remote worker may take to begin its response before another one is tried."),
  health_interval_ms: whole(10, 3_600_000)
    .default(2_000)
    .describe("Time between health checks of a remote worker."),
  health_timeout_ms: whole(10, 3_600_000)
    .default(3_000)
    .describe("How long a health check may take; after two failures in a row the worker gets no requests."),
})

/** The HTTP server: where it listens, whom it believes, how it stops. */
const ServerConfig = z.strictObject({
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
  shutdown_ms: whole(0, 300_000)
    .default(25_000)
    .describe(
      "How long shutdown waits for requests in flight; 5 s later the process ends, whatever is still open.",
    ),
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

/** Single sign-on through an OpenID Connect provider. */
const SsoConfig = z.strictObject({
  issuer: z
    .url()
    .optional()
    .describe("Issuer of the OpenID Connect provider for single sign-on; without it single sign-on is off."),
  client_id: z.string().min(1).optional().describe("Client id at the provider."),
  client_secret: secret("Client secret at the provider."),
  scope: z
    .string()
    .min(1)
    .max(256)
    .default("openid email profile")
    .describe("Scopes that are asked for; some providers tell groups only with one of their own."),
  groups_claim: z
    .string()
    .min(1)
    .max(128)
    .default("groups")
    .describe("Claim that lists the groups of a user."),
  verified_email_only: flag()
    .default(true)
    .describe("Match users by email only when the provider marks the address as verified."),
})

/** Traces for OpenTelemetry. */
const TelemetryConfig = z.strictObject({
  otlp_endpoint: z
    .url()
    .optional()
    .describe(
      "Where traces go by OTLP/HTTP, as http://collector:4318; defaults to OTEL_EXPORTER_OTLP_ENDPOINT, without which there are none.",
    ),
  sample_ratio: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      "Share of the traces that are kept, of those that begin here and of those that a caller's traceparent samples.",
    ),
  content: flag()
    .default(false)
    .describe(
      "Put evidence, questions, messages and answers into spans, as they were sent; whoever reads the traces then reads them.",
    ),
})

/** Where events are sent. */
const WebhooksConfig = z.strictObject({
  allow_private: flag()
    .default(false)
    .describe(
      "Also send webhooks to loopback and private networks, with HTTP too; every organization can then reach them.",
    ),
})

export const Config = z.strictObject({
  data_dir: z
    .string()
    .min(1)
    .default(".umpire")
    .describe("Folder of the embedded database, the journal, events and added models."),
  server: ServerConfig.prefault({}),
  database: DatabaseConfig.prefault({}),
  analytics: AnalyticsConfig.prefault({}),
  log: LogConfig.prefault({}),
  metrics: MetricsConfig.prefault({}),
  telemetry: TelemetryConfig.prefault({}),
  engine: EngineConfig.prefault({}),
  limits: LimitsConfig.prefault({}),
  identity: IdentityConfig.prefault({}),
  compat: CompatConfig.prefault({}),
  sso: SsoConfig.prefault({}),
  journal: JournalConfig.prefault({}),
  content: ContentConfig.prefault({}),
  files: FilesConfig.prefault({}),
  batches: BatchesConfig.prefault({}),
  billing: BillingConfig.prefault({}),
  webhooks: WebhooksConfig.prefault({}),
  email: EmailConfig.prefault({}),
  gateway: GatewayConfig.prefault({}),
  routing: RoutingConfig.prefault({}),
  regions: z
    .array(RegionConfig)
    .max(1000)
    .default([])
    .describe("Regions where inference can run; without any, one region named local."),
  models: z.array(ModelConfig).max(1000).default([]).describe("Models beside the embedded ones."),
})
export type Config = Omit<z.infer<typeof Config>, "models"> & {
  readonly models: readonly (ModelConfig & { readonly workers: readonly WorkerConfig[] })[]
  readonly database: { readonly url?: string; readonly direct_url?: string }
  readonly analytics: { readonly clickhouse_url?: string }
  readonly metrics: { readonly token?: string }
  readonly sso: { readonly client_secret?: string }
  readonly email: { readonly smtp_password?: string }
  readonly files: { readonly s3_secret_access_key?: string }
  readonly content: { readonly keys?: string }
  readonly billing: { readonly stripe_secret_key?: string; readonly stripe_webhook_secret?: string }
}
