/** What an operator does from the command line, on the store itself; the running server and the CLI share it. */
import { accessOperations } from "./operations/access.ts"
import { auditOperations } from "./operations/audit.ts"
import { budgetOperations } from "./operations/budgets.ts"
import type { Operations, OperatorParts } from "./operations/input.ts"
import { keyOperations } from "./operations/keys.ts"
import { organizationOperations } from "./operations/organizations.ts"
import { userOperations } from "./operations/users.ts"
import { virtualModelOperations } from "./operations/virtual-models.ts"

export function operations(parts: OperatorParts): Operations {
  return {
    ping: async () => "pong",
    ...keyOperations(parts),
    ...organizationOperations(parts),
    ...accessOperations(parts),
    ...auditOperations(parts),
    ...budgetOperations(parts),
    ...userOperations(parts),
    ...virtualModelOperations(parts),
  }
}
