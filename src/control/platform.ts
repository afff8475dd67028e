/** The handlers of the Platform API other than money, analytics and identity providers. */
import type { Catalog, Region } from "../base/catalog.ts"
import type { RateLimits } from "../base/rate-limiter.ts"
import type { RateLimit } from "../contract/access.ts"
import type { Handlers } from "../contract/endpoint.ts"
import type { PlatformTable } from "../contract/table.ts"
import { type AlertDeps, alertHandlers } from "./alerts/handlers.ts"
import { auditLogHandlers } from "./audit-log.ts"
import type { ControlDeps } from "./audited-change.ts"
import { type ModelConnector, connectedModelHandlers } from "./connected-models.ts"
import { contentHandlers } from "./content/content.ts"
import { type ContentAccess, contentSettingsHandlers } from "./content/settings.ts"
import { guardrailHandlers } from "./guardrails.ts"
import { invitationHandlers } from "./invitations.ts"
import { keyHandlers } from "./keys.ts"
import { memberHandlers } from "./members.ts"
import { type BillingStatus, type ModelDeps, listOrganizationModels, modelHandlers } from "./models.ts"
import { type OrganizationDeps, organizationHandlers } from "./organizations.ts"
import { exampleHandlers } from "./question-sets/examples.ts"
import { jobHandlers } from "./question-sets/jobs.ts"
import { monitoringHandlers } from "./question-sets/monitoring.ts"
import { setHandlers } from "./question-sets/sets.ts"
import { passkeyHandlers } from "./passkeys.ts"
import { reviewHandlers } from "./review/items.ts"
import { routingPolicyHandlers } from "./routing-policy.ts"
import { sessionListHandlers } from "./session-list.ts"
import { secondFactorHandlers } from "./second-factor.ts"
import { type SendMail, sessionHandlers } from "./sessions.ts"
import { createSignInLimits } from "./sign-in-limits.ts"
import { type SingleSignOn, singleSignOnHandlers } from "./single-sign-on.ts"
import { tagBudgetHandlers } from "./tag-budgets.ts"
import { virtualModelHandlers } from "./virtual-models.ts"
import { webhookHandlers } from "./webhooks/handlers.ts"

export interface PlatformDeps extends ControlDeps {
  readonly catalog: Catalog
  readonly connector: ModelConnector
  about: ModelDeps["about"]
  readonly regions: readonly Region[]
  placement: OrganizationDeps["placement"]
  /** What principals without a limit of their own have. */
  readonly rateLimit: RateLimit
  /** What attempts to sign in are counted by. */
  readonly rateLimits: RateLimits
  readonly secureCookies: boolean
  /** Who moves money in for new billing accounts. */
  readonly paymentProvider: string
  /** Null when none is configured. */
  readonly singleSignOn: SingleSignOn | null
  /** What keeps an organization's billing account from paying for inference; null when nothing does. */
  billingStatus(organizationId: string): Promise<BillingStatus>
  readonly content: ContentAccess
  /** The address of this installation as browsers see it; known once it listens. */
  publicUrl(): string
  readonly allowPrivateWebhooks: boolean
  readonly email: AlertDeps["email"]
  readonly sendMail: SendMail | null
}

export function platformHandlers(given: PlatformDeps): Handlers<PlatformTable> {
  const deps = { ...given, limits: createSignInLimits(given.rateLimits) }
  return {
    ...organizationHandlers({
      ...deps,
      countModels: async (organizationId) => {
        const models = await listOrganizationModels(deps, organizationId)
        return models.filter(({ status, virtual }) => status === "active" && virtual === null).length
      },
    }),
    ...memberHandlers(deps),
    ...invitationHandlers({ ...deps, singleSignOn: given.singleSignOn !== null }),
    ...modelHandlers(deps),
    ...routingPolicyHandlers(deps),
    ...keyHandlers({ ...deps, catalog: async () => deps.catalog }),
    ...tagBudgetHandlers(deps),
    ...auditLogHandlers(deps),
    ...sessionHandlers(deps),
    ...secondFactorHandlers(deps),
    ...passkeyHandlers(deps),
    ...sessionListHandlers(deps),
    ...singleSignOnHandlers(deps, given.singleSignOn),
    ...setHandlers(deps),
    ...exampleHandlers(deps),
    ...jobHandlers(deps),
    ...monitoringHandlers(deps),
    ...alertHandlers(deps),
    ...webhookHandlers(deps),
    ...contentSettingsHandlers(deps),
    ...contentHandlers(deps),
    ...reviewHandlers(deps),
    ...guardrailHandlers(deps),
    ...virtualModelHandlers(deps),
    ...connectedModelHandlers(deps),
  }
}
