/** Payment providers, invoices, and what happens while the database is unavailable. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const BillingConfig = z.strictObject({
  outage_grace_s: whole(1, 86_400)
    .default(300)
    .describe("How long requests are still admitted while the database is unavailable."),
  recall_wait_ms: whole(0, 60_000)
    .default(250)
    .describe("How long a request that lacks credit waits for unused credit that other gateways hold."),
  provider: z
    .enum(["local", "stripe"])
    .default("local")
    .describe("Payment provider of new billing accounts; local approves test purchases."),
  stripe_secret_key: secret("The secret key at Stripe."),
  stripe_webhook_secret: secret("The signing secret of the webhook endpoint at Stripe."),
  stripe_api_url: z
    .url()
    .optional()
    .describe("Address of Stripe's API, for tests; defaults to Stripe's own."),
  seller_name: z.string().min(1).max(200).default("Umpire").describe("Seller's name on invoices."),
  seller_address: z
    .string()
    .max(1000)
    .default("")
    .describe("Seller's address on invoices; separate lines with semicolons."),
  seller_tax_number: z
    .string()
    .max(100)
    .default("")
    .describe("Seller's tax number on invoices, such as a VAT id; without it none is shown."),
  tax_name: z.string().min(1).max(50).default("VAT").describe("Name of the tax on invoices."),
  tax_percent: z.coerce
    .number()
    .min(0)
    .max(100)
    .default(0)
    .describe("The tax that prices include, shown on invoices; 0 shows no line."),
})
