/** The Platform endpoints other than money, analytics and identity providers. */
import { listAuditLog } from "./audit-log.ts"
import { createApiKey, deleteApiKey, listApiKeys, rotateApiKey, updateApiKey } from "./keys.ts"
import {
  acceptInvitation,
  createInvitation,
  listInvitations,
  listMembers,
  removeMember,
  resendInvitation,
  revokeInvitation,
  updateMember,
} from "./members.ts"
import { listModelAccessRequests, listOrganizationModels, requestModelAccess } from "./models.ts"
import {
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
} from "./sessions.ts"

export const platformTable = {
  listOrganizations,
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
  createSession,
  getSession,
  deleteSession,
  setPassword,
  startSingleSignOn,
  finishSingleSignOn,
}
export type PlatformTable = typeof platformTable
