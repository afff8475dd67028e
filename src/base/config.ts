/** The configuration: one YAML file, overridden by UMPIRE_* variables, one schema, errors that name the key. */
import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { parse } from "yaml"
import { z } from "zod"
import { logLevels } from "./log.ts"

/** Where a secret comes from. It never stands in the file itself. */
const SecretReference = z.union([
  z.strictObject({ env: z.string().min(1) }),
  z.strictObject({ file: z.string().min(1) }),
])

/** A secret as the file may give it (a reference) or as the environment gives it (the value). */
const secret = (description: string) =>
  z
    .union([z.string().min(1), SecretReference])
    .optional()
    .describe(description)

/** Decimal USD, quoted in YAML or not. */
const Price = z.union([z.string(), z.number().nonnegative()]).transform(String)

/** How a worker that is reached by URL is spoken to. */
export const workerDialects = [
  "openai",
  "vllm",
  "sglang",
  "llama-server",
  "ollama",
  "systemone",
  "umpire",
] as const

export const WorkerConfig = z.strictObject({
  region: z.string().min(1).optional().describe("Where it stands; without it, where the gateway stands."),
  url: z
    .url()
    .optional()
    .describe("Address of the server that runs the model; without it, a process of this machine does."),
  dialect: z.enum(workerDialects).default("openai").describe("How the server is spoken to."),
  key: SecretReference.optional().describe("The bearer value that the server wants."),
  model: z.string().min(1).optional().describe("What the server calls the model; without it, the SKU."),
  concurrency_max: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .optional()
    .describe("Requests that it works on at the same time."),
})
/** With its key read. */
export type WorkerConfig = Omit<z.infer<typeof WorkerConfig>, "key"> & { readonly key?: string }

export const ModelConfig = z.strictObject({
  sku: z.string().trim().min(1).max(256).describe("The name that requests use."),
  file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "A GGUF file, relative to the configuration file; not needed for one that only runs at workers.",
    ),
  context_tokens_max: z
    .number()
    .int()
    .min(1)
    .max(100_000_000)
    .optional()
    .describe("The context of a model without a file."),
  kind: z.enum(["generation", "embedding"]).default("generation").describe("What the model makes."),
  description: z.string().max(1000).default("").describe("One sentence for people who choose a model."),
  developer: z.string().nullable().default(null).describe("Who made it."),
  release_date: z.iso.date().nullable().default(null).describe("When it was published, YYYY-MM-DD."),
  public: z.boolean().default(true).describe("Every organization may use it without asking."),
  enabled: z.boolean().default(true).describe("Whether requests for it are served."),
  price_m_input_tokens_usd: Price.default("0.02").describe("USD per million input tokens."),
  price_m_input_cache_read_tokens_usd: Price.default("0.01").describe("USD per million cached input tokens."),
  price_m_output_tokens_usd: Price.default("0.08").describe("USD per million output tokens."),
  price_per_sec_usd: Price.default("0").describe("USD per second of model execution."),
  workers: z
    .array(WorkerConfig)
    .max(1000)
    .default([])
    .describe("Where the model runs; without any, in a process of this machine."),
})
export type ModelConfig = Omit<z.infer<typeof ModelConfig>, "workers">

export const RegionConfig = z.strictObject({
  id: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe("The name that routing policies use."),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .describe("ISO 3166-1, two letters."),
  latitude: z.number().min(-90).max(90).describe("Degrees, north positive."),
  longitude: z.number().min(-180).max(180).describe("Degrees, east positive."),
})
export type RegionConfig = z.infer<typeof RegionConfig>

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
      trust_proxy: z
        .stringbool()
        .or(z.boolean())
        .default(false)
        .describe("Take the client's address from X-Forwarded-For."),
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
        .enum(["auto", "chdb", "duckdb", "off"])
        .default("auto")
        .describe("The engine inside this process, where no address is given; off keeps no events."),
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

