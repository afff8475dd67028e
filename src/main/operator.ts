/** What `umpire` commands ask of a server that runs. */
import type { Model } from "../base/catalog.ts"
import type { Handlers } from "../contract/endpoint.ts"
import type { FleetOperatorTable, OperatorTable } from "../contract/operator.ts"
import { billingOperatorHandlers } from "../control/operator/billing.ts"
import { storeOperatorHandlers } from "../control/operator/handlers.ts"
import { backupHandlers } from "./backup.ts"
import { toModel } from "./catalog.ts"
import type { Core, Gateway } from "./gateway.ts"
import { catalogHandlers, remoteHandlers } from "./models.ts"
import { rateLimitOf } from "./platform.ts"

export function operatorHandlers(
  core: Core,
  { money, analytics, routing, remoteModels }: Gateway,
): Omit<Handlers<OperatorTable>, keyof FleetOperatorTable> {
  const { config, identity } = core
  const catalog = async () => core.catalog
  const added = (model: Model): void => {
    core.catalog.add(model)
    routing.addModel(model)
  }
  return {
    ...identity.handlers,
    ...storeOperatorHandlers({
      ...core,
      catalog,
      connector: remoteModels,
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
      added,
      describe: (sku) => remoteModels.describe(sku),
    }),
    ...remoteHandlers({ ...core, connector: remoteModels }),
  }
}
