/** What billing does by itself: known to providers, refilled, reconciled, invoiced, and tidied up. */
import { fromCents, ticksPerCent } from "../../base/money.ts"
import { refillCentsMax, refillCentsMin } from "../../contract/billing.ts"
import { listUnprovisioned } from "../../store/billing-accounts.ts"
import { purgeCharges } from "../../store/ledger.ts"
import { listAccountsToRefill } from "../../store/purchases.ts"
import type { PeriodicTask } from "../periodic.ts"
import { provision } from "./accounts.ts"
import { chargeInvoices, issueInvoices } from "./invoices.ts"
import { type BillingDeps, readAccount } from "./parts.ts"
import { reconcileDue, buy } from "./purchases.ts"

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
/** Far longer than a journal can wait: what comes again after this is not recognised as charged. */
const chargesKeptMs = 100 * 24 * hourMs
const purgedMax = 10_000
const provisionedMax = 100

export function billingTasks(deps: BillingDeps): PeriodicTask[] {
  return [
    { name: "billing.refill", everyMs: 3 * secondMs, run: () => refillAccounts(deps) },
    { name: "billing.reconcile", everyMs: 10 * secondMs, run: () => reconcileDue(deps) },
    { name: "billing.provision", everyMs: minuteMs, run: () => provisionAll(deps) },
    {
      name: "billing.invoices",
      everyMs: 10 * minuteMs,
      run: async () => {
        await issueInvoices(deps)
        await chargeInvoices(deps)
      },
    },
    {
      name: "billing.purge",
      everyMs: hourMs,
      run: () => purgeCharges(deps.database, new Date(deps.clock.nowMs() - chargesKeptMs), purgedMax),
    },
  ]
}

async function provisionAll(deps: BillingDeps): Promise<void> {
  for (const account of await listUnprovisioned(deps.database, [...deps.providers.keys()], provisionedMax))
    await provision(deps, account).catch((error: unknown) =>
      deps.log.warn(
        { err: error, billing_account: account.id },
        "an account could not be set up with its provider",
      ),
    )
}

/** After a declined payment the next attempt waits, so that a card is not asked again and again. */
const retryFailedMs = 3_600_000
/** An automatic purchase that is not confirmed within this time no longer blocks the next one. */
const retryUndecidedMs = 24 * 3_600_000
const accountsMax = 100

export async function refillAccounts(deps: BillingDeps): Promise<number> {
  const { database, clock, log } = deps
  const nowMs = clock.nowMs()
  const wait = {
    undecidedSince: new Date(nowMs - retryUndecidedMs),
    failedSince: new Date(nowMs - retryFailedMs),
  }
  const due = await listAccountsToRefill(database, wait, accountsMax)
  for (const { id, balanceTicks, rechargeToCents } of due) {
    try {
      const amountCents = refillCents(balanceTicks, Number(rechargeToCents))
      const account = await readAccount(database, id)
      // One purchase for one balance: a gateway that comes to the same conclusion at once makes the same purchase.
      const repeatKey = `auto-${id}-${balanceTicks}-${Math.floor(nowMs / retryFailedMs)}`
      await buy(deps, { account, amountCents, purpose: "auto_refill", createdBy: null, repeatKey })
    } catch (error) {
      log.warn({ err: error, billing_account: id }, "an account could not be refilled")
    }
  }
  return due.length
}

/** What brings the balance to its target, to the cent, within what one purchase may be. */
export function refillCents(balanceTicks: bigint, rechargeToCents: number): number {
  const missingTicks = fromCents(rechargeToCents) - balanceTicks
  const missingCents = Number((missingTicks + ticksPerCent - 1n) / ticksPerCent)
  return Math.min(Math.max(missingCents, refillCentsMin), refillCentsMax)
}
