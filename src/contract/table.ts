/** The one table of endpoints. What is not here does not exist. */
import { alertRuleTable } from "./alerts/rules.ts"
import { webhookTable } from "./alerts/webhooks.ts"
import { analyticsTable } from "./analytics.ts"
import { messageBatchEndpoints } from "./anthropic/batches.ts"
import { anthropicEndpoints } from "./anthropic/messages.ts"
import { billingEndpoints } from "./billing.ts"
import { createDecision, createSystemOne } from "./classification.ts"
import { contentTable } from "./content.ts"
import { guardrailTable } from "./guardrails/guardrails.ts"
import { identityEndpoints } from "./identity.ts"
import { mcpTable } from "./mcp.ts"
import { batchEndpoints } from "./openai/batches.ts"
import { conversationEndpoints } from "./openai/conversations.ts"
import { inferenceEndpoints } from "./openai/endpoints.ts"
import { fileEndpoints } from "./openai/files.ts"
import { storedChatEndpoints } from "./openai/stored-chats.ts"
import { auditLogTable } from "./platform/audit-log.ts"
import { connectedModelTable } from "./platform/connected-models.ts"
import { keyTable } from "./platform/keys.ts"
import { invitationTable, memberTable } from "./platform/members.ts"
import { modelTable } from "./platform/models.ts"
import { organizationTable } from "./platform/organizations.ts"
import { passkeyTable } from "./platform/passkeys.ts"
import { routingPolicyTable } from "./platform/routing-policy.ts"
import { secondFactorTable } from "./platform/second-factor.ts"
import { sessionListTable, sessionTable } from "./platform/sessions.ts"
import { tagBudgetTable } from "./platform/tag-budgets.ts"
import { virtualModelTable } from "./platform/virtual-models.ts"
import { exampleTable } from "./question-sets/examples.ts"
import { jobTable } from "./question-sets/jobs.ts"
import { monitoringTable } from "./question-sets/monitoring.ts"
import { reviewTable } from "./question-sets/review.ts"
import { decideQuestionSet, getQuestionSetSchema, setTable } from "./question-sets/sets.ts"
import { sequenceTable } from "./sequences.ts"
import { getHealth, getMetrics, getOpenapi, getReadiness } from "./service.ts"

/** The Platform endpoints other than money, analytics and identity providers. */
export const platformTable = {
  ...organizationTable,
  ...memberTable,
  ...invitationTable,
  ...modelTable,
  ...routingPolicyTable,
  ...keyTable,
  ...auditLogTable,
  ...sessionTable,
  ...sessionListTable,
  ...secondFactorTable,
  ...passkeyTable,
  ...tagBudgetTable,
  ...setTable,
  ...exampleTable,
  ...jobTable,
  ...monitoringTable,
  ...reviewTable,
  ...alertRuleTable,
  ...webhookTable,
  ...contentTable,
  ...guardrailTable,
  ...virtualModelTable,
  ...connectedModelTable,
}
export type PlatformTable = typeof platformTable

export const table = {
  createDecision,
  createSystemOne,
  ...inferenceEndpoints,
  ...conversationEndpoints,
  ...storedChatEndpoints,
  ...fileEndpoints,
  ...batchEndpoints,
  ...anthropicEndpoints,
  ...messageBatchEndpoints,
  ...platformTable,
  ...billingEndpoints,
  ...analyticsTable,
  ...sequenceTable,
  ...identityEndpoints,
  decideQuestionSet,
  ...mcpTable,
  getHealth,
  getReadiness,
  getMetrics,
  getOpenapi,
  getQuestionSetSchema,
}

export type Table = typeof table
export type EndpointName = keyof Table
