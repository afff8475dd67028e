/** The handlers of the billing endpoints. */
import { monthOf } from "../../base/clock.ts"
import { centsExact } from "../../base/money.ts"
import type { BillingTable, Buyer, CreditMovement } from "../../contract/billing.ts"
import { type Call, Document, type Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { syncManagedRules } from "../../store/alerts/rules.ts"
import {
  type BillingAccount,
  findAccountOfCustomer,
  lockBillingAccount,
  noteCutoff,
  updateBillingAccount,
} from "../../store/billing-accounts.ts"
import { type Invoice, findInvoice, listInvoiceLines, pageInvoices } from "../../store/invoices.ts"
import { type LedgerRow, pageLedger } from "../../store/ledger.ts"
import { listOrganizationsOfUser } from "../../store/organizations.ts"
import {
  findPurchase,
  pageRefills,
  findPurchaseById,
  hasPaymentEvent,
  insertPaymentEvent,
} from "../../store/purchases.ts"
import type { Sql } from "../../store/sql.ts"
import { type ChangeScope, acting, change, notFound, toList } from "../audited-change.ts"
import { startingCredit } from "../first-start.ts"
import type { PaymentEvent, PaymentProvider } from "../payments/provider.ts"
import {
  type AccountSections,
  refreshAccount,
  viewAccount,
  viewAutoRefill,
  viewSpendControls,
  refreshPaymentMethod,
  removeMethod,
  setUpMethod,
} from "./accounts.ts"
import { invoiceHtml, type InvoiceText, invoiceText, receiptText } from "./invoice-text.ts"
import { viewInvoice } from "./invoices.ts"
import { type BillingDeps, readAccount } from "./parts.ts"
import {
  chargePurchase,
  checkCanBuy,
  orderPurchase,
  repeatKeyOf,
  settlePurchase,
  viewPurchase,
  reconcile,
} from "./purchases.ts"
import { readUsageSpend } from "./usage-spend.ts"

type Given = Call<{ billing_account_id: string }>

export function billingHandlers(deps: BillingDeps): Handlers<BillingTable> {
  const { database, clock } = deps
  return {
    async getBillingAccount(call) {
      const id = call.params.billing_account_id
      if (call.query.force_refresh === "true") await refreshAccount(deps, id)
      return await viewAccount(deps, id, sectionsOf(call.query.include))
    },
    createRefill: async (call) => await refill(deps, call, call.body.amount_in_cents),
    async listRefills(call) {
      const { items, nextCursor } = await pageRefills(database, call.params.billing_account_id, call.query)
      const data = await Promise.all(items.map((purchase) => viewPurchase(database, purchase)))
      return { data, next_cursor: nextCursor }
    },
    async getRefill(call) {
      const { billing_account_id, refill_id } = call.params
      const purchase = await findPurchase(database, billing_account_id, refill_id)
      if (!purchase) throw notFound("purchase")
      return await viewPurchase(database, purchase)
    },
    async listCreditMovements(call) {
      const { billing_account_id: billingAccountId } = call.params
      const page = await pageLedger(database, { billingAccountId, kinds: "without usage" }, call.query)
      return toList(page, viewMovement)
    },
    async getSpendControls(call) {
      const account = await readAccount(database, call.params.billing_account_id)
      return await viewSpendControls(database, account, clock.nowMs())
    },
    putSpendControls: async (call) => await replaceSpendControls(deps, call, call.body),
    getUsageSpend: async (call) => {
      const { billing_account_id } = call.params
      const organizationIds = async (): Promise<string[]> =>
        await tagOwners(database, acting(call), billing_account_id)
      const query = { ...call.query, organizationIds }
      return await readUsageSpend(deps, query, { billingAccountId: billing_account_id, nowMs: clock.nowMs() })
    },
    getAutoRefill: async (call) =>
      viewAutoRefill(await readAccount(database, call.params.billing_account_id)),
    putAutoRefill: async (call) => await replaceAutoRefill(deps, call, call.body),
    createPaymentMethod: async (call) => await setUpMethod(deps, call),
    deletePaymentMethod: async (call) => await removeMethod(deps, call),
    async listInvoices(call) {
      const { items, nextCursor } = await pageInvoices(database, call.params.billing_account_id, call.query)
      const data = await Promise.all(items.map((invoice) => viewInvoice(database, invoice)))
      return { data, next_cursor: nextCursor }
    },
    getInvoice: async (call) => await viewInvoice(database, await readInvoice(database, call.params)),
    async getInvoicePdf(call) {
      const invoice = await readInvoice(database, call.params)
      return await pdfOf(call, await textOf(deps, invoice), fileName(invoice))
    },
    async getInvoiceHtml(call) {
      return pageOf(call, await textOf(deps, await readInvoice(database, call.params)))
    },
    async getReceiptPdf(call) {
      const text = await readReceipt(deps, call.params)
      return await pdfOf(call, text, `receipt-${text.number}`)
    },
    getReceiptHtml: async (call) => pageOf(call, await readReceipt(deps, call.params)),
    getBuyer: async (call) => viewBuyer(await readAccount(database, call.params.billing_account_id)),
    putBuyer: async (call) => await replaceBuyer(deps, call, call.body),
    receiveStripeEvent: async (call) => await receiveEvent(deps, "stripe", call),
  }
}

/** The account's organizations that the caller belongs to: a key to its own, a person to those they are a member of. */
async function tagOwners(
  sql: Sql,
  { principal, membership }: ReturnType<typeof acting>,
  billingAccountId: string,
): Promise<string[]> {
  if (principal.kind !== "session" || principal.userId === null) return [membership.organizationId]
  const own = await listOrganizationsOfUser(sql, principal.userId)
  return own.filter((one) => one.billingAccountId === billingAccountId).map(({ id }) => id)
}

function sectionsOf(include: string | undefined): AccountSections {
  const named = new Set((include ?? "").split(",").map((one) => one.trim()))
  const all = named.has("all")
  return { autoRefill: all || named.has("auto_refill"), spendControls: all || named.has("spend_controls") }
}

/** Written down, asked for, settled: each step survives the one after it, and a repetition takes up where it ended. */
async function refill(deps: BillingDeps, call: Given, amountCents: number) {
  const { principal, organizationId } = acting(call)
  const account = await readAccount(deps.database, call.params.billing_account_id)
  checkCanBuy(account)
  const purchase = await orderPurchase(deps, {
    account,
    amountCents,
    purpose: "refill",
    createdBy: principal.userId,
    repeatKey: repeatKeyOf(call.idempotency),
  })
  const outcome = await chargePurchase(deps, account, purchase)
  return await change(deps, call, async ({ sql, audit }) => {
    const settled = await settlePurchase(deps, sql, { id: purchase.id, outcome, auditedBy: "caller" })
    await audit(
      "billing.refill",
      { organizationId, id: purchase.id, resourceType: "credit_purchase" },
      { after: { amount_in_cents: amountCents, status: settled.status } },
    )
    return await viewPurchase(sql, settled)
  })
}

function viewMovement({ id, at, kind, amountTicks, reference, note }: LedgerRow): CreditMovement {
  // Usage is left out of the page.
  if (kind === "usage") throw new Error("Cannot show usage as a movement of credit")
  return {
    id: String(id),
    kind,
    amount_cents: centsExact(amountTicks),
    note: note ?? (reference === startingCredit ? "Starting credit" : null),
    purchase_id: kind === "purchase" || kind === "payment" ? reference : null,
    created_at: at.toISOString(),
  }
}

interface Thresholds {
  readonly prepaid_low_balance_warning_threshold_cents: number | null
  readonly usage_spend_cutoff_threshold_cents: number | null
  readonly usage_spend_warning_threshold_cents: number | null
}

async function replaceSpendControls(deps: BillingDeps, call: Given, given: Thresholds) {
  const nowMs = deps.clock.nowMs()
  return await changeAccount(deps, call, {
    action: "billing.spend_controls",
    work: async ({ sql, now }, account) => {
      const low = given.prepaid_low_balance_warning_threshold_cents
      if (low !== null && account.mode === "postpaid")
        throw new Fault(
          "conflict",
          "Cannot set a low-balance warning: the account is postpaid and has no balance",
        )
      const before = await viewSpendControls(sql, account, nowMs)
      const changed = await updateBillingAccount(
        sql,
        account.id,
        {
          lowBalanceWarningCents: toBigint(low),
          spendCutoffCents: toBigint(given.usage_spend_cutoff_threshold_cents),
          spendWarningCents: toBigint(given.usage_spend_warning_threshold_cents),
        },
        now,
      )
      // A refusal was about the threshold that was; the next request finds out about this one.
      await noteCutoff(sql, account.id, monthOf(nowMs), false)
      await syncManagedRules(sql, { billingAccountId: account.id, newId: () => deps.ids.next("ar"), now })
      return { before, after: await viewSpendControls(sql, changed ?? account, nowMs) }
    },
  })
}

interface AutoRefillGiven {
  readonly enabled: boolean
  readonly threshold_cents: number | null
  readonly recharge_to_cents: number | null
}

async function replaceAutoRefill(deps: BillingDeps, call: Given, given: AutoRefillGiven) {
  return await changeAccount(deps, call, {
    action: "billing.auto_refill",
    work: async ({ sql, now }, account) => {
      if (given.enabled && account.mode === "postpaid")
        throw new Fault("conflict", "Cannot refill by itself: the account is postpaid")
      const changed = await updateBillingAccount(
        sql,
        account.id,
        {
          autoRefillEnabled: given.enabled,
          autoRefillThresholdCents: toBigint(given.threshold_cents),
          autoRefillRechargeToCents: toBigint(given.recharge_to_cents),
        },
        now,
      )
      return { before: viewAutoRefill(account), after: viewAutoRefill(changed ?? account) }
    },
  })
}

const viewBuyer = ({ buyerName, buyerAddress, buyerTaxNumber }: BillingAccount): Buyer => ({
  name: buyerName,
  address_lines: buyerAddress?.split("\n") ?? [],
  tax_number: buyerTaxNumber,
})

async function replaceBuyer(deps: BillingDeps, call: Given, given: Buyer): Promise<Buyer> {
  return await changeAccount(deps, call, {
    action: "billing.buyer",
    work: async ({ sql, now }, account) => {
      const changes = {
        buyerName: given.name,
        buyerAddress: given.address_lines.length > 0 ? given.address_lines.join("\n") : null,
        buyerTaxNumber: given.tax_number,
      }
      const changed = await updateBillingAccount(sql, account.id, changes, now)
      return { before: viewBuyer(account), after: viewBuyer(changed ?? account) }
    },
  })
}

/** One change of the account's settings, with its entry in the audit log. */
async function changeAccount<View>(
  deps: BillingDeps,
  call: Given,
  {
    action,
    work,
  }: {
    action: string
    work: (scope: ChangeScope, account: BillingAccount) => Promise<{ before: View; after: View }>
  },
): Promise<View> {
  const { organizationId } = acting(call)
  return await change(deps, call, async (scope) => {
    const account = await lockBillingAccount(scope.sql, call.params.billing_account_id)
    if (!account) throw notFound("billing account")
    const { before, after } = await work(scope, account)
    await scope.audit(
      action,
      { organizationId, id: account.id, resourceType: "billing_account" },
      { before, after },
    )
    scope.invalidate({ table: "billing_accounts", id: account.id })
    return after
  })
}

const toBigint = (cents: number | null): bigint | null => (cents === null ? null : BigInt(cents))

async function readInvoice(
  sql: Sql,
  params: { readonly billing_account_id: string; readonly invoice_id: string },
): Promise<Invoice> {
  const invoice = await findInvoice(sql, params.billing_account_id, params.invoice_id)
  if (!invoice) throw notFound("invoice")
  return invoice
}

const textOf = async ({ database, seller }: BillingDeps, invoice: Invoice): Promise<InvoiceText> =>
  invoiceText(invoice, await listInvoiceLines(database, invoice.id), seller)

/** Of credit that was paid for: what pays an invoice is on the invoice. */
async function readReceipt(
  { database, seller }: BillingDeps,
  params: { readonly billing_account_id: string; readonly refill_id: string },
): Promise<InvoiceText> {
  const purchase = await findPurchase(database, params.billing_account_id, params.refill_id)
  if (purchase?.status !== "succeeded" || purchase.purpose === "invoice") throw notFound("receipt")
  return receiptText(purchase, await readAccount(database, params.billing_account_id), seller)
}

type Answering = Pick<Call, "header">

async function pdfOf(call: Answering, text: InvoiceText, name: string): Promise<Document> {
  call.header("content-disposition", `inline; filename="${name}.pdf"`)
  // Loaded when the first one is asked for: a server starts faster without it.
  const { invoicePdf } = await import("./invoice-pdf.ts")
  return new Document(await invoicePdf(text))
}

function pageOf(call: Answering, text: InvoiceText): Document {
  // Nothing in it runs, whatever a model is called.
  call.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
  return new Document(new TextEncoder().encode(invoiceHtml(text)))
}

const fileName = ({ number, periodStart }: Invoice): string =>
  `invoice-${String(number).padStart(4, "0")}-${periodStart.slice(0, "2026-01".length)}`

async function receiveEvent(
  deps: BillingDeps,
  providerName: string,
  call: Call<unknown, unknown, Uint8Array>,
): Promise<{ received: true }> {
  const provider = deps.providers.get(providerName)
  if (!provider?.readEvent)
    throw new Fault("invalid_signature", `Cannot take the event: ${providerName} is not configured`)
  const event = provider.readEvent(call.body, call.request.header("stripe-signature"))
  if (await hasPaymentEvent(deps.database, providerName, event.id)) return { received: true }
  await settle(deps, provider, event)
  // Only now: an event that could not be processed is sent again, and must not look like a duplicate.
  const receivedAt = new Date(deps.clock.nowMs())
  await insertPaymentEvent(deps.database, {
    provider: providerName,
    eventId: event.id,
    type: event.type,
    receivedAt,
  })
  return { received: true }
}

async function settle(deps: BillingDeps, provider: PaymentProvider, event: PaymentEvent): Promise<void> {
  if (event.purchaseId !== null) {
    const purchase = await findPurchaseById(deps.database, event.purchaseId)
    if (purchase) await reconcile(deps, purchase)
  }
  if (event.customerId === null || event.type.startsWith("payment_intent.")) return
  const account = await findAccountOfCustomer(deps.database, provider.name, event.customerId)
  if (!account) return
  await provider.settleEvent?.(event)
  await refreshPaymentMethod(deps, account)
}
