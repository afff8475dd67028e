/** The Platform endpoints other than money, analytics and identity providers. */
import { alertRuleTable } from "../alerts/rules.ts"
import { webhookTable } from "../alerts/webhooks.ts"
import { contentTable } from "../content.ts"
import { guardrailTable } from "../guardrails/guardrails.ts"
import { exampleTable } from "../question-sets/examples.ts"
import { jobTable } from "../question-sets/jobs.ts"
import { monitoringTable } from "../question-sets/monitoring.ts"
import { reviewTable } from "../question-sets/review.ts"
import { setTable } from "../question-sets/sets.ts"
import { auditLogTable } from "./audit-log.ts"
import { connectedModelTable } from "./connected-models.ts"
import { keyTable } from "./keys.ts"
import { invitationTable, memberTable } from "./members.ts"
import { modelTable } from "./models.ts"
import { passkeyTable } from "./passkeys.ts"
import { organizationTable } from "./organizations.ts"
import { routingPolicyTable } from "./routing-policy.ts"
import { secondFactorTable } from "./second-factor.ts"
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
