/** The one table of endpoints. What is not here does not exist. */
import { analyticsTable } from "./analytics.ts"
import { messageBatchEndpoints } from "./anthropic/batches.ts"
import { anthropicEndpoints } from "./anthropic/messages.ts"
import { billingEndpoints } from "./billing.ts"
import { createDecision, createSystemOne } from "./classification.ts"
import { identityEndpoints } from "./identity.ts"
import { batchEndpoints } from "./openai/batches.ts"
import { conversationEndpoints } from "./openai/conversations.ts"
import { storedChatEndpoints } from "./openai/stored-chats.ts"
import { inferenceEndpoints } from "./openai/endpoints.ts"
import { fileEndpoints } from "./openai/files.ts"
import { mcpTable } from "./mcp.ts"
import { platformTable } from "./platform/table.ts"
import { decideQuestionSet, getQuestionSetSchema } from "./question-sets/sets.ts"
import { sequenceTable } from "./sequences.ts"
import { getHealth, getMetrics, getOpenapi, getReadiness } from "./service.ts"

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
