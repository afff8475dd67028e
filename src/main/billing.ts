/** Builds what billing needs from the configuration: providers, the seller, the journal as operators see it. */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { ConfigError } from "../base/config.ts"
import type { Config } from "../base/config-schema.ts"
import type { BillingDeps } from "../control/billing/parts.ts"
import type { JournalState } from "../control/operator/billing.ts"
import { createLocalProvider, type PaymentProvider } from "../control/payments/provider.ts"
import { type JournalPosition, isBefore } from "../store/journal/journal.ts"
import { type Damage, describeDamage, readJournal, readQuarantine } from "../store/journal/segments.ts"
import type { Sql } from "../store/sql.ts"
import { findJournalPosition } from "../store/usage.ts"
import type { Core, Gateway } from "./gateway.ts"

/** Accounts keep the provider that they were made with, so the local one is always there. */
export async function providersOf({ billing }: Config): Promise<ReadonlyMap<string, PaymentProvider>> {
  const providers = new Map([["local", createLocalProvider()]])
  if (billing.stripe_secret_key) {
    // Of two hundred modules, which a server without Stripe need not load.
    const { createStripeProvider } = await import("../control/payments/stripe.ts")
    providers.set(
      "stripe",
      createStripeProvider({
        secretKey: billing.stripe_secret_key,
        webhookSecret: billing.stripe_webhook_secret,
        apiUrl: billing.stripe_api_url,
      }),
    )
  }
  if (!providers.has(billing.provider))
    throw new ConfigError(
      `Cannot use billing.provider ${billing.provider}: billing.stripe_secret_key is not set`,
    )
  return providers
}

/** What billing needs of the rest. */
export async function billingOf(core: Core, { money, analytics }: Gateway): Promise<BillingDeps> {
  return {
    ...core,
    providers: await providersOf(core.config),
    settle: async () => await money.settle(),
    seller: sellerOf(core.config),
    spendByTag: analytics.spendByTag,
  }
}

export function sellerOf({ billing }: Config): BillingDeps["seller"] {
  const lines = billing.seller_address.split(";").map((line) => line.trim())
  return {
    name: billing.seller_name,
    addressLines: lines.filter((line) => line !== ""),
    taxNumber: billing.seller_tax_number || null,
    tax: billing.tax_percent > 0 ? { name: billing.tax_name, percent: billing.tax_percent } : null,
  }
}

/** Counts what the journal in a directory holds beyond the ledger, and names what is damaged in it or was set aside. */
export async function inspectJournal(
  directory: string,
  sql: Sql,
  until?: JournalPosition,
): Promise<JournalState> {
  const gatewayId = await readFile(join(directory, "gateway-id"), "utf8").catch(() => null)
  if (!gatewayId) return { gatewayId: null, pendingRecords: 0, lost: [], unfinished: [] }
  let position = await findJournalPosition(sql, gatewayId.trim())
  let pendingRecords = 0
  const damages = await readQuarantine(directory)
  for (;;) {
    const batch = await readJournal(directory, position, { until })
    damages.push(...batch.damages)
    if (!isBefore(position, batch.next)) break
    pendingRecords += batch.records.length
    position = batch.next
  }
  return {
    gatewayId: gatewayId.trim(),
    pendingRecords,
    lost: told(damages.filter(({ kind }) => kind !== "tail")),
    unfinished: told(damages.filter(({ kind }) => kind === "tail")),
  }
}

const told = (damages: readonly Damage[]): string[] => [...new Set(damages.map(describeDamage))]
