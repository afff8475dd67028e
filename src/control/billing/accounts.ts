/** Billing accounts as their owners see them, what the payment provider says about them, and their payment methods. */
import { monthOf } from "../../base/clock.ts"
import { centsFloor } from "../../base/money.ts"
import type {
  AutoRefill,
  BillingAccount as View,
  SpendControls,
  EntitlementState,
} from "../../contract/billing.ts"
import type { Call } from "../../contract/endpoint.ts"
import {
  type BillingAccount,
  findBillingAccount,
  findMonthSpend,
  isCutOff,
  updateBillingAccount,
  lockBillingAccount,
} from "../../store/billing-accounts.ts"
import { findOrganization } from "../../store/organizations.ts"
import { findLastRefill, type PurchaseStatus } from "../../store/purchases.ts"
import type { Sql } from "../../store/sql.ts"
import { acting, change, notFound } from "../audited-change.ts"
import type { BillingStatus } from "../models.ts"
import type { PaymentMethod } from "../payments/provider.ts"
import { type BillingDeps, auditSystem, providerOf, readAccount } from "./parts.ts"
import { reconcileAccount } from "./purchases.ts"

export interface AccountSections {
  readonly autoRefill: boolean
  readonly spendControls: boolean
}

export async function viewAccount(deps: BillingDeps, id: string, sections: AccountSections): Promise<View> {
  const { database, clock } = deps
  const account = await readAccount(database, id)
  const last = await findLastRefill(database, id)
  return {
    id: account.id,
    billing_email: account.email,
    billing_mode: account.mode,
    created_at: account.createdAt.toISOString(),
    updated_at: account.updatedAt.toISOString(),
    credit_balance_cents: viewBalance(account),
    has_default_payment_method: account.paymentMethodId !== null,
    payment_method_required: needsPaymentMethod(account),
    payment_method_description: account.paymentMethodDescription,
    prepaid_entitlement_state: entitlementState(account, last?.status ?? null),
    balance_checked_at: account.balanceCheckedAt?.toISOString() ?? null,
    ...(sections.autoRefill
      ? { auto_refill: account.mode === "prepaid" ? viewAutoRefill(account) : null }
      : {}),
    ...(sections.spendControls
      ? { spend_controls: await viewSpendControls(database, account, clock.nowMs()) }
      : {}),
  }
}

/** Credit that was bought stays the account's while it is postpaid; what is owed is on the invoice. */
const viewBalance = ({ mode, balanceTicks }: BillingAccount): number =>
  centsFloor(mode === "postpaid" && balanceTicks < 0n ? 0n : balanceTicks)

export function viewAutoRefill(account: BillingAccount): AutoRefill {
  return {
    enabled: account.autoRefillEnabled,
    threshold_cents: toNumber(account.autoRefillThresholdCents),
    recharge_to_cents: toNumber(account.autoRefillRechargeToCents),
  }
}

export async function viewSpendControls(
  sql: Sql,
  account: BillingAccount,
  nowMs: number,
): Promise<SpendControls> {
  const { lowBalanceWarningCents, spendCutoffCents, spendWarningCents } = account
  const spend = await findMonthSpend(sql, account.id, monthOf(nowMs))
  return {
    billing_account_id: account.id,
    prepaid_low_balance_warning: alert(lowBalanceWarningCents),
    usage_spend_cutoff:
      spendCutoffCents === null
        ? null
        : {
            threshold_cents: Number(spendCutoffCents),
            local_state: isCutOff(spendCutoffCents, spend) ? "blocked" : "ok",
          },
    usage_spend_warning: alert(spendWarningCents),
  }
}

const alert = (cents: bigint | null): { threshold_cents: number } | null =>
  cents === null ? null : { threshold_cents: Number(cents) }

const toNumber = (cents: bigint | null): number | null => (cents === null ? null : Number(cents))

/** What keeps an organization from running models, as far as money goes. */
export async function billingStatus(
  { database, clock }: Pick<BillingDeps, "database" | "clock">,
  organizationId: string,
): Promise<BillingStatus> {
  const organization = await findOrganization(database, organizationId)
  const account = organization && (await findBillingAccount(database, organization.billingAccountId))
  if (!account) return "billing_setup_failed"
  const spend = await findMonthSpend(database, account.id, monthOf(clock.nowMs()))
  return statusOfAccount(account, isCutOff(account.spendCutoffCents, spend))
}

/** Asks the provider for everything it knows about the account, and brings the ledger up to now. */
export async function refreshAccount(deps: BillingDeps, id: string): Promise<void> {
  await deps.settle()
  const account = await provision(deps, await readAccount(deps.database, id))
  if (account.providerCustomerId !== null) await refreshPaymentMethod(deps, account)
  await reconcileAccount(deps, id)
  const now = new Date(deps.clock.nowMs())
  await updateBillingAccount(deps.database, id, { balanceCheckedAt: now }, now)
}

