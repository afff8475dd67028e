/** What can be configured: one section of keys for each file in `config`, with bounds, default and meaning. */
import { z } from "zod"
import { ModelConfig, RegionConfig } from "./config-models.ts"
import type { WorkerConfig } from "./config-models.ts"
import { AnalyticsConfig } from "./config/analytics.ts"
import { BatchesConfig } from "./config/batches.ts"
import { BillingConfig } from "./config/billing.ts"
import { CompatConfig } from "./config/compat.ts"
import { ContentConfig } from "./config/content.ts"
import { DatabaseConfig } from "./config/database.ts"
import { EmailConfig } from "./config/email.ts"
import { EngineConfig } from "./config/engine.ts"
import { FilesConfig } from "./config/files.ts"
import { GatewayConfig } from "./config/gateway.ts"
import { IdentityConfig } from "./config/identity.ts"
import { JournalConfig } from "./config/journal.ts"
import { LimitsConfig } from "./config/limits.ts"
import { LogConfig } from "./config/log.ts"
import { MetricsConfig } from "./config/metrics.ts"
import { RoutingConfig } from "./config/routing.ts"
import { ServerConfig } from "./config/server.ts"
import { SsoConfig } from "./config/sso.ts"
import { TelemetryConfig } from "./config/telemetry.ts"
import { WebhooksConfig } from "./config/webhooks.ts"

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
  readonly database: { readonly url?: string }
  readonly analytics: { readonly clickhouse_url?: string }
  readonly metrics: { readonly token?: string }
  readonly sso: { readonly client_secret?: string }
  readonly email: { readonly smtp_password?: string }
  readonly files: { readonly s3_secret_access_key?: string }
  readonly content: { readonly keys?: string }
  readonly billing: { readonly stripe_secret_key?: string; readonly stripe_webhook_secret?: string }
}
