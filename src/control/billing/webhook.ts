/** Takes events of a payment provider: signed, each once, in any order, because the provider is asked for the truth. */
import type { Call } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { findAccountOfCustomer } from "../../store/billing-accounts.ts"
import { findPurchaseById, hasPaymentEvent, insertPaymentEvent } from "../../store/purchases.ts"
import type { PaymentEvent, PaymentProvider } from "../payments/provider.ts"
import { refreshPaymentMethod } from "./accounts.ts"
import type { BillingParts } from "./parts.ts"
import { reconcile } from "./purchases.ts"

export async function receiveEvent(
  parts: BillingParts,
  providerName: string,
  call: Call<unknown, unknown, Uint8Array>,
): Promise<{ received: true }> {
  const provider = parts.providers.get(providerName)
  if (!provider?.readEvent)
    throw new Fault("invalid_signature", `Cannot take the event: ${providerName} is not configured`)
  const event = provider.readEvent(call.body, call.request.header("stripe-signature"))
  if (await hasPaymentEvent(parts.database, providerName, event.id)) return { received: true }
  await settle(parts, provider, event)
  // Only now: an event that could not be processed is sent again, and must not look like a duplicate.
  const receivedAt = new Date(parts.clock.nowMs())
  await insertPaymentEvent(parts.database, {
    provider: providerName,
    eventId: event.id,
    type: event.type,
    receivedAt,
  })
  return { received: true }
}

async function settle(parts: BillingParts, provider: PaymentProvider, event: PaymentEvent): Promise<void> {
  if (event.purchaseId !== null) {
    const purchase = await findPurchaseById(parts.database, event.purchaseId)
    if (purchase) await reconcile(parts, purchase)
  }
  if (event.customerId === null || event.type.startsWith("payment_intent.")) return
  const account = await findAccountOfCustomer(parts.database, provider.name, event.customerId)
  if (!account) return
  await provider.settleEvent?.(event)
  await refreshPaymentMethod(parts, account)
}
