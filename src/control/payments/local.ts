/** The embedded payment provider: approves everything, except ordered amounts that stand for the other outcomes. */
import type { ChargeOutcome, FindRequest, PaymentProvider } from "./provider.ts"

/** The last two digits of the amount decide, unless it was worked out by the installation. */
const failing = 2
const needingAction = 3
const timingOut = 4
/** Under way until it is asked about again. */
const slow = 5

const testCard = { id: "local_test_card", description: "Test card ending in 4242" }

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
