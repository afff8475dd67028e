/** Whether an organization may use a model now: one rule, for the catalog it sees and for inference. */
import type { ModelStatus } from "../contract/platform/models.ts"
import type { ModelAccess } from "../store/model-access.ts"

/** What keeps the billing account from paying; null when nothing does. */
export type BillingStatus = Extract<
  ModelStatus,
  "billing_setup_failed" | "payment_method_required" | "prepaid_credits_required" | "spend_limit_exceeded"
> | null

export interface ModelSituation {
  readonly enabled: boolean
  readonly public: boolean
  /** Null when the organization never asked and was never told. */
  readonly access: ModelAccess["state"] | null
  readonly billing: BillingStatus
}

/** The first that applies: switched off, then access, then money. */
export function modelStatus(situation: ModelSituation): ModelStatus {
  if (!situation.enabled) return "disabled"
  if (!situation.public && situation.access === "pending") return "access_pending"
  if (!situation.public && situation.access !== "grant") return "access_required"
  return situation.billing ?? "active"
}
