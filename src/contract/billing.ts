/** Billing accounts over HTTP: what they hold and spend, their limits, refills and invoices. */
import { z } from "zod"
import { Document, endpoint } from "./endpoint.ts"
import { Datetime, PathId, idForm, pageOf, pageQuery } from "./platform/values.ts"
import { tagKeyForm } from "./tags.ts"

const area = "Billing"
const surface = "platform"
const everyone = ["session", "key", "workload"] as const
const withoutWorkloads = ["session", "key"] as const
const read = { principals: everyone, permission: "api-read" } as const
const administer = { principals: everyone, permission: "api-admin" } as const
const readPlain = { principals: withoutWorkloads, permission: "api-read" } as const
const administerPlain = { principals: withoutWorkloads, permission: "api-admin" } as const

export const refillCentsMin = 1_000
export const refillCentsMax = 50_000

const AccountPath = z.object({ billing_account_id: PathId })
const cents = z.int()
/** Anything more could not be held exactly by a double. */
const thresholdCentsMax = 1_000_000_000_000
const threshold = z.int().positive().max(thresholdCentsMax).nullable()

const SpendControlAlert = z.object({ threshold_cents: cents }).meta({ id: "SpendControlAlert" })

export const SpendControls = z
  .object({
    billing_account_id: z.string(),
    prepaid_low_balance_warning: SpendControlAlert.nullable().describe("Null when disabled."),
    usage_spend_cutoff: z
      .object({ threshold_cents: cents, local_state: z.enum(["ok", "blocked"]) })
      .meta({ id: "UsageSpendCutoffControl" })
      .nullable()
      .describe("Null when disabled."),
    usage_spend_warning: SpendControlAlert.nullable().describe("Null when disabled."),
  })
  .meta({ id: "SpendControls" })
export type SpendControls = z.infer<typeof SpendControls>

export const AutoRefill = z
  .object({
    enabled: z.boolean(),
    threshold_cents: cents.nullable().describe("A balance of this or less triggers a refill."),
    recharge_to_cents: cents
      .nullable()
      .describe("Target balance after a refill; a purchase is 1,000 to 50,000 cents, so it may be exceeded."),
  })
  .meta({ id: "PrepaidAutoRefillSummary" })
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

export const BillingAccount = z
  .object({
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
  .meta({ id: "BillingAccount" })
export type BillingAccount = z.infer<typeof BillingAccount>

const sections = ["auto_refill", "spend_controls", "all"] as const

const getBillingAccount = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}",
  area,
  surface,
  summary: "Read a billing account",
  access: readPlain,
  params: AccountPath,
  query: z.object({
    force_refresh: z.enum(["true", "false"]).default("false").meta({
      type: "boolean",
      enum: undefined,
      default: false,
      description: "Ask the payment provider before answering.",
    }),
    include: z
      .string()
      .optional()
      .refine(
        (list) =>
          list === undefined || list.split(",").every((one) => sections.includes(one.trim() as never)),
        {
          error: "a comma-separated list of auto_refill, spend_controls or all is needed",
        },
      )
      .describe("Comma-separated sections: `auto_refill`, `spend_controls`, or `all`."),
  }),
  output: BillingAccount,
  errors: ["payment_provider_failed"],
})

const purchaseStatuses = ["processing", "succeeded", "failed", "action_required", "timed_out"] as const

export const CreditPurchase = z
  .object({
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
  .meta({ id: "CreditPurchase" })
export type CreditPurchase = z.infer<typeof CreditPurchase>

const createRefill = endpoint({
  method: "POST",
  path: "/v1/billing_accounts/{billing_account_id}/refill",
  area,
  surface,
  summary: "Buy credit with the default payment method",
  access: administerPlain,
  params: AccountPath,
  body: z.strictObject({ amount_in_cents: z.int().min(refillCentsMin).max(refillCentsMax) }),
  output: CreditPurchase,
  errors: ["conflict"],
})

const listRefills = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/refills",
  area,
  surface,
  summary: "List credit purchases; newest first",
  access: readPlain,
  params: AccountPath,
  query: pageQuery(idForm("cp")),
  output: pageOf(CreditPurchase),
  wrap: "none",
})

const getRefill = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/refills/{refill_id}",
  area,
  surface,
  summary: "Read a credit purchase",
  access: read,
  params: z.object({ billing_account_id: PathId, refill_id: PathId }),
  output: CreditPurchase,
})

const getSpendControls = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/spend_controls",
  area,
  surface,
  summary: "Read the spend controls; the warnings and the cutoff",
  access: read,
  params: AccountPath,
  output: SpendControls,
})

const putSpendControls = endpoint({
  method: "PUT",
  path: "/v1/billing_accounts/{billing_account_id}/spend_controls",
  area,
  surface,
  summary: "Replace the spend controls; the warnings and the cutoff",
  access: administer,
  params: AccountPath,
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
})

export const usageSpendRanges = ["30d", "90d", "ytd"] as const

