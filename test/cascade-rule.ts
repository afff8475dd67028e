/** A cascade of two models that is never sure, and bound by nothing. */
import type { CascadeRule } from "../src/contract/platform/virtual-models.ts"

export const cascadeRule: CascadeRule = {
  models: ["first", "next"],
  thresholds: { predicate: 1, choice: 1, score: 1 },
  on_failure: "answer",
  cost_max_usd: null,
  cost_max_day_usd: null,
  latency_max_ms: null,
}
