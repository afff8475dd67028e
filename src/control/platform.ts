/** The handlers of the Platform API other than money, analytics and identity providers. */
import type { Catalog } from "../base/catalog.ts"
import type { RateLimits } from "../base/rate-limiter.ts"
import type { Region } from "../base/regions.ts"
import type { RateLimit } from "../contract/access.ts"
import type { Handlers } from "../contract/endpoint.ts"
import type { PlatformTable } from "../contract/platform/table.ts"
import { type AlertParts, alertHandlers } from "./alerts/handlers.ts"
import { auditLogHandlers } from "./audit-log.ts"
import type { ControlParts } from "./change.ts"
import { contentHandlers } from "./content/content.ts"
import type { ContentAccess } from "./content/parts.ts"
import { contentSettingsHandlers } from "./content/settings.ts"
import { guardrailHandlers } from "./guardrails.ts"
import { invitationHandlers } from "./invitations.ts"
import { keyHandlers } from "./keys.ts"
import { memberHandlers } from "./members.ts"
import type { BillingStatus } from "./model-status.ts"
import { listOrganizationModels, modelHandlers } from "./models.ts"
import { type OrganizationParts, organizationHandlers } from "./organizations.ts"
import { exampleHandlers } from "./question-sets/examples.ts"
import { jobHandlers } from "./question-sets/jobs.ts"
import { monitoringHandlers } from "./question-sets/monitoring.ts"
import { setHandlers } from "./question-sets/sets.ts"
import { reviewHandlers } from "./review/items.ts"
import { routingPolicyHandlers } from "./routing-policy.ts"
import { sessionListHandlers } from "./session-list.ts"
import { sessionHandlers } from "./sessions.ts"
import { createSignInLimits } from "./sign-in-limits.ts"
import { type SingleSignOn, singleSignOnHandlers } from "./single-sign-on.ts"
import { tagBudgetHandlers } from "./tag-budgets.ts"
import { virtualModelHandlers } from "./virtual-models.ts"
import { webhookHandlers } from "./webhooks/handlers.ts"

export interface PlatformParts extends ControlParts {
  readonly catalog: Catalog
  readonly regions: readonly Region[]
  placement: OrganizationParts["placement"]
  /** What principals without a limit of their own have. */
  readonly rateLimit: RateLimit
  /** What attempts to sign in are counted by. */
  readonly rateLimits: RateLimits
  readonly secureCookies: boolean
  /** Who moves money in for new billing accounts. */
  readonly paymentProvider: string
  refill: OrganizationParts["refill"]
  /** Null when none is configured. */
  readonly singleSignOn: SingleSignOn | null
  /** What keeps an organization's billing account from paying for inference; null when nothing does. */
  billingStatus(organizationId: string): Promise<BillingStatus>
  readonly content: ContentAccess
  /** The address of this installation as browsers see it; known once it listens. */
  publicUrl(): string
  readonly allowPrivateWebhooks: boolean
  readonly email: AlertParts["email"]
}

export function platformHandlers(given: PlatformParts): Handlers<PlatformTable> {
  const parts = { ...given, limits: createSignInLimits(given.rateLimits) }
  return {
    ...organizationHandlers({
      ...parts,
      countModels: async (organizationId) => {
        const models = await listOrganizationModels(parts, organizationId)
        return models.filter(({ status, virtual }) => status === "active" && virtual === null).length
      },
    }),
    ...memberHandlers(parts),
    ...invitationHandlers({ ...parts, singleSignOn: given.singleSignOn !== null }),
    ...modelHandlers(parts),
    ...routingPolicyHandlers(parts),
    ...keyHandlers(parts),
    ...tagBudgetHandlers(parts),
    ...auditLogHandlers(parts),
    ...sessionHandlers(parts),
    ...sessionListHandlers(parts),
    ...singleSignOnHandlers(parts, given.singleSignOn),
    ...setHandlers(parts),
    ...exampleHandlers(parts),
    ...jobHandlers(parts),
    ...monitoringHandlers(parts),
    ...alertHandlers(parts),
    ...webhookHandlers(parts),
    ...contentSettingsHandlers(parts),
    ...contentHandlers(parts),
    ...reviewHandlers(parts),
    ...guardrailHandlers(parts),
    ...virtualModelHandlers(parts),
  }
}