export const UsageSpend = z
  .object({
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
  .meta({ id: "UsageSpend" })
export type UsageSpend = z.infer<typeof UsageSpend>

const getUsageSpend = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/usage_spend",
  area,
  surface,
  summary: "Read spend per day and model, and per value of a tag",
  access: read,
  params: AccountPath,
  query: z.object({
    range: z.enum(usageSpendRanges).default("30d"),
    tag: z.string().regex(tagKeyForm).optional().describe("A tag's key: spend is also given by its values."),
  }),
  output: UsageSpend,
  errors: ["analytics_not_configured"],
})

const getAutoRefill = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/auto_refill",
  area,
  surface,
  summary: "Read the automatic refill",
  access: readPlain,
  params: AccountPath,
  output: AutoRefill,
})

const putAutoRefill = endpoint({
  method: "PUT",
  path: "/v1/billing_accounts/{billing_account_id}/auto_refill",
  area,
  surface,
  summary: "Replace the automatic refill",
  access: administerPlain,
  params: AccountPath,
  body: z
    .strictObject({
      enabled: z.boolean(),
      threshold_cents: z.int().min(0).max(thresholdCentsMax).nullable(),
      recharge_to_cents: z.int().positive().max(thresholdCentsMax).nullable(),
    })
    .refine(
      ({ enabled, threshold_cents, recharge_to_cents }) =>
        !enabled || (threshold_cents !== null && recharge_to_cents !== null),
      {
        error: "threshold_cents and recharge_to_cents are needed to enable it",
        path: ["enabled"],
      },
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
})

const PaymentMethodSetup = z
  .object({
    setup_url: z.url().nullable().describe("Where to enter a payment method; null when one is there now."),
    payment_method_description: z.string().nullable(),
  })
  .meta({ id: "PaymentMethodSetup" })

const createPaymentMethod = endpoint({
  method: "POST",
  path: "/v1/billing_accounts/{billing_account_id}/payment_method",
  area,
  surface,
  summary: "Set up the default payment method",
  access: administerPlain,
  params: AccountPath,
  output: PaymentMethodSetup,
  errors: ["conflict", "payment_provider_failed"],
})

const deletePaymentMethod = endpoint({
  method: "DELETE",
  path: "/v1/billing_accounts/{billing_account_id}/payment_method",
  area,
  surface,
  summary: "Remove the default payment method",
  access: administerPlain,
  params: AccountPath,
  output: z.undefined(),
  status: 204,
  errors: ["payment_provider_failed"],
})

export const InvoiceLine = z
  .object({
    model: z.string(),
    requests: z.int(),
    input_tokens: z.int(),
    cached_input_tokens: z.int(),
    output_tokens: z.int(),
    amount_cents: z.number(),
  })
  .meta({ id: "InvoiceLine" })

export const Invoice = z
  .object({
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
  .meta({ id: "Invoice" })
export type Invoice = z.infer<typeof Invoice>

const InvoicePath = z.object({ billing_account_id: PathId, invoice_id: PathId })

const listInvoices = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/invoices",
  area,
  surface,
  summary: "List invoices; newest first",
  access: readPlain,
  params: AccountPath,
  query: pageQuery(idForm("iv")),
  output: pageOf(Invoice),
  wrap: "none",
})

const getInvoice = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/invoices/{invoice_id}",
  area,
  surface,
  summary: "Read an invoice",
  access: readPlain,
  params: InvoicePath,
  output: Invoice,
})

const getInvoicePdf = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/invoices/{invoice_id}.pdf",
  area,
  surface,
  summary: "Read an invoice as PDF",
  access: readPlain,
  params: InvoicePath,
  output: z.instanceof(Document),
  wrap: "none",
  produces: "application/pdf",
})

const getInvoiceHtml = endpoint({
  method: "GET",
  path: "/v1/billing_accounts/{billing_account_id}/invoices/{invoice_id}.html",
  area,
  surface,
  summary: "Read an invoice as a page",
  access: readPlain,
  params: InvoicePath,
  output: z.instanceof(Document),
  wrap: "none",
  produces: "text/html; charset=utf-8",
})

const webhookBytesMax = 1024 * 1024

/** Open to anyone: the signature over the body says who sent it. */
const receiveStripeEvent = endpoint({
  method: "POST",
  path: "/v1/webhooks/stripe",
  area,
  surface,
  summary: "Receive events of the payment provider Stripe",
  access: { principals: [] },
  body: z.record(z.string(), z.unknown()),
  reads: "bytes",
  bodyBytesMax: webhookBytesMax,
  output: z.object({ received: z.literal(true) }),
  wrap: "none",
  errors: ["invalid_signature", "payment_provider_failed"],
})

export const billingEndpoints = {
  getBillingAccount,
  createRefill,
  listRefills,
  getRefill,
  getSpendControls,
  putSpendControls,
  getUsageSpend,
  getAutoRefill,
  putAutoRefill,
  createPaymentMethod,
  deletePaymentMethod,
  listInvoices,
  getInvoice,
  getInvoicePdf,
  getInvoiceHtml,
  receiveStripeEvent,
}
export type BillingTable = typeof billingEndpoints
