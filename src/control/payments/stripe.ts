/** Stripe as payment provider, through its official SDK: customers, off-session payment intents, signed events. */
import Stripe from "stripe"
import { Fault } from "../../contract/errors.ts"
import type {
  ChargeOutcome,
  ChargeRequest,
  Customer,
  FindRequest,
  PaymentEvent,
  PaymentMethod,
  PaymentProvider,
} from "./provider.ts"

interface StripeSettings {
  readonly secretKey: string
  readonly webhookSecret?: string | undefined
  /** Where the API is, when not at Stripe. */
  readonly apiUrl?: string | undefined
  readonly timeoutMs?: number
}

const timeoutMsDefault = 20_000
/** With the same idempotency key, so that a lost answer does not become a second payment. */
const retriesMax = 2
/** How far around its creation a purchase is looked for among the customer's payments. */
const searchAroundMs = 600_000
const searchedMax = 100
const currency = "usd"
const secondMs = 1_000

/** The metadata of a payment intent that says which purchase it is. */
const purchaseField = "umpire_purchase_id"
const accountField = "umpire_billing_account_id"

export function createStripeProvider(settings: StripeSettings): PaymentProvider {
  const stripe = new Stripe(settings.secretKey, {
    timeout: settings.timeoutMs ?? timeoutMsDefault,
    maxNetworkRetries: retriesMax,
    telemetry: false,
    ...addressOf(settings.apiUrl),
  })
  return {
    name: "stripe",
    createCustomer: (customer) => asking(() => createCustomer(stripe, customer)),
    findPaymentMethod: (customerId) => asking(() => findPaymentMethod(stripe, customerId)),
    setUp: (customerId, returnUrl) => asking(() => setUp(stripe, customerId, returnUrl)),
    removePaymentMethod: (customerId, id) => asking(() => removePaymentMethod(stripe, customerId, id)),
    charge: (request) => charge(stripe, request),
    find: (request) => asking(() => find(stripe, request)),
    readEvent: (body, signature) => readEvent(stripe, settings.webhookSecret, { body, signature }),
    settleEvent: (event) => asking(() => keepNewMethod(stripe, event)),
  }
}

function addressOf(apiUrl: string | undefined): Stripe.StripeConfig {
  if (!apiUrl) return {}
  const { protocol, hostname, port } = new URL(apiUrl)
  const secure = protocol === "https:"
  return { protocol: secure ? "https" : "http", host: hostname, port: port || (secure ? "443" : "80") }
}

async function asking<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw new Fault(
      "payment_provider_failed",
      "Cannot ask the payment provider: it did not answer or refused",
      { cause },
    )
  }
}

async function createCustomer(stripe: Stripe, { billingAccountId, email }: Customer): Promise<string> {
  const customer = await stripe.customers.create(
    { email, metadata: { [accountField]: billingAccountId } },
    { idempotencyKey: `customer-${billingAccountId}` },
  )
  return customer.id
}

async function findPaymentMethod(stripe: Stripe, customerId: string): Promise<PaymentMethod | null> {
  const customer = await stripe.customers.retrieve(customerId, {
    expand: ["invoice_settings.default_payment_method"],
  })
  if (customer.deleted) return null
  const method = customer.invoice_settings.default_payment_method
  return method && typeof method !== "string" ? describe(method) : null
}

function describe({ id, type, card }: Stripe.PaymentMethod): PaymentMethod {
  if (!card) return { id, description: type.replaceAll("_", " ") }
  const brand = card.brand.charAt(0).toUpperCase() + card.brand.slice(1)
  return { id, description: `${brand} ending in ${card.last4}` }
}

async function setUp(stripe: Stripe, customer: string, returnUrl: string): Promise<{ readonly url: string }> {
  const session = await stripe.checkout.sessions.create({
    mode: "setup",
    currency,
    customer,
    success_url: returnUrl,
    cancel_url: returnUrl,
  })
  if (!session.url) throw new Error("Stripe made a checkout session without an address")
  return { url: session.url }
}

async function removePaymentMethod(
  stripe: Stripe,
  customerId: string,
  paymentMethodId: string,
): Promise<void> {
  const attached = await findPaymentMethod(stripe, customerId)
  if (attached?.id === paymentMethodId) await stripe.paymentMethods.detach(paymentMethodId)
}

