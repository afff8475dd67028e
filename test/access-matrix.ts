/**
 * Who gets which answer on every endpoint. The expected statuses are written here by hand, from the contract's tables
 * of endpoints and accepted principals and the decisions about roles; nothing is derived from the endpoint table.
 */
import { alerts, guardrails } from "./access-matrix/alerts.ts"
import { analytics, billing } from "./access-matrix/billing.ts"
import { connectedModels, gateway, service, virtualModels } from "./access-matrix/inference.ts"
import { identity, organizations, sessions } from "./access-matrix/organizations.ts"
import { content, questionSets } from "./access-matrix/question-sets.ts"
import type { Row } from "./access-matrix/row.ts"

/** An endpoint without a row fails the matrix. */
export const accessMatrix: readonly Row[] = [
  ...organizations,
  ...sessions,
  ...identity,
  ...analytics,
  ...billing,
  ...gateway,
  ...questionSets,
  ...alerts,
  ...content,
  ...guardrails,
  ...virtualModels,
  ...connectedModels,
  ...service,
]
