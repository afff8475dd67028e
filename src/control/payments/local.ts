/** The embedded payment provider: approves everything, except amounts that stand for the other outcomes. */
import type { ChargeOutcome, PaymentProvider } from "./provider.ts"

/** The last two digits of the amount decide. */
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
    charge: async ({ amountCents, purchaseId }) => decide(amountCents, purchaseId, "processing"),
    find: async ({ amountCents, purchaseId }) => decide(amountCents, purchaseId, "succeeded"),
  }
}

function decide(
  amountCents: number,
  purchaseId: string,
  slowStatus: "processing" | "succeeded",
): ChargeOutcome {
  const reference = `local_${purchaseId}`
  switch (amountCents % 100) {
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
