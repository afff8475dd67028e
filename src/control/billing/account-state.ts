/** What follows from an account's columns: whether it can pay, and what the contract calls that. */
import type { EntitlementState } from "../../contract/billing.ts"
import type { BillingAccount } from "../../store/billing-accounts.ts"
import type { PurchaseStatus } from "../../store/purchases.ts"
import type { BillingStatus } from "../model-status.ts"

type AccountSituation = Pick<
  BillingAccount,
  "mode" | "providerCustomerId" | "paymentMethodId" | "balanceTicks"
>

/** The first that applies (design, Money); the last purchase decides only when there is no credit. */
export function entitlementState(
  account: AccountSituation,
  lastPurchase: PurchaseStatus | null,
): EntitlementState {
  if (account.mode === "postpaid") return "disabled"
  if (account.providerCustomerId === null) return "provisioning_failed"
  if (account.balanceTicks > 0n) return "enabled"
  if (lastPurchase === "failed") return "payment_failed"
  if (lastPurchase === "action_required") return "action_required"
  return "payment_required"
}

export const needsPaymentMethod = (account: AccountSituation): boolean =>
  account.mode === "postpaid" && account.paymentMethodId === null

/** What keeps the account from paying for inference, in the order in which a model's status names it. */
export function statusOfAccount(account: AccountSituation, cutOff: boolean): BillingStatus {
  if (account.providerCustomerId === null) return "billing_setup_failed"
  if (needsPaymentMethod(account)) return "payment_method_required"
  if (account.mode === "prepaid" && account.balanceTicks <= 0n) return "prepaid_credits_required"
  return cutOff ? "spend_limit_exceeded" : null
}
