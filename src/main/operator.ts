/** What `umpire` commands ask of a server that runs. */
import type { Handlers } from "../contract/endpoint.ts"
import type { FleetOperatorTable, OperatorTable } from "../contract/operator.ts"
import { billingOperatorHandlers } from "../control/operator/billing.ts"
import { storeOperatorHandlers } from "../control/operator/handlers.ts"
import { backupHandlers } from "./backup.ts"
import { toModel } from "./catalog.ts"
import type { Core, Gateway } from "./gateway.ts"
import { catalogHandlers } from "./models.ts"
import { rateLimitOf } from "./platform.ts"

export function operatorHandlers(
  core: Core,
  { money, analytics, routing }: Gateway,
): Omit<Handlers<OperatorTable>, keyof FleetOperatorTable> {
  const { config, identity } = core
  const catalog = async () => core.catalog
  return {
    ...identity.handlers,
    ...storeOperatorHandlers({
      ...core,
      catalog,
      provider: config.billing.provider,
      rateLimit: rateLimitOf(config),
    }),
    ...billingOperatorHandlers({ ...core, journalState: () => money.journalState() }),
    ...analytics.operatorHandlers({ ...core, settle: () => money.settle() }),
    ...backupHandlers({ ...core, events: analytics.events }),
    ...catalogHandlers({
      dataDirectory: config.data_dir,
      catalog,
      read: toModel,
      added: (model) => {
        core.catalog.add(model)
        routing.addLocal(model)
      },
    }),
  }
}
