/** Billing accounts over HTTP: what they hold and spend, their limits, refills and invoices. */
import { z } from "zod"
import { bodyText, recordOf } from "./check.ts"
import { Document, namedObject } from "./endpoint.ts"
import { anyone, apiAdmin, endpointGroup, everyPrincipal } from "./endpoint-group.ts"
import { Datetime, Text, nameCharactersMax } from "./platform/field-schemas.ts"
import { tagKeyForm } from "./tags.ts"

const read = { principals: everyPrincipal, permission: "api-read" } as const
const pay = { ...apiAdmin, alsoRoles: ["billing"] } as const
const administer = { ...pay, principals: everyPrincipal } as const

export const refillCentsMin = 1_000
export const refillCentsMax = 50_000

const cents = z.int()
/** Anything more could not be held exactly by a double. */
export const thresholdCentsMax = 1_000_000_000_000
const threshold = z.int().positive().max(thresholdCentsMax).nullable()

const SpendControlAlert = z.object({ threshold_cents: cents }).meta({ id: "SpendControlAlert" })

export const SpendControls = namedObject("SpendControls", {
  billing_account_id: z.string(),
  prepaid_low_balance_warning: SpendControlAlert.nullable().describe("Null when disabled."),
  usage_spend_cutoff: z
    .object({ threshold_cents: cents, local_state: z.enum(["ok", "blocked"]) })
    .meta({ id: "UsageSpendCutoffControl" })
    .nullable()
    .describe("Null when disabled."),
  usage_spend_warning: SpendControlAlert.nullable().describe("Null when disabled."),
})
export type SpendControls = z.infer<typeof SpendControls>

export const AutoRefill = namedObject("PrepaidAutoRefillSummary", {
  enabled: z.boolean(),
  threshold_cents: cents.nullable().describe("A balance of this or less triggers a refill."),
  recharge_to_cents: cents
    .nullable()
    .describe("Target balance after a refill; a purchase is 1,000 to 50,000 cents, so it may be exceeded."),
})
export type AutoRefill = z.infer<typeof AutoRefill>

const entitlementStates = [
  "disabled",
  "enabled",
  "provisioning_failed",
  "payment_required",
  "payment_failed",
  "action_required",
] as const
export type EntitlementState = (typeof entitlementStates)[number]

/** As many as fit beside the seller's on a page. */
export const addressLinesMax = 6

export const Buyer = namedObject("Buyer", {
  name: Text(nameCharactersMax).nullable().describe("Of the person or company that pays."),
  address_lines: z.array(Text(nameCharactersMax)).max(addressLinesMax),
  tax_number: Text(64).nullable(),
})
export type Buyer = z.infer<typeof Buyer>

export const BillingAccount = namedObject("BillingAccount", {
  id: z.string(),
  billing_email: z.string(),
  billing_mode: z.enum(["prepaid", "postpaid"]),
  created_at: Datetime,
  updated_at: Datetime,
  credit_balance_cents: cents.describe(
    "Prepaid balance in whole cents, rounded down; also while the account is postpaid.",
  ),
  has_default_payment_method: z.boolean(),
  payment_method_required: z.boolean(),
  payment_method_description: z.string().nullable(),
  prepaid_entitlement_state: z.enum(entitlementStates),
  balance_checked_at: Datetime.nullable(),
  auto_refill: AutoRefill.nullable().optional().describe("Only when asked for."),
  spend_controls: SpendControls.nullable().optional().describe("Only when asked for."),
})
export type BillingAccount = z.infer<typeof BillingAccount>

const sections = ["auto_refill", "spend_controls", "all"] as const
const sectionsCharactersMax = 256

const purchaseStatuses = ["processing", "succeeded", "failed", "action_required", "timed_out"] as const

export const CreditPurchase = namedObject("CreditPurchase", {
  id: z.string(),
  billing_account_id: z.string(),
  status: z.enum(purchaseStatuses),
  amount_in_cents: cents.nullable(),
  created_at: Datetime,
  updated_at: Datetime,
  created_by_user: z
    .object({ id: z.string(), email: z.string(), name: z.string().nullable() })
    .meta({ id: "CreditPurchaseUser" })
    .nullable()
    .describe("Null for system purchases."),
  error_message: z.string().nullable(),
})
export type CreditPurchase = z.infer<typeof CreditPurchase>

export const CreditMovement = namedObject("CreditMovement", {
  id: z.string(),
  kind: z.enum(["credit", "purchase", "adjustment", "payment"]),
  amount_cents: z.number().describe("Positive adds to the balance."),
  note: z.string().nullable().describe("Why, where someone said."),
  purchase_id: z.string().nullable().describe("The purchase that it comes of."),
  created_at: Datetime,
})
export type CreditMovement = z.infer<typeof CreditMovement>

