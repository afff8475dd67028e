/** What can be configured: one section of keys for each file in `config`, with bounds, default and meaning. */
import { z } from "zod"
import { ModelConfig, RegionConfig } from "./config-models.ts"
import type { WorkerConfig } from "./config-models.ts"
import { AnalyticsConfig } from "./config/analytics.ts"
import { BillingConfig } from "./config/billing.ts"
import { CompatConfig } from "./config/compat.ts"
import { DatabaseConfig } from "./config/database.ts"
import { EngineConfig } from "./config/engine.ts"
import { GatewayConfig } from "./config/gateway.ts"
import { IdentityConfig } from "./config/identity.ts"
import { JournalConfig } from "./config/journal.ts"
import { LimitsConfig } from "./config/limits.ts"
import { LogConfig } from "./config/log.ts"
import { RoutingConfig } from "./config/routing.ts"
import { ServerConfig } from "./config/server.ts"
import { SsoConfig } from "./config/sso.ts"

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
  engine: EngineConfig.prefault({}),
  limits: LimitsConfig.prefault({}),
  identity: IdentityConfig.prefault({}),
  compat: CompatConfig.prefault({}),
  calibrations: z
    .record(
      z.string().min(1).max(64),
      z.strictObject({ temperature: z.number().positive().max(100), bias: z.number().min(-100).max(100) }),
    )
    .default({})
    .describe(
      "Deprecated: each becomes a question set of every organization at the next start; see question-sets.md.",
    ),
  sso: SsoConfig.prefault({}),
  journal: JournalConfig.prefault({}),
  billing: BillingConfig.prefault({}),
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
  readonly database: { readonly url?: string }
  readonly analytics: { readonly clickhouse_url?: string }
  readonly sso: { readonly client_secret?: string }
  readonly billing: { readonly stripe_secret_key?: string; readonly stripe_webhook_secret?: string }
}
