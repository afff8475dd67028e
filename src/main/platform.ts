/** Builds what the Platform API needs from the configuration. */
import { type Catalog, localRegion, type Region } from "../base/catalog.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { ConfigError } from "../base/config.ts"
import type { RateLimit } from "../contract/access.ts"
import { billingStatus } from "../control/billing/accounts.ts"
import type { BillingDeps } from "../control/billing/parts.ts"
import type { ControlDeps } from "../control/audited-change.ts"
import { createOidcProvider } from "../control/sso-provider.ts"
import { mailFailure } from "../control/alerts/email.ts"
import type { PlatformDeps } from "../control/platform.ts"
import type { SendMail } from "../control/sessions.ts"
import type { SingleSignOn } from "../control/single-sign-on.ts"
import { mailSenderOf } from "./alerts.ts"

type PlatformNeeds = ControlDeps &
  Pick<PlatformDeps, "catalog" | "rateLimits" | "content" | "publicUrl" | "connector" | "about"> & {
    readonly config: Config
    readonly log: Log
    readonly billing: BillingDeps
  }

export function platformParts(needs: PlatformNeeds): PlatformDeps {
  const { config, catalog } = needs
  return {
    ...needs,
    billingStatus: async (organizationId) => await billingStatus(needs, organizationId),
    regions: regionsOf(config),
    placement: placementOf(config, catalog),
    rateLimit: rateLimitOf(config),
    paymentProvider: config.billing.provider,
    allowPrivateWebhooks: config.webhooks.allow_private,
    email: { enabled: config.email.smtp_host !== undefined, recipients: config.email.recipients },
    sendMail: mailerOf(needs),
    secureCookies: config.server.public_url?.startsWith("https:") ?? false,
    singleSignOn: singleSignOnOf(needs),
  }
}

/** Of mails that are being sent: a mail server that hangs holds no more. */
const mailsMax = 32

function mailerOf({ config, log, publicUrl }: PlatformNeeds): SendMail | null {
  if (config.email.smtp_host === undefined) return null
  let sender: ReturnType<typeof mailSenderOf> | undefined
  let sending = 0
  const send = async (mail: Parameters<SendMail>[0]): Promise<void> => {
    sending += 1
    try {
      sender ??= mailSenderOf(config, publicUrl)
      await sender?.write(mail)
    } catch (error) {
      // Without the mail: its text has a link that sets a password.
      log.warn({ err: new Error(mailFailure(error).sentence) }, "a mail could not be sent")
    } finally {
      sending -= 1
    }
  }
  return (mail) => {
    if (sending < mailsMax) void send(mail)
    else log.warn({ err: new Error("too many mails wait for the mail server") }, "a mail could not be sent")
  }
}

/** What organizations without a limit of their own have. */
export const rateLimitOf = ({ limits }: Config): RateLimit => ({
  requestsPerMinute: limits.requests_per_minute,
  burst: limits.burst,
})

export function regionsOf({ regions }: Config): readonly Region[] {
  const ids = regions.map(({ id }) => id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined)
    throw new ConfigError(`Cannot use the configuration: regions: ${twice} is listed twice`)
  return regions.length > 0 ? regions : [localRegion]
}

/** Models without workers of their own run where this gateway stands. */
function placementOf(config: Config, catalog: Catalog): PlatformDeps["placement"] {
  const home = config.gateway.region ?? regionsOf(config)[0]?.id ?? localRegion.id
  const workersOf = new Map(config.models.map(({ sku, workers }) => [sku, workers]))
  const regionsOfModel = (sku: string): string[] => {
    const workers = workersOf.get(sku) ?? []
    return workers.length === 0 ? [home] : workers.map(({ region }) => region ?? home)
  }
  return (regionId) => ({
    home: regionId === home,
    models: catalog
      .list()
      .map(({ sku }) => sku)
      .filter((sku) => regionsOfModel(sku).includes(regionId)),
  })
}

function singleSignOnOf({ config: { sso }, log, publicUrl }: PlatformNeeds): SingleSignOn | null {
  const { issuer, client_id, client_secret, verified_email_only, scope, groups_claim } = sso
  if (issuer === undefined) return null
  if (client_id === undefined || client_secret === undefined)
    throw new ConfigError(
      "Cannot use the configuration: sso.issuer needs sso.client_id and sso.client_secret",
    )
  return {
    provider: createOidcProvider({
      issuer,
      clientId: client_id,
      clientSecret: client_secret,
      scope,
      groupsClaim: groups_claim,
    }),
    verifiedEmailOnly: verified_email_only,
    publicUrl,
    log,
  }
}
