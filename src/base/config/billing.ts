/** Payment providers, invoices, and what happens while the database is away. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const BillingConfig = z.strictObject({
  outage_grace_s: whole(1, 86_400)
    .default(300)
    .describe("How long requests go on while the database is away."),
  recall_wait_ms: whole(0, 10_000)
    .default(250)
    .describe("How long a request that lacks credit waits for what other gateways hold and do not use."),
  provider: z
    .enum(["local", "stripe"])
    .default("local")
    .describe("Who moves money in for new billing accounts; local approves test purchases."),
  stripe_secret_key: secret("The secret key at Stripe."),
  stripe_webhook_secret: secret("The signing secret of the webhook endpoint at Stripe."),
  stripe_api_url: z.url().optional().describe("Where Stripe's API is, when not at Stripe."),
  seller_name: z.string().min(1).max(200).default("Umpire").describe("Who sends the invoices."),
  seller_address: z
    .string()
    .max(1000)
    .default("")
    .describe("The address on invoices; lines are separated by semicolons."),
  seller_tax_number: z
    .string()
    .max(100)
    .default("")
    .describe("The seller's tax number on invoices, such as a VAT id; without it there is none."),
  tax_name: z.string().min(1).max(50).default("VAT").describe("What the tax on invoices is called."),
  tax_percent: z.coerce
    .number()
    .min(0)
    .max(100)
    .default(0)
    .describe("The tax that prices include, shown on invoices; 0 shows no line."),
})