/** Variables whose name does not follow from their key. */
const shortNames: Record<string, string> = {
  UMPIRE_CLICKHOUSE_URL: "analytics.clickhouse_url",
  UMPIRE_HOST: "server.host",
  UMPIRE_PORT: "server.port",
}

/** What only the environment says: the file to read and the first start of an unattended installation. */
export const environmentOnly: Record<string, string> = {
  UMPIRE_CONFIG: "The YAML file to read.",
  UMPIRE_WORKER_KEY: "umpire worker: the bearer value that gateways must bring.",
  UMPIRE_BOOTSTRAP_KEY: "First start: the whole value of the first API key (ump_<id>_<secret>).",
  UMPIRE_BOOTSTRAP_EMAIL: "First start: the first user's email address.",
  UMPIRE_BOOTSTRAP_PASSWORD: "First start: the first user's password.",
}

export class ConfigError extends Error {
  override readonly name = "ConfigError"
}

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the file that UMPIRE_CONFIG names (if any) and the environment. Relative paths are made absolute. */
export function loadConfig(environment: Environment, workingDirectory: string): Config {
  const file = environment["UMPIRE_CONFIG"]
  const path = file ? resolve(workingDirectory, file) : undefined
  const tree = path ? readYaml(path) : {}
  applyEnvironment(tree, environment)
  const parsed = Config.safeParse(tree)
  if (!parsed.success) throw new ConfigError(describeIssues(parsed.error))
  return finish(parsed.data, environment, path ? dirname(path) : workingDirectory, workingDirectory)
}

export interface ConfigKey {
  readonly key: string
  /** The variable that sets it; null for a list or map, which only the file can hold. */
  readonly variable: string | null
  readonly meaning: string
  readonly fallback: unknown
}

/** Every key with the variable that sets it, its default and its meaning; the documentation is made from it. */
export function configKeys(): ConfigKey[] {
  const defaults = Config.parse({}) as Tree
  return Object.entries(Config.shape).flatMap(([name, schema]): ConfigKey[] => {
    const section = schema instanceof z.ZodPrefault ? schema.unwrap() : undefined
    if (!(section instanceof z.ZodObject)) return [keyOf(name, schema, defaults[name])]
    const values = defaults[name] as Tree
    return Object.entries(section.shape).map(([leaf, type]) => keyOf(`${name}.${leaf}`, type, values[leaf]))
  })
}

function keyOf(key: string, schema: { description?: string | undefined }, fallback: unknown): ConfigKey {
  return {
    key,
    variable: typeof fallback === "object" ? null : variableOf(key),
    meaning: schema.description ?? "",
    fallback,
  }
}

function variableOf(key: string): string {
  const short = Object.entries(shortNames).find(([, target]) => target === key)
  return short ? short[0] : `UMPIRE_${key.replaceAll(".", "_").toUpperCase()}`
}

type Tree = Record<string, unknown>

/** The file may only say where these are to be found. */
const secretKeys = [
  ["database", "url"],
  ["analytics", "clickhouse_url"],
  ["sso", "client_secret"],
  ["billing", "stripe_secret_key"],
  ["billing", "stripe_webhook_secret"],
] as const

function readYaml(path: string): Tree {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (cause) {
    throw new ConfigError(
      "Cannot read the file that UMPIRE_CONFIG names: it does not exist or is not readable",
      { cause },
    )
  }
  let tree: unknown
  try {
    tree = parse(text) ?? {}
  } catch (cause) {
    throw new ConfigError(
      `Cannot read the configuration file: ${cause instanceof Error ? cause.message : "it is not YAML"}`,
    )
  }
  if (typeof tree !== "object" || tree === null || Array.isArray(tree))
    throw new ConfigError("Cannot read the configuration file: a mapping is needed at the top")
  for (const [section, leaf] of secretKeys)
    if (typeof (tree as Record<string, Tree | undefined>)[section]?.[leaf] === "string")
      throw new ConfigError(
        `Cannot use ${section}.${leaf}: a secret may not stand in the file; write { env: NAME } or { file: PATH }`,
      )
  return tree as Tree
}

