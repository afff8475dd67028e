/** The configuration: one YAML file, overridden by UMPIRE_* variables, one schema, errors that name the key. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, resolve } from "node:path"
import type * as Yaml from "yaml"
import { z } from "zod"
import type { SecretReference } from "./config-models.ts"
import { Config } from "./config-schema.ts"

/** Variables whose name does not follow from their key. */
const shortNames: Record<string, string> = {
  UMPIRE_CLICKHOUSE_URL: "analytics.clickhouse_url",
  UMPIRE_HOST: "server.host",
  UMPIRE_PORT: "server.port",
}

/** What only the environment says: the file to read and the first start of an unattended installation. */
export const environmentOnly: Record<string, string> = {
  UMPIRE_CONFIG: "The YAML file to read.",
  UMPIRE_WORKER_KEY: "umpire worker: the bearer value that gateways must send.",
  UMPIRE_BOOTSTRAP_KEY: "First start: the whole value of the first API key (ump_<id>_<secret>).",
  UMPIRE_BOOTSTRAP_EMAIL: "First start: the first user's email address.",
  UMPIRE_BOOTSTRAP_PASSWORD: "First start: the first user's password.",
}

/** What the other commands and the code samples read. */
const clientVariables = ["UMPIRE_API_KEY", "UMPIRE_DEBUG", "UMPIRE_MODEL", "UMPIRE_URL"]

export class ConfigError extends Error {
  override readonly name = "ConfigError"
}

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the file that UMPIRE_CONFIG names (if any) and the environment. Relative paths are made absolute. */
export function loadConfig(environment: Environment, workingDirectory: string): Config {
  const file = environment["UMPIRE_CONFIG"]
  const path = file ? resolve(workingDirectory, file) : undefined
  const tree = path ? readYaml(path) : {}
  const written = Config.safeParse(tree)
  const replaced = applyEnvironment(tree, environment)
  // A mistake in the file is one, whatever is given instead of it today.
  const hidden = written.error?.issues.filter((issue) => replaced.has(issue.path.join("."))) ?? []
  if (hidden.length > 0) throw new ConfigError(describeIssues(hidden))
  const parsed = Config.safeParse(tree)
  if (!parsed.success) throw new ConfigError(describeIssues(parsed.error.issues))
  return finish(parsed.data, environment, {
    fileDirectory: path ? dirname(path) : workingDirectory,
    workingDirectory,
  })
}

/** Variables that look like settings and set nothing: misspelt, or of another version. */
export function unknownVariables(environment: Environment, workingDirectory: string): string[] {
  const file = environment["UMPIRE_CONFIG"]
  const known = new Set([
    ...configKeys().map(({ variable }) => variable),
    ...Object.keys(environmentOnly),
    ...clientVariables,
    ...(file ? secretVariables(readYaml(resolve(workingDirectory, file))) : []),
  ])
  return Object.keys(environment)
    .filter((name) => name.startsWith("UMPIRE_") && environment[name] && !known.has(name))
    .toSorted()
}

/** The variables that secrets are read from: `{ env: NAME }`, anywhere in the file. */
function secretVariables(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return []
  return Object.entries(node).flatMap(([name, value]: [string, unknown]) =>
    name === "env" && typeof value === "string" ? [value] : secretVariables(value),
  )
}

interface ConfigKey {
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
  ["database", "direct_url"],
  ["analytics", "clickhouse_url"],
  ["metrics", "token"],
  ["sso", "client_secret"],
  ["content", "keys"],
  ["billing", "stripe_secret_key"],
  ["billing", "stripe_webhook_secret"],
  ["email", "smtp_password"],
  ["files", "s3_secret_access_key"],
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
  // Most installations have no file, and every command would wait for the parser's seventy modules.
  const { parse } = createRequire(import.meta.url)("yaml") as typeof Yaml
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

/** Returns the keys whose value in the file it replaces. */
function applyEnvironment(tree: Tree, environment: Environment): ReadonlySet<string> {
  const replaced = new Set<string>()
  for (const { key, variable } of configKeys()) {
    const value = variable ? environment[variable] : undefined
    if (value === undefined || value === "") continue
    const path = key.split(".")
    const last = path.pop() ?? key
    let node = tree
    for (const part of path) node = (node[part] ??= {}) as Tree
    if (node[last] !== undefined) replaced.add(key)
    node[last] = value
  }
  return replaced
}

function finish(
  config: z.infer<typeof Config>,
  environment: Environment,
  { fileDirectory, workingDirectory }: { readonly fileDirectory: string; readonly workingDirectory: string },
): Config {
  const { url, direct_url, ...database } = config.database
  const { clickhouse_url, ...analytics } = config.analytics
  const clickhouse = clickhouse_url && readSecret(clickhouse_url, environment, fileDirectory)
  const { client_secret, ...sso } = config.sso
  const { token, ...metrics } = config.metrics
  const { s3_secret_access_key, ...files } = config.files
  const { keys, ...content } = config.content
  const { stripe_secret_key, stripe_webhook_secret, ...billing } = config.billing
  const stripeKey = stripe_secret_key && readSecret(stripe_secret_key, environment, fileDirectory)
  const stripeWebhook = stripe_webhook_secret && readSecret(stripe_webhook_secret, environment, fileDirectory)
  const resolved = url === undefined ? undefined : readSecret(url, environment, fileDirectory)
  const direct = direct_url && readSecret(direct_url, environment, fileDirectory)
  return {
    ...config,
    data_dir: resolve(workingDirectory, config.data_dir),
    database: {
      ...database,
      ...(resolved === undefined ? {} : { url: resolved }),
      ...(direct ? { direct_url: direct } : {}),
    },
    analytics: { ...analytics, ...(clickhouse ? { clickhouse_url: clickhouse } : {}) },
    metrics: { ...metrics, ...(token ? { token: readSecret(token, environment, fileDirectory) } : {}) },
    sso: {
      ...sso,
      ...(client_secret === undefined
        ? {}
        : { client_secret: readSecret(client_secret, environment, fileDirectory) }),
    },
    email: withPassword(config.email, environment, fileDirectory),
    content: { ...content, ...(keys ? { keys: readSecret(keys, environment, fileDirectory) } : {}) },
    files: {
      ...files,
      ...(s3_secret_access_key
        ? { s3_secret_access_key: readSecret(s3_secret_access_key, environment, fileDirectory) }
        : {}),
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
      ...(model.adapter === undefined ? {} : { adapter: resolve(fileDirectory, model.adapter) }),
      workers: model.workers.map(({ key, ...worker }) => ({
        ...worker,
        ...(key === undefined ? {} : { key: readSecret(key, environment, fileDirectory) }),
      })),
    })),
  }
}

function withPassword(
  email: z.infer<typeof Config>["email"],
  environment: Environment,
  directory: string,
): Config["email"] {
  const { smtp_password, smtp_ca_file, ...rest } = email
  return {
    ...rest,
    ...(smtp_ca_file === undefined ? {} : { smtp_ca_file: resolve(directory, smtp_ca_file) }),
    ...(smtp_password === undefined
      ? {}
      : { smtp_password: readSecret(smtp_password, environment, directory) }),
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

function describeIssues(issues: readonly z.core.$ZodIssue[]): string {
  const lines = issues.slice(0, 10).map((issue) => {
    const key = issue.path.join(".") || "the top"
    if (issue.code === "unrecognized_keys")
      return `${issue.keys.map((name) => [...issue.path, name].join(".")).join(", ")}: no such key`
    return `${key}: ${issue.message}`
  })
  return `Cannot use the configuration:\n  ${lines.join("\n  ")}`
}
