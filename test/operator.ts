/** The operator of a server, or of handlers without one, as `umpire` commands are. */
import { type Model, createCatalog } from "../src/base/catalog.ts"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { clientWithin, connectOperator } from "../src/cli/operator.ts"
import type { Permission } from "../src/contract/access.ts"
import type { OperatorClient } from "../src/contract/client.ts"
import type { Handlers } from "../src/contract/endpoint.ts"
import type { OperatorTable } from "../src/contract/operator.ts"
import type { ControlDeps } from "../src/control/audited-change.ts"
import { operatorMembership, storeOperatorHandlers } from "../src/control/operator/handlers.ts"
import { createOperatorServer, operatorAddress, operatorGate } from "../src/server/operator-socket.ts"
import type { Database } from "../src/store/sql.ts"

export async function operatorOf({
  dataDirectory,
}: {
  readonly dataDirectory: string
}): Promise<OperatorClient> {
  const operator = await connectOperator(operatorAddress(dataDirectory))
  if (!operator) throw new Error("Cannot operate: the server does not listen to its operator")
  return operator.client
}

/** Another organization, by the operator's hand, and a key of it. */
export async function makeOrganization(
  server: { readonly dataDirectory: string },
  body: Parameters<OperatorClient["openOrganization"]>[0]["body"],
  permissions: readonly Permission[] = ["inference"],
): Promise<{ readonly id: string; readonly secret: string }> {
  const client = await operatorOf(server)
  const { id } = await client.openOrganization({ body })
  const key = await client.createApiKey({
    params: { org_id: id },
    body: { name: "other", permissions: [...permissions] },
  })
  return { id, secret: key.secret ?? "" }
}

/** Of a database that no server has; the other handlers are missing. */
export function operatorOn(database: Database, handlers: Partial<Handlers<OperatorTable>>): OperatorClient {
  const server = createOperatorServer({
    // A test calls those that it brings.
    handlers: handlers as Handlers<OperatorTable>,
    gate: operatorGate(async (id) => await operatorMembership(database, id)),
    clock: systemClock,
    ids: createIds(),
    log: silentLog,
  })
  return clientWithin(server)
}

/** What commands ask of the store alone; those about access read the catalog's names only. */
export const storeOperator = (
  control: Pick<ControlDeps, "database" | "ids" | "invalidate">,
  models: readonly Pick<Model, "sku" | "public">[] = [],
): OperatorClient =>
  operatorOn(
    control.database,
    storeOperatorHandlers({
      ...control,
      clock: systemClock,
      publicUrl: () => "https://umpire.example/",
      catalog: async () => createCatalog(models as unknown as Parameters<typeof createCatalog>[0]),
      connector: null,
      provider: "local",
      rateLimit: { requestsPerMinute: 60, burst: 60 },
    }),
  )
