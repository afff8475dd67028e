/** The default payment method of an account: entered at the provider, or a test card at the local one. */
import type { Call } from "../../contract/endpoint.ts"
import {
  type BillingAccount,
  lockBillingAccount,
  updateBillingAccount,
} from "../../store/billing-accounts.ts"
import { acting, change, notFound } from "../audited-change.ts"
import type { PaymentMethod } from "../payments/provider.ts"
import { provision } from "./accounts.ts"
import { type BillingDeps, providerOf, readAccount } from "./parts.ts"

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
