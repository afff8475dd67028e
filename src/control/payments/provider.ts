/**
 * The payment provider port: it moves money in and keeps payment methods; the ledger is ours. And the embedded provider, which
 * needs no other.
 */

export interface Customer {
  readonly billingAccountId: string
  readonly email: string
}

export interface PaymentMethod {
  readonly id: string
  /** For people: the brand and the last digits. */
  readonly description: string
}

export interface ChargeRequest {
  readonly purchaseId: string
  readonly billingAccountId: string
  readonly customerId: string
  readonly paymentMethodId: string
  readonly amountCents: number
  readonly description: string
  /** An automatic purchase, not one that a user ordered. */
  readonly automatic: boolean
  /** The same key is the same purchase, however often it is asked for. */
  readonly idempotencyKey: string
}

export interface ChargeOutcome {
  /** `timed_out`: the provider did not answer, so the outcome is unknown; it is asked again later. */
  readonly status: "processing" | "succeeded" | "failed" | "action_required" | "timed_out"
  /** What the provider calls the payment; null when it did not say. */
  readonly reference: string | null
  /** Safe to show. */
  readonly errorMessage: string | null
}

export interface FindRequest {
  readonly purchaseId: string
  readonly customerId: string
  readonly reference: string | null
  readonly amountCents: number
  readonly automatic: boolean
  readonly createdAt: Date
}

/** What an event of a provider is about; nothing in it is believed but that, and the provider is asked. */
export interface PaymentEvent {
  readonly id: string
  readonly type: string
  readonly purchaseId: string | null
  readonly customerId: string | null
}

/** Every method but `charge` throws Fault `payment_provider_failed` when the provider does not answer. */
export interface PaymentProvider {
  readonly name: string
  /** Idempotent: the same account is the same customer. */
  createCustomer(customer: Customer): Promise<string>
  /** The default payment method; null when there is none, or the provider no longer knows the customer. `known` is ours. */
  findPaymentMethod(customerId: string, known: PaymentMethod | null): Promise<PaymentMethod | null>
  /** Where to enter a payment method, or the method where none needs to be entered. */
  setUp(customerId: string, returnUrl: string): Promise<{ readonly url: string } | PaymentMethod>
  removePaymentMethod(customerId: string, paymentMethodId: string): Promise<void>
  charge(request: ChargeRequest): Promise<ChargeOutcome>
  /** What became of a purchase; null when the provider has never heard of it. */
  find(request: FindRequest): Promise<ChargeOutcome | null>
  /** Checks the signature (Fault `invalid_signature`). */
  readEvent?(body: Uint8Array, signature: string | null): PaymentEvent
  /** What an event asks for beside looking at its purchase, such as keeping a new payment method. */
  settleEvent?(event: PaymentEvent): Promise<void>
}

/** The last two digits of the amount decide, unless it was worked out by the installation. */
const failing = 2
const needingAction = 3
const timingOut = 4
/** Under way until it is asked about again. */
const slow = 5

const testCard = { id: "local_test_card", description: "Test card ending in 4242" }

/** Approves everything, except ordered amounts that stand for the other outcomes. */
export function createLocalProvider(): PaymentProvider {
  return {
    name: "local",
    createCustomer: async ({ billingAccountId }) => `local_${billingAccountId}`,
    // Whether there is a test card is kept with the account itself.
    findPaymentMethod: async (_customerId, known) => known,
    setUp: async () => testCard,
    removePaymentMethod: async () => undefined,
    charge: async (request) => decide(request, "processing"),
    // A payment that timed out never reached the provider, so it has not heard of it.
    find: async (request) => (isTimingOut(request) ? null : decide(request, "succeeded")),
  }
}

type LocalPayment = Pick<FindRequest, "amountCents" | "purchaseId" | "automatic">

const outcomeDigits = ({ amountCents, automatic }: LocalPayment): number =>
  automatic ? 0 : amountCents % 100

const isTimingOut = (payment: LocalPayment): boolean => outcomeDigits(payment) === timingOut

function decide(payment: LocalPayment, slowStatus: "processing" | "succeeded"): ChargeOutcome {
  const reference = `local_${payment.purchaseId}`
  switch (outcomeDigits(payment)) {
    case failing:
      return { status: "failed", reference, errorMessage: "The test card was declined." }
    case needingAction:
      return { status: "action_required", reference, errorMessage: "The test card needs to be confirmed." }
    case timingOut:
      return {
        status: "timed_out",
        reference: null,
        errorMessage: "The payment provider did not answer in time.",
      }
    case slow:
      return { status: slowStatus, reference, errorMessage: null }
    default:
      return { status: "succeeded", reference, errorMessage: null }
  }
}
