/** The one table of endpoints. What is not here does not exist. */
import { analyticsTable } from "./analytics.ts"
import { billingEndpoints } from "./billing.ts"
import { createDecision, createSystemOne } from "./classification.ts"
import { identityEndpoints } from "./identity.ts"
import { inferenceEndpoints } from "./openai/endpoints.ts"
import { platformTable } from "./platform/table.ts"
import { decideQuestionSet } from "./question-sets/decide.ts"
import { getQuestionSetSchema } from "./question-sets/sets.ts"
import { getHealth, getMetrics, getOpenapi, getReadiness } from "./service.ts"

export const table = {
  createDecision,
  createSystemOne,
  ...inferenceEndpoints,
  ...platformTable,
  ...billingEndpoints,
  ...analyticsTable,
  ...identityEndpoints,
  decideQuestionSet,
  getHealth,
  getReadiness,
  getMetrics,
  getOpenapi,
  getQuestionSetSchema,
}

export type Table = typeof table
export type EndpointName = keyof Table
