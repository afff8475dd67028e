/** Buys credit for prepaid accounts whose balance has fallen to their threshold. */
import { fromCents, ticksPerCent } from "../../base/money.ts"
import { refillCentsMax, refillCentsMin } from "../../contract/billing.ts"
import { listAccountsToRefill } from "../../store/purchases.ts"
import { type BillingParts, readAccount } from "./parts.ts"
import { buy } from "./purchases.ts"

/** After a declined payment the next attempt waits, so that a card is not asked again and again. */
const retryFailedMs = 3_600_000
/** An automatic purchase that is not confirmed within this time no longer blocks the next one. */
const retryUndecidedMs = 24 * 3_600_000
const accountsMax = 100

export async function refillAccounts(parts: BillingParts): Promise<number> {
  const { database, clock, log } = parts
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
      await buy(parts, { account, amountCents, purpose: "auto_refill", createdBy: null, repeatKey })
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