async function charge(stripe: Stripe, request: ChargeRequest): Promise<ChargeOutcome> {
  try {
    const intent = await stripe.paymentIntents.create(
      {
        amount: request.amountCents,
        currency,
        customer: request.customerId,
        payment_method: request.paymentMethodId,
        description: request.description,
        confirm: true,
        off_session: true,
        metadata: { [purchaseField]: request.purchaseId, [accountField]: request.billingAccountId },
      },
      { idempotencyKey: request.idempotencyKey },
    )
    return outcomeOf(intent)
  } catch (error) {
    return refusalOf(error)
  }
}

/** A declined card is an error to the SDK; the intent that it left behind says what is the matter. */
function refusalOf(error: unknown): ChargeOutcome {
  if (error instanceof Stripe.errors.StripeCardError) {
    const intent = error.payment_intent
    const needsAction = error.code === "authentication_required" || intent?.status === "requires_action"
    return {
      status: needsAction ? "action_required" : "failed",
      reference: intent?.id ?? null,
      errorMessage: needsAction ? "The payment must be confirmed with the bank." : error.message,
    }
  }
  if (error instanceof Stripe.errors.StripeInvalidRequestError)
    return { status: "failed", reference: null, errorMessage: "The payment method cannot be charged." }
  return {
    status: "timed_out",
    reference: null,
    errorMessage: "The payment provider did not answer in time.",
  }
}

function outcomeOf(intent: Stripe.PaymentIntent): ChargeOutcome {
  const reference = intent.id
  const told = intent.last_payment_error?.message ?? null
  switch (intent.status) {
    case "succeeded":
      return { status: "succeeded", reference, errorMessage: null }
    case "processing":
    case "requires_capture":
      return { status: "processing", reference, errorMessage: null }
    case "requires_action":
    case "requires_confirmation":
      return {
        status: "action_required",
        reference,
        errorMessage: "The payment must be confirmed with the bank.",
      }
    case "requires_payment_method":
      return intent.last_payment_error?.code === "authentication_required"
        ? {
            status: "action_required",
            reference,
            errorMessage: "The payment must be confirmed with the bank.",
          }
        : { status: "failed", reference, errorMessage: told ?? "The payment was declined." }
    case "canceled":
      return { status: "failed", reference, errorMessage: told ?? "The payment was cancelled." }
    default:
      throw new Error(`Stripe answered a payment status that is not known: ${String(intent.status)}`)
  }
}

async function find(stripe: Stripe, request: FindRequest): Promise<ChargeOutcome | null> {
  if (request.reference) return outcomeOf(await stripe.paymentIntents.retrieve(request.reference))
  const createdMs = request.createdAt.getTime()
  const { data } = await stripe.paymentIntents.list({
    customer: request.customerId,
    limit: searchedMax,
    created: {
      gte: Math.floor((createdMs - searchAroundMs) / secondMs),
      lte: Math.ceil((createdMs + searchAroundMs) / secondMs),
    },
  })
  const intent = data.find(({ metadata }) => metadata[purchaseField] === request.purchaseId)
  return intent ? outcomeOf(intent) : null
}

function readEvent(
  stripe: Stripe,
  webhookSecret: string | undefined,
  { body, signature }: { body: Uint8Array; signature: string | null },
): PaymentEvent {
  if (!webhookSecret)
    throw new Fault("invalid_signature", "Cannot take the event: no webhook secret is configured")
  try {
    const event = stripe.webhooks.constructEvent(Buffer.from(body), signature ?? "", webhookSecret)
    return aboutOf(event)
  } catch (cause) {
    throw new Fault("invalid_signature", "Cannot take the event: its signature does not match", { cause })
  }
}

interface EventObject {
  readonly id?: string
  readonly object?: string
  readonly customer?: string | { readonly id: string } | null
  readonly metadata?: Record<string, string> | null
}

function aboutOf(event: Stripe.Event): PaymentEvent {
  // Every object that an event carries has these fields, or lacks them.
  const object = event.data.object as EventObject
  const customer = typeof object.customer === "string" ? object.customer : (object.customer?.id ?? null)
  return {
    id: event.id,
    type: event.type,
    purchaseId: object.object === "payment_intent" ? (object.metadata?.[purchaseField] ?? null) : null,
    customerId: object.object === "customer" ? (object.id ?? null) : customer,
  }
}

/** A finished setup leaves a method with the customer; the newest becomes the one that is charged. */
async function keepNewMethod(stripe: Stripe, { type, customerId }: PaymentEvent): Promise<void> {
  if (!customerId || !(type === "checkout.session.completed" || type === "setup_intent.succeeded")) return
  const { data } = await stripe.customers.listPaymentMethods(customerId, { limit: 1 })
  const [newest] = data
  if (newest)
    await stripe.customers.update(customerId, { invoice_settings: { default_payment_method: newest.id } })
}
