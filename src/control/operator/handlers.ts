/** What an operator asks of the store, whether a server runs or not; and which organizations that may be about. */
import { type Membership, permissions } from "../../contract/access.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { StoreOperatorTable } from "../../contract/operator.ts"
import { findOrganization } from "../../store/organizations.ts"
import type { Sql } from "../../store/sql.ts"
import { keyHandlers } from "../keys.ts"
import { accessRequestHandlers } from "../models.ts"
import { tagBudgetHandlers } from "../tag-budgets.ts"
import {
  type OperatorDeps,
  organizationOperatorHandlers,
  userOperatorHandlers,
  virtualModelOperatorHandlers,
} from "./organizations.ts"

export function storeOperatorHandlers(deps: OperatorDeps): Handlers<StoreOperatorTable> {
  const { listApiKeys, createApiKey, updateApiKey, deleteApiKey } = keyHandlers(deps)
  return {
    ...organizationOperatorHandlers(deps),
    ...userOperatorHandlers(deps),
    ...virtualModelOperatorHandlers(deps),
    ...tagBudgetHandlers(deps),
    ...accessRequestHandlers(deps),
    listApiKeys,
    createApiKey,
    updateApiKey,
    deleteApiKey,
  }
}

/** The operator is an owner of every organization that is not deleted. */
export async function operatorMembership(sql: Sql, organizationId: string): Promise<Membership> {
  const organization = await findOrganization(sql, organizationId)
  if (!organization || organization.deletedAt !== null)
    throw new Fault("not_found", `Cannot find the organization ${organizationId}`)
  return { organizationId, role: "primary_owner", permissions }
}
