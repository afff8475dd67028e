/** Buying: a purchase is written down before the provider is asked, and credit appears with its success, once. */
import { createHash } from "node:crypto"
import { fromCents } from "../../base/money.ts"
import type { CreditPurchase } from "../../contract/billing.ts"
import type { IdempotentRun } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type BillingAccount, lockBillingAccount } from "../../store/billing-accounts.ts"
import { markInvoice } from "../../store/invoices.ts"
import { appendLedger } from "../../store/ledger.ts"
import {
  type Purchase,
  ensurePurchase,
  listUndecided,
  listUndecidedOf,
  lockPurchase,
  updatePurchase,
} from "../../store/purchases.ts"
import type { Sql } from "../../store/sql.ts"
import { findUser } from "../../store/users.ts"
import type { ChargeOutcome } from "../payments/provider.ts"
import { type BillingDeps, auditSystem, providerOf, readAccount } from "./parts.ts"
import { toWire } from "../to-wire.ts"

/** The provider is asked again after this, then after twice as long, and so on. */
const checkFirstMs = 30_000
const checkMaxMs = 3_600_000
/** A purchase that the provider has not heard of by then never reached it. */
const unknownAfterMs = 900_000
/** A payment that is not confirmed within a week never will be. */
const giveUpAfterMs = 7 * 24 * 3_600_000
const checkedMax = 100

interface PurchaseOrder {
  readonly account: BillingAccount
  readonly amountCents: number
  readonly purpose: Purchase["purpose"]
  readonly invoiceId?: string
  readonly createdBy: string | null
  /** What makes a repeated order the same purchase; null when nothing repeats it. */
  readonly repeatKey: string | null
}

/** A caller's Idempotency-Key is passed on to the provider, in a form that it accepts. */
export function repeatKeyOf(run: IdempotentRun | null): string | null {
  if (!run) return null
  return `refill-${createHash("sha256").update(`${run.scope}\n${run.key}`).digest("hex")}`
}

/** Refuses an account that cannot buy (409). */
export function checkCanBuy(account: BillingAccount): void {
  if (account.mode === "postpaid")
    throw new Fault(
      "conflict",
      "Cannot buy credit: the account is postpaid and is invoiced at the end of the month",
    )
  if (account.providerCustomerId === null)
    throw new Fault("conflict", "Cannot buy credit: the payment provider does not know the account yet")
  if (account.paymentMethodId === null)
    throw new Fault("conflict", "Cannot buy credit: the account has no default payment method; add one first")
}

/** Writes the purchase down. Its outcome is what the audit log has, once it is settled. */
export async function orderPurchase(deps: BillingDeps, order: PurchaseOrder): Promise<Purchase> {
  const id = deps.ids.next("cp")
  return await deps.database.transaction(async (sql) => {
    const now = new Date(deps.clock.nowMs())
    const { purchase } = await ensurePurchase(sql, {
      id,
      billingAccountId: order.account.id,
      purpose: order.purpose,
      invoiceId: order.invoiceId ?? null,
      amountCents: BigInt(order.amountCents),
      status: "processing",
      createdBy: order.createdBy,
      providerKey: order.repeatKey ?? id,
      createdAt: now,
      updatedAt: now,
      checkAt: new Date(now.getTime() + checkFirstMs),
    })
    return purchase
  })
}

/** Asks the provider; never throws for what the provider says or fails to say. */
export async function chargePurchase(
  deps: BillingDeps,
  account: BillingAccount,
  purchase: Purchase,
): Promise<ChargeOutcome> {
  if (purchase.status === "succeeded")
    return { status: "succeeded", reference: purchase.providerReference, errorMessage: null }
  return await providerOf(deps, account).charge({
    purchaseId: purchase.id,
    billingAccountId: account.id,
    customerId: account.providerCustomerId ?? "",
    paymentMethodId: account.paymentMethodId ?? "",
    amountCents: Number(purchase.amountCents),
    description: purchase.purpose === "invoice" ? "Usage" : "Credit",
    automatic: purchase.purpose === "auto_refill",
    idempotencyKey: purchase.providerKey,
  })
}

/** Order, charge and settle in one go; for the installation's own purchases. */
export async function buy(deps: BillingDeps, order: PurchaseOrder): Promise<Purchase> {
  const purchase = await orderPurchase(deps, order)
  const outcome = await chargePurchase(deps, order.account, purchase)
  return await deps.database.transaction((sql) => settlePurchase(deps, sql, { id: purchase.id, outcome }))
}

/**
 * Notes what the provider said. Success is final; a failure can only turn into success, because a payment that was
 * declined may be tried again, and news that is older than what is known comes late. A caller that writes its own audit
 * entry says so: one event is in the log once.
 */
