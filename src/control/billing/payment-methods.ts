/** The default payment method of an account: entered at the provider, or a test card at the local one. */
import type { Call } from "../../contract/endpoint.ts"
import {
  type BillingAccount,
  lockBillingAccount,
  updateBillingAccount,
} from "../../store/billing-accounts.ts"
import { acting, change, notFound } from "../change.ts"
import type { PaymentMethod } from "../payments/provider.ts"
import { provision } from "./accounts.ts"
import { type BillingParts, providerOf, readAccount } from "./parts.ts"

type Given = Call<{ billing_account_id: string }>

interface Setup {
  readonly setup_url: string | null
  readonly payment_method_description: string | null
}

export async function setUpMethod(parts: BillingParts, call: Given): Promise<Setup> {
  const account = await provision(parts, await readAccount(parts.database, call.params.billing_account_id))
  const made = await providerOf(parts, account).setUp(account.providerCustomerId ?? "", parts.publicUrl())
  if ("url" in made)
    return { setup_url: made.url, payment_method_description: account.paymentMethodDescription }
  await keepMethod(parts, call, account, made)
  return { setup_url: null, payment_method_description: made.description }
}

export async function removeMethod(parts: BillingParts, call: Given): Promise<undefined> {
  const account = await readAccount(parts.database, call.params.billing_account_id)
  if (account.paymentMethodId === null) return
  await providerOf(parts, account).removePaymentMethod(
    account.providerCustomerId ?? "",
    account.paymentMethodId,
  )
  await keepMethod(parts, call, account, null)
}

async function keepMethod(
  parts: BillingParts,
  call: Given,
  before: BillingAccount,
  method: PaymentMethod | null,
): Promise<void> {
  const { standing } = acting(call)
  // The answer to a repeated request is kept by the server: it is not what this transaction answers.
  await change(parts, { ...call, idempotency: null }, async ({ sql, now, audit, touched }) => {
    const account = await lockBillingAccount(sql, before.id)
    if (!account) throw notFound("billing account")
    await updateBillingAccount(
      sql,
      account.id,
      { paymentMethodId: method?.id ?? null, paymentMethodDescription: method?.description ?? null },
      now,
    )
    await audit({
      organizationId: standing.organizationId,
      action: method ? "billing.payment_method_add" : "billing.payment_method_remove",
      resource: { type: "billing_account", id: account.id },
      before: { payment_method_description: account.paymentMethodDescription },
      after: { payment_method_description: method?.description ?? null },
    })
    touched({ table: "billing_accounts", id: account.id })
  })
}