export const usageSpendRanges = ["30d", "90d", "ytd"] as const

export const UsageSpend = namedObject("UsageSpend", {
  bucket_ms: z.int(),
  buckets: z.array(
    z
      .object({
        date: z.iso.date(),
        t0: z.int().describe("Unix milliseconds, inclusive."),
        t1: z.int().describe("Unix milliseconds, exclusive."),
        total_cents: z.number(),
        model_totals_cents: z.record(z.string(), z.number()),
        tag_totals_cents: z
          .record(z.string(), z.number())
          .optional()
          .describe('By value of the tag that was asked for; "" for requests without it.'),
      })
      .meta({ id: "UsageSpendBucket" }),
  ),
  models: z.array(z.object({ model: z.string(), total_cents: z.number() })),
  tags: z
    .array(z.object({ value: z.string(), total_cents: z.number() }))
    .optional()
    .describe("By value of the tag that was asked for, as far back as requests are kept."),
  range_start: Datetime.describe("Inclusive."),
  range_end: Datetime.describe("Exclusive."),
})
export type UsageSpend = z.infer<typeof UsageSpend>

const PaymentMethodSetup = namedObject("PaymentMethodSetup", {
  setup_url: z.url().nullable().describe("Where to enter a payment method; null when one is there now."),
  payment_method_description: z.string().nullable(),
})

const InvoiceLine = namedObject("InvoiceLine", {
  model: z.string(),
  requests: z.int(),
  input_tokens: z.int(),
  cached_input_tokens: z.int(),
  output_tokens: z.int(),
  amount_cents: z.number(),
})

export const Invoice = namedObject("Invoice", {
  id: z.string(),
  billing_account_id: z.string(),
  number: z.int().describe("From 1, without gaps, per account."),
  billing_mode: z.enum(["prepaid", "postpaid"]),
  status: z.enum(["paid", "open", "payment_failed"]),
  period_start: z.iso.date(),
  period_end: z.iso.date().describe("Exclusive."),
  usage_cents: z.number(),
  credits_cents: z.number().describe("Credits, purchases and adjustments of the period."),
  amount_due_cents: cents,
  lines: z.array(InvoiceLine),
  issued_at: Datetime,
  paid_at: Datetime.nullable(),
})
export type Invoice = z.infer<typeof Invoice>

const webhookBytesMax = 1024 * 1024
const eventKeysMax = 256

const account = endpointGroup("/v1/billing_accounts/{billing_account_id}", {
  area: "Billing",
  write: pay,
})
const asPdf = { output: z.instanceof(Document), produces: "application/pdf" }
const asPage = { output: z.instanceof(Document), produces: "text/html; charset=utf-8" }
const webhooks = endpointGroup("/v1/webhooks", { area: "Billing", write: apiAdmin })