/** Makes the account known to its provider, if it is not. Safe to repeat: the provider sees the same account. */
export async function provision(deps: BillingDeps, account: BillingAccount): Promise<BillingAccount> {
  if (account.providerCustomerId !== null) return account
  const customerId = await providerOf(deps, account).createCustomer({
    billingAccountId: account.id,
    email: account.email,
  })
  const now = new Date(deps.clock.nowMs())
  const changed = await updateBillingAccount(
    deps.database,
    account.id,
    { providerCustomerId: customerId, providerError: null },
    now,
  )
  return changed ?? account
}

/** Takes over the provider's default payment method when it is not the one that we know. */
export async function refreshPaymentMethod(deps: BillingDeps, account: BillingAccount): Promise<void> {
  const known =
    account.paymentMethodId === null
      ? null
      : { id: account.paymentMethodId, description: account.paymentMethodDescription ?? "" }
  const found = await providerOf(deps, account).findPaymentMethod(account.providerCustomerId ?? "", known)
  if (found?.id === known?.id && found?.description === known?.description) return
  await deps.database.transaction(async (sql) => {
    const now = new Date(deps.clock.nowMs())
    await updateBillingAccount(
      sql,
      account.id,
      { paymentMethodId: found?.id ?? null, paymentMethodDescription: found?.description ?? null },
      now,
    )
    await auditSystem(deps, sql, {
      billingAccountId: account.id,
      event: {
        action: "billing.payment_method_changed",
        resource: { type: "billing_account", id: account.id },
        before: { payment_method_description: account.paymentMethodDescription },
        after: { payment_method_description: found?.description ?? null },
      },
      at: now,
    })
  })
  deps.invalidate({ table: "billing_accounts", id: account.id })
}

type AccountSituation = Pick<
  BillingAccount,
  "mode" | "providerCustomerId" | "paymentMethodId" | "balanceTicks"
>

/** The first that applies (design, Money); the last purchase decides only when there is no credit. */
function entitlementState(account: AccountSituation, lastPurchase: PurchaseStatus | null): EntitlementState {
  if (account.mode === "postpaid") return "disabled"
  if (account.providerCustomerId === null) return "provisioning_failed"
  if (account.balanceTicks > 0n) return "enabled"
  if (lastPurchase === "failed") return "payment_failed"
  if (lastPurchase === "action_required") return "action_required"
  return "payment_required"
}

const needsPaymentMethod = (account: AccountSituation): boolean =>
  account.mode === "postpaid" && account.paymentMethodId === null

/** What keeps the account from paying for inference, in the order in which a model's status names it. */
function statusOfAccount(account: AccountSituation, cutOff: boolean): BillingStatus {
  if (account.providerCustomerId === null) return "billing_setup_failed"
  if (needsPaymentMethod(account)) return "payment_method_required"
  if (account.mode === "prepaid" && account.balanceTicks <= 0n) return "prepaid_credits_required"
  return cutOff ? "spend_limit_exceeded" : null
}

/** The default payment method is entered at the provider; the embedded one has a test card. */
type Given = Call<{ billing_account_id: string }>

interface Setup {
  readonly setup_url: string | null
  readonly payment_method_description: string | null
}

export async function setUpMethod(deps: BillingDeps, call: Given): Promise<Setup> {
  const account = await provision(deps, await readAccount(deps.database, call.params.billing_account_id))
  const made = await providerOf(deps, account).setUp(account.providerCustomerId ?? "", deps.publicUrl())
  if ("url" in made)
    return { setup_url: made.url, payment_method_description: account.paymentMethodDescription }
  await keepMethod(deps, call, { before: account, method: made })
  return { setup_url: null, payment_method_description: made.description }
}

export async function removeMethod(deps: BillingDeps, call: Given): Promise<undefined> {
  const account = await readAccount(deps.database, call.params.billing_account_id)
  if (account.paymentMethodId === null) return
  await providerOf(deps, account).removePaymentMethod(
    account.providerCustomerId ?? "",
    account.paymentMethodId,
  )
  await keepMethod(deps, call, { before: account, method: null })
}

async function keepMethod(
  deps: BillingDeps,
  call: Given,
  { before, method }: { before: BillingAccount; method: PaymentMethod | null },
): Promise<void> {
  const { organizationId } = acting(call)
  // The answer to a repeated request is kept by the server: it is not what this transaction answers.
  await change(deps, { ...call, idempotency: null }, async ({ sql, now, audit, invalidate }) => {
    const account = await lockBillingAccount(sql, before.id)
    if (!account) throw notFound("billing account")
    const endsRefill = method === null && account.autoRefillEnabled
    await updateBillingAccount(
      sql,
      account.id,
      {
        paymentMethodId: method?.id ?? null,
        paymentMethodDescription: method?.description ?? null,
        // A card that comes later is not charged by itself because an earlier one was.
        ...(method ? {} : { autoRefillEnabled: false }),
      },
      now,
    )
    await audit(
      method ? "billing.payment_method_add" : "billing.payment_method_remove",
      { organizationId, id: account.id, resourceType: "billing_account" },
      {
        before: {
          payment_method_description: account.paymentMethodDescription,
          ...(endsRefill ? { auto_refill: true } : {}),
        },
        after: {
          payment_method_description: method?.description ?? null,
          ...(endsRefill ? { auto_refill: false } : {}),
        },
      },
    )
    invalidate({ table: "billing_accounts", id: account.id })
  })
}
