/** The two typed-classification endpoints. */
import { z } from "zod"
import { DecisionsRequest, DecisionsResponse, DecisionsSetRequest, LIMITS } from "./decisions.ts"
import { inference } from "./endpoint-group.ts"
import { endpoint } from "./endpoint.ts"
import { type FaultCode, meteredErrors } from "./errors.ts"
import { SystemOneRequest, SystemOneResponse, SystemOneSetRequest } from "./systemone.ts"

export const classificationErrors: readonly FaultCode[] = [
  ...meteredErrors,
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
  "decisions_unsupported",
]

const base = {
  method: "POST",
  area: "Classification",
  surface: "classification",
  access: inference,
  reads: "bytes",
  bodyBytesMax: LIMITS.bodyBytesMax,
  errors: classificationErrors,
} as const

export const createDecision = endpoint({
  ...base,
  path: "/v1/decisions",
  summary: "Answer a list of typed questions",
  body: z.union([
    DecisionsRequest,
    DecisionsSetRequest.meta({
      id: "DecisionsSetRequest",
      description:
        "With the name of a question set as the model: all of its questions, or those that are named.",
    }),
  ]),
  callSource: "decisions",
  output: DecisionsResponse,
})

export const createSystemOne = endpoint({
  ...base,
  path: "/v1/systemone",
  summary: "Answer a map of named questions",
  body: z.union([
    SystemOneRequest,
    SystemOneSetRequest.meta({
      id: "SystemOneSetRequest",
      description:
        "With the name of a question set as the model: all of its questions, or those that are named.",
    }),
  ]),
  callSource: "systemone",
  output: SystemOneResponse,
})