export const billingEndpoints = {
  getBillingAccount: account.get({
    summary: "Read a billing account",
    query: z.object({
      force_refresh: z.enum(["true", "false"]).default("false").meta({
        type: "boolean",
        enum: undefined,
        default: false,
        description: "Ask the payment provider before answering.",
      }),
      include: z
        .string()
        .max(sectionsCharactersMax)
        .optional()
        .refine(
          (list) =>
            list === undefined ||
            list.split(",").every((one) => sections.some((known) => known === one.trim())),
          { error: "a comma-separated list of auto_refill, spend_controls or all is needed" },
        )
        .describe("Comma-separated sections: `auto_refill`, `spend_controls`, or `all`."),
    }),
    output: BillingAccount,
    errors: ["payment_provider_failed"],
  }),
  createRefill: account.at("/refill").post({
    summary: "Buy credit with the default payment method",
    body: z.strictObject({ amount_in_cents: z.int().min(refillCentsMin).max(refillCentsMax) }),
    output: CreditPurchase,
    errors: ["conflict"],
  }),
  listRefills: account
    .at("/refills")
    .list({ summary: "List credit purchases; newest first", of: CreditPurchase, cursor: "cp" }),
  getRefill: account
    .at("/refills/{refill_id}")
    .get({ summary: "Read a credit purchase", access: read, output: CreditPurchase }),
  getReceiptPdf: account.at("/refills/{refill_id}/receipt.pdf").get({
    summary: "Read the receipt of a credit purchase that succeeded, as PDF",
    ...asPdf,
  }),
  getReceiptHtml: account.at("/refills/{refill_id}/receipt.html").get({
    summary: "Read the receipt of a credit purchase that succeeded, as a page",
    ...asPage,
  }),
  listCreditMovements: account.at("/credit_movements").list({
    summary: "List what moved the balance other than usage; newest first",
    of: CreditMovement,
    cursor: /^[0-9]{1,18}$/,
  }),
  getSpendControls: account.at("/spend_controls").get({
    summary: "Read the spend controls; the warnings and the cutoff",
    access: read,
    output: SpendControls,
  }),
  putSpendControls: account.at("/spend_controls").put({
    summary: "Replace the spend controls; the warnings and the cutoff",
    access: administer,
    body: z
      .strictObject({
        prepaid_low_balance_warning_threshold_cents: threshold,
        usage_spend_cutoff_threshold_cents: threshold,
        usage_spend_warning_threshold_cents: threshold,
      })
      .refine(
        ({ usage_spend_cutoff_threshold_cents: cutoff, usage_spend_warning_threshold_cents: warning }) =>
          cutoff === null || warning === null || warning < cutoff,
        { error: "must be lower than the cutoff", path: ["usage_spend_warning_threshold_cents"] },
      ),
    output: SpendControls,
    errors: ["conflict"],
  }),
  getUsageSpend: account.at("/usage_spend").get({
    summary: "Read spend per day and model, and per value of a tag",
    access: read,
    query: z.object({
      range: z.enum(usageSpendRanges).default("30d"),
      tag: z
        .string()
        .regex(tagKeyForm)
        .optional()
        .describe("A tag's key: spend is also given by its values."),
    }),
    output: UsageSpend,
    errors: ["analytics_not_configured"],
  }),
  getAutoRefill: account.at("/auto_refill").get({ summary: "Read the automatic refill", output: AutoRefill }),
  putAutoRefill: account.at("/auto_refill").put({
    summary: "Replace the automatic refill",
    body: z
      .strictObject({
        enabled: z.boolean(),
        threshold_cents: z.int().min(0).max(thresholdCentsMax).nullable(),
        recharge_to_cents: z.int().positive().max(thresholdCentsMax).nullable(),
      })
      .refine(
        ({ enabled, threshold_cents, recharge_to_cents }) =>
          !enabled || (threshold_cents !== null && recharge_to_cents !== null),
        { error: "threshold_cents and recharge_to_cents are needed to enable it", path: ["enabled"] },
      )
      .refine(
        ({ threshold_cents, recharge_to_cents }) =>
          threshold_cents === null || recharge_to_cents === null || recharge_to_cents > threshold_cents,
        { error: "must be higher than the threshold", path: ["recharge_to_cents"] },
      )
      .refine(
        ({ threshold_cents, recharge_to_cents }) =>
          threshold_cents === null ||
          recharge_to_cents === null ||
          recharge_to_cents - threshold_cents <= refillCentsMax,
        {
          error: `cannot be reached: one purchase is at most ${refillCentsMax} cents above the threshold`,
          path: ["recharge_to_cents"],
        },
      ),
    output: AutoRefill,
    errors: ["conflict"],
  }),
  getBuyer: account.at("/buyer").get({
    summary: "Read who buys, as invoices and receipts name them",
    output: Buyer,
  }),
  putBuyer: account.at("/buyer").put({
    summary: "Replace who buys; invoices that were issued stay as they are",
    body: z.strictObject(Buyer.shape),
    output: Buyer,
  }),
  createPaymentMethod: account.at("/payment_method").post({
    summary: "Set up the default payment method",
    output: PaymentMethodSetup,
    errors: ["conflict", "payment_provider_failed"],
  }),
  deletePaymentMethod: account.at("/payment_method").remove({
    summary: "Remove the default payment method; automatic refills end with it",
    errors: ["payment_provider_failed"],
  }),
  listInvoices: account
    .at("/invoices")
    .list({ summary: "List invoices; newest first", of: Invoice, cursor: "iv" }),
  getInvoice: account.at("/invoices/{invoice_id}").get({ summary: "Read an invoice", output: Invoice }),
  getInvoicePdf: account.at("/invoices/{invoice_id}.pdf").get({
    summary: "Read an invoice as PDF",
    ...asPdf,
  }),
  getInvoiceHtml: account.at("/invoices/{invoice_id}.html").get({
    summary: "Read an invoice as a page",
    ...asPage,
  }),
  /** Open to anyone: the signature over the body says who sent it. */
  receiveStripeEvent: webhooks.at("/stripe").post({
    summary: "Receive events of the payment provider Stripe",
    access: anyone,
    body: recordOf(bodyText(), z.unknown(), eventKeysMax),
    reads: "bytes",
    bodyBytesMax: webhookBytesMax,
    output: z.object({ received: z.literal(true) }),
    wrap: "none",
    errors: ["invalid_signature", "payment_provider_failed"],
  }),
}
export type BillingTable = typeof billingEndpoints