export async function settlePurchase(
  deps: BillingDeps,
  sql: Sql,
  {
    id,
    outcome,
    auditedBy = "system",
  }: { id: string; outcome: ChargeOutcome; auditedBy?: "system" | "caller" | undefined },
): Promise<Purchase> {
  const before = await lockPurchase(sql, id)
  if (!before) throw new Error(`Cannot settle the purchase ${id}: there is none`)
  const now = new Date(deps.clock.nowMs())
  const advances = rank[outcome.status] >= rank[before.status] && before.status !== "succeeded"
  if (!advances) return await postpone(sql, before, now)
  const changed = await updatePurchase(
    sql,
    id,
    {
      status: outcome.status,
      providerReference: outcome.reference ?? before.providerReference,
      errorMessage: outcome.errorMessage,
      ...nextCheck(before, outcome.status, now),
    },
    now,
  )
  if (outcome.status === before.status) return changed ?? before
  await applyOutcome(sql, changed ?? before, now)
  if (auditedBy === "system") await auditOutcome(deps, changed ?? before, { sql, was: before.status, now })
  return changed ?? before
}

/** What is known better comes later; equal ranks may replace each other. */
const rank = { processing: 0, timed_out: 0, action_required: 1, failed: 2, succeeded: 3 } as const

function nextCheck(
  { checks, createdAt }: Purchase,
  status: Purchase["status"],
  now: Date,
): Pick<Purchase, "checkAt" | "checks"> {
  const decided = status === "succeeded" || status === "failed"
  if (decided || now.getTime() - createdAt.getTime() > giveUpAfterMs)
    return { checkAt: null, checks: checks + 1 }
  const delayMs = Math.min(checkFirstMs * 2 ** Math.min(checks, 20), checkMaxMs)
  return { checkAt: new Date(now.getTime() + delayMs), checks: checks + 1 }
}

async function postpone(sql: Sql, purchase: Purchase, now: Date): Promise<Purchase> {
  if (purchase.checkAt === null) return purchase
  return (await updatePurchase(sql, purchase.id, nextCheck(purchase, purchase.status, now), now)) ?? purchase
}

/** What a change of status brings with it, in the same transaction. */
async function applyOutcome(sql: Sql, purchase: Purchase, now: Date): Promise<void> {
  const { status, invoiceId } = purchase
  if (status === "succeeded") await credit(sql, purchase, now)
  if (invoiceId !== null && (status === "succeeded" || status === "failed"))
    await markInvoice(sql, invoiceId, status === "succeeded" ? "paid" : "payment_failed", now)
}

async function auditOutcome(
  deps: BillingDeps,
  { id, billingAccountId, status, amountCents }: Purchase,
  { sql, was, now }: { sql: Sql; was: Purchase["status"]; now: Date },
): Promise<void> {
  const event = {
    action: `billing.purchase_${status}`,
    resource: { type: "credit_purchase", id },
    before: { status: was },
    after: { status, amount_in_cents: Number(amountCents) },
  }
  await auditSystem(deps, sql, { billingAccountId, event, at: now })
}

async function credit(sql: Sql, purchase: Purchase, now: Date): Promise<void> {
  const { id, billingAccountId, amountCents, purpose } = purchase
  await lockBillingAccount(sql, billingAccountId)
  await appendLedger(sql, {
    billingAccountId,
    at: now,
    kind: purpose === "invoice" ? "payment" : "purchase",
    amountTicks: fromCents(Number(amountCents)),
    reference: id,
  })
}

/** Asks about purchases that are not decided and whose time has come. */
export async function reconcileDue(deps: BillingDeps): Promise<number> {
  const due = await listUndecided(deps.database, new Date(deps.clock.nowMs()), checkedMax)
  for (const purchase of due)
    await reconcile(deps, purchase).catch((error: unknown) =>
      deps.log.warn({ err: error, purchase: purchase.id }, "a purchase could not be looked up"),
    )
  return due.length
}

export async function reconcileAccount(deps: BillingDeps, billingAccountId: string): Promise<void> {
  for (const purchase of await listUndecidedOf(deps.database, billingAccountId))
    await reconcile(deps, purchase)
}

/** Asks the provider what became of a purchase. */
export async function reconcile(deps: BillingDeps, purchase: Purchase): Promise<Purchase> {
  const account = await readAccount(deps.database, purchase.billingAccountId)
  const found = await providerOf(deps, account).find({
    purchaseId: purchase.id,
    customerId: account.providerCustomerId ?? "",
    reference: purchase.providerReference,
    amountCents: Number(purchase.amountCents),
    automatic: purchase.purpose === "auto_refill",
    createdAt: purchase.createdAt,
  })
  const outcome = found ?? unheardOf(purchase, deps.clock.nowMs())
  return await deps.database.transaction((sql) => settlePurchase(deps, sql, { id: purchase.id, outcome }))
}

function unheardOf(purchase: Purchase, nowMs: number): ChargeOutcome {
  const status = nowMs - purchase.createdAt.getTime() > unknownAfterMs ? "failed" : "timed_out"
  return { status, reference: null, errorMessage: "The payment provider did not answer in time." }
}

export async function viewPurchase(sql: Sql, purchase: Purchase): Promise<CreditPurchase> {
  const user = purchase.createdBy === null ? null : await findUser(sql, purchase.createdBy)
  return {
    ...toWire(purchase, "id", "billingAccountId", "status", "createdAt", "updatedAt", "errorMessage"),
    amount_in_cents: Number(purchase.amountCents),
    created_by_user: user && toWire(user, "id", "email", "name"),
  }
}
