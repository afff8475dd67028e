/** The two typed-classification endpoints. */
import { DecisionsRequest, DecisionsResponse, LIMITS } from "./decisions.ts"
import { endpoint } from "./endpoint.ts"
import type { FaultCode } from "./errors.ts"
import { SystemOneRequest, SystemOneResponse } from "./systemone.ts"

const access = { principals: ["session", "key", "workload"], permission: "inference" } as const

export const classificationErrors: readonly FaultCode[] = [
  "billing_required",
  "insufficient_credits",
  "spend_limit_exceeded",
  "payment_method_required",
  "key_budget_exceeded",
  "tag_budget_exceeded",
  "model_denied",
  "region_denied",
  "model_access_required",
  "invalid_json",
  "unsupported_content_type",
  "invalid_request",
  "unknown_field",
  "unsupported_input",
  "body_too_large",
  "input_too_large",
  "input_blank",
  "too_many_questions",
  "too_many_branches",
  "question_too_large",
  "duplicate_choice",
  "unknown_model",
  "model_disabled",
  "decisions_unsupported",
  "unknown_routing_hint",
  "context_length_exceeded",
  "overloaded",
  "routing_failed",
  "inference_failed",
  "metering_unavailable",
  "invalid_worker_response",
]

export const createDecision = endpoint({
  method: "POST",
  path: "/v1/decisions",
  area: "Classification",
  surface: "classification",
  summary: "Answer a list of typed questions",
  access,
  body: DecisionsRequest,
  reads: "bytes",
  bodyBytesMax: LIMITS.bodyBytesMax,
  callSource: "decisions",
  output: DecisionsResponse,
  errors: classificationErrors,
})

export const createSystemOne = endpoint({
  method: "POST",
  path: "/v1/systemone",
  area: "Classification",
  surface: "classification",
  summary: "Answer a map of named questions",
  access,
  body: SystemOneRequest,
  reads: "bytes",
  bodyBytesMax: LIMITS.bodyBytesMax,
  callSource: "systemone",
  output: SystemOneResponse,
  errors: classificationErrors,
})
