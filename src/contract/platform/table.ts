/** The Platform endpoints other than money, analytics and identity providers. */
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
  startSingleSignOn,
  updateSessionUser,
} from "./sessions.ts"
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
  startSingleSignOn,
  finishSingleSignOn,
  ...questionSetTable,
}
export type PlatformTable = typeof platformTable
