/** The Platform endpoints other than money, analytics and identity providers. */
import { virtualModelTable } from "./virtual-models.ts"
import { guardrailTable } from "../guardrails/guardrails.ts"
import { alertTable } from "../alerts/table.ts"
import { exportAuditLog, listAuditLog, listAuditLogFilters } from "./audit-log.ts"
import { createApiKey, deleteApiKey, listApiKeys, rotateApiKey, updateApiKey } from "./keys.ts"
import {
  acceptInvitation,
  createInvitation,
  describeInvitation,
  listInvitations,
  listMembers,
  removeMember,
  resendInvitation,
  revokeInvitation,
  updateMember,
} from "./members.ts"
import { listModelAccessRequests, listOrganizationModels, requestModelAccess } from "./models.ts"
import {
  createOrganization,
  getOrganization,
  getOrganizationResources,
  listOrganizations,
  updateOrganization,
} from "./organizations.ts"
import { getRoutingPolicy, putRoutingPolicy } from "./routing-policy.ts"
import {
  createSession,
  deleteSession,
  finishSingleSignOn,
  getSession,
  setPassword,
  getSignInOptions,
  startSingleSignOn,
  updateSessionUser,
} from "./sessions.ts"
import { sessionListTable } from "./session-list.ts"
import { tagBudgetTable } from "./tag-budgets.ts"
import { contentTable } from "../content.ts"
import { questionSetTable } from "../question-sets/table.ts"

export const platformTable = {
  listOrganizations,
  createOrganization,
  getOrganization,
  updateOrganization,
  getOrganizationResources,
  listMembers,
  updateMember,
  removeMember,
  listInvitations,
  createInvitation,
  revokeInvitation,
  resendInvitation,
  describeInvitation,
  acceptInvitation,
  listOrganizationModels,
  listModelAccessRequests,
  requestModelAccess,
  getRoutingPolicy,
  putRoutingPolicy,
  listApiKeys,
  createApiKey,
  updateApiKey,
  rotateApiKey,
  deleteApiKey,
  listAuditLog,
  listAuditLogFilters,
  exportAuditLog,
  createSession,
  getSession,
  deleteSession,
  updateSessionUser,
  setPassword,
  getSignInOptions,
  startSingleSignOn,
  finishSingleSignOn,
  ...sessionListTable,
  ...tagBudgetTable,
  ...questionSetTable,
  ...alertTable,
  ...contentTable,
  ...guardrailTable,
  ...virtualModelTable,
}
export type PlatformTable = typeof platformTable
