/** What `umpire` commands ask of a server that runs. */
import { billingOperations } from "../control/operations/billing.ts"
import { identityOperations } from "../control/operations/identity.ts"
import { operations } from "../control/operations.ts"
import type { openOperatorSocket } from "../server/operator-socket.ts"
import { backupOperations } from "./backup.ts"
import { toModel } from "./catalog.ts"
import type { Core, Gateway } from "./gateway.ts"
import { modelOperations } from "./models.ts"

export function operatorHandlers(
  core: Core,
  { money, analytics, routing }: Gateway,
  status: () => Promise<unknown>,
): Parameters<typeof openOperatorSocket>[1] {
  const { config, clock, catalog, database, identity } = core
  return {
    ...operations({ ...core, catalog: async () => catalog, provider: config.billing.provider }),
    ...billingOperations({ ...core, journalState: () => money.journalState() }),
    ...analytics.operations({ database, settle: () => money.settle() }),
    ...identityOperations(core, async () => identity),
    ...backupOperations({ config, database, events: analytics.events, clock }),
    status,
    ...modelOperations({
      dataDirectory: config.data_dir,
      catalog: async () => catalog,
      read: toModel,
      added: (model) => {
        catalog.add(model)
        routing.addLocal(model)
      },
    }),
  }
}