function applyEnvironment(tree: Tree, environment: Environment): void {
  for (const { key, variable } of configKeys()) {
    const value = variable ? environment[variable] : undefined
    if (value === undefined || value === "") continue
    const path = key.split(".")
    const last = path.pop() ?? key
    let node = tree
    for (const part of path) node = (node[part] ??= {}) as Tree
    node[last] = value
  }
}

function finish(
  config: z.infer<typeof Config>,
  environment: Environment,
  fileDirectory: string,
  workingDirectory: string,
): Config {
  const { url, ...database } = config.database
  const { clickhouse_url, ...analytics } = config.analytics
  const clickhouse = clickhouse_url && readSecret(clickhouse_url, environment, fileDirectory)
  const { client_secret, ...sso } = config.sso
  const { stripe_secret_key, stripe_webhook_secret, ...billing } = config.billing
  const stripeKey = stripe_secret_key && readSecret(stripe_secret_key, environment, fileDirectory)
  const stripeWebhook = stripe_webhook_secret && readSecret(stripe_webhook_secret, environment, fileDirectory)
  const resolved = url === undefined ? undefined : readSecret(url, environment, fileDirectory)
  return {
    ...config,
    data_dir: resolve(workingDirectory, config.data_dir),
    database: { ...database, ...(resolved === undefined ? {} : { url: resolved }) },
    analytics: { ...analytics, ...(clickhouse ? { clickhouse_url: clickhouse } : {}) },
    sso: {
      ...sso,
      ...(client_secret === undefined
        ? {}
        : { client_secret: readSecret(client_secret, environment, fileDirectory) }),
    },
    identity: withAbsoluteFiles(config.identity, fileDirectory),
    billing: {
      ...billing,
      ...(stripeKey ? { stripe_secret_key: stripeKey } : {}),
      ...(stripeWebhook ? { stripe_webhook_secret: stripeWebhook } : {}),
    },
    models: config.models.map((model) => ({
      ...model,
      ...(model.file === undefined ? {} : { file: resolve(fileDirectory, model.file) }),
      workers: model.workers.map(({ key, ...worker }) => ({
        ...worker,
        ...(key === undefined ? {} : { key: readSecret(key, environment, fileDirectory) }),
      })),
    })),
  }
}

function withAbsoluteFiles(
  identity: z.infer<typeof Config>["identity"],
  directory: string,
): z.infer<typeof Config>["identity"] {
  const { ca_file, mtls_cert_file, mtls_key_file, ...rest } = identity
  return {
    ...rest,
    ...(ca_file === undefined ? {} : { ca_file: resolve(directory, ca_file) }),
    ...(mtls_cert_file === undefined ? {} : { mtls_cert_file: resolve(directory, mtls_cert_file) }),
    ...(mtls_key_file === undefined ? {} : { mtls_key_file: resolve(directory, mtls_key_file) }),
  }
}

function readSecret(
  source: string | z.infer<typeof SecretReference>,
  environment: Environment,
  directory: string,
): string {
  if (typeof source === "string") return source
  if ("env" in source) {
    const value = environment[source.env]
    if (!value) throw new ConfigError(`Cannot read a secret: the variable ${source.env} is not set`)
    return value
  }
  try {
    return readFileSync(resolve(directory, source.file), "utf8").trim()
  } catch (cause) {
    throw new ConfigError("Cannot read a secret: its file does not exist or is not readable", { cause })
  }
}

function describeIssues(error: z.ZodError): string {
  const lines = error.issues.slice(0, 10).map((issue) => {
    const key = issue.path.join(".") || "the top"
    if (issue.code === "unrecognized_keys")
      return `${issue.keys.map((name) => [...issue.path, name].join(".")).join(", ")}: no such key`
    return `${key}: ${issue.message}`
  })
  return `Cannot use the configuration:\n  ${lines.join("\n  ")}`
}
