/** The Platform endpoints other than money, analytics and identity providers. */
import { alertRuleTable } from "../alerts/rules.ts"
import { webhookTable } from "../alerts/webhooks.ts"
import { contentTable } from "../content.ts"
import { guardrailTable } from "../guardrails/guardrails.ts"
import { questionSetTable } from "../question-sets/table.ts"
import { auditLogTable } from "./audit-log.ts"
import { keyTable } from "./keys.ts"
import { invitationTable, memberTable } from "./members.ts"
import { modelTable } from "./models.ts"
import { organizationTable } from "./organizations.ts"
import { routingPolicyTable } from "./routing-policy.ts"
import { sessionListTable, sessionTable } from "./sessions.ts"
import { tagBudgetTable } from "./tag-budgets.ts"
import { virtualModelTable } from "./virtual-models.ts"

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
  ...tagBudgetTable,
  ...questionSetTable,
  ...alertRuleTable,
  ...webhookTable,
  ...contentTable,
  ...guardrailTable,
  ...virtualModelTable,
}
export type PlatformTable = typeof platformTable
