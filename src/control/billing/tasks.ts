/** What billing does by itself: known to providers, refilled, reconciled, invoiced, and tidied up. */
import { listUnprovisioned } from "../../store/billing-accounts.ts"
import { purgeCharges } from "../../store/ledger.ts"
import type { PeriodicTask } from "../periodic.ts"
import { provision } from "./accounts.ts"
import { refillAccounts } from "./auto-refill.ts"
import { chargeInvoices, issueInvoices } from "./invoices.ts"
import type { BillingParts } from "./parts.ts"
import { reconcileDue } from "./purchases.ts"

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
/** Far longer than a journal can wait: what comes again after this is not recognised as charged. */
const chargesKeptMs = 100 * 24 * hourMs
const purgedMax = 10_000
const provisionedMax = 100

export function billingTasks(parts: BillingParts): PeriodicTask[] {
  return [
    { name: "billing.refill", everyMs: 3 * secondMs, run: () => refillAccounts(parts) },
    { name: "billing.reconcile", everyMs: 10 * secondMs, run: () => reconcileDue(parts) },
    { name: "billing.provision", everyMs: minuteMs, run: () => provisionAll(parts) },
    {
      name: "billing.invoices",
      everyMs: 10 * minuteMs,
      run: async () => {
        await issueInvoices(parts)
        await chargeInvoices(parts)
      },
    },
    {
      name: "billing.purge",
      everyMs: hourMs,
      run: () => purgeCharges(parts.database, new Date(parts.clock.nowMs() - chargesKeptMs), purgedMax),
    },
  ]
}

async function provisionAll(parts: BillingParts): Promise<void> {
  for (const account of await listUnprovisioned(parts.database, [...parts.providers.keys()], provisionedMax))
    await provision(parts, account).catch((error: unknown) =>
      parts.log.warn(
        { err: error, billing_account: account.id },
        "an account could not be set up with its provider",
      ),
    )
}
