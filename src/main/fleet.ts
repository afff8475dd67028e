/** The installation as one: each gateway tells the store how it stands, learns which workers are drained, and shows them all to operators. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../base/clock.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { type FleetState, type GatewayState, isLocalWorker } from "../contract/fleet-report.ts"
import type { FleetOperatorTable } from "../contract/operator.ts"
import type { Log } from "../base/log.ts"
import { type Ticks, dollarsOf } from "../base/money.ts"
import type { Metrics } from "../base/telemetry.ts"
import { Fault } from "../contract/errors.ts"
import type { Router } from "../gateway/routing/router.ts"
import {
  drainWorker,
  listDrainedWorkers,
  listGateways,
  removeGateway,
  saveGateway,
  sumHeldBySilent,
  undrainWorker,
} from "../store/fleet.ts"
import type { Database } from "../store/sql.ts"

interface FleetDeps {
  readonly database: Database
  readonly router: Pick<Router, "report" | "drain">
  readonly report: () => GatewayState
  readonly clock: Clock
  readonly log: Log
}

interface Fleet {
  readonly handlers: Handlers<FleetOperatorTable>
  addMetrics(metrics: Metrics): void
  close(): Promise<void>
}

/** How soon other gateways are seen here, and a worker that is drained elsewhere gets no more requests. */
const beatEveryMs = 5_000

export async function openFleet(deps: FleetDeps): Promise<Fleet> {
  const { database, router, report, clock, log } = deps
  const stop = new AbortController()
  let heldBySilent: Ticks = 0n
  const beat = async (): Promise<void> => {
    await saveGateway(database, { id: report().gateway_id, report: JSON.stringify(report()) })
    router.drain(await listDrainedWorkers(database))
    heldBySilent = await sumHeldBySilent(database)
  }
  const keepBeating = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await beat().catch((error: unknown) =>
        log.debug({ err: error }, "the gateway could not tell how it stands"),
      )
      await wait(beatEveryMs, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  }
  // A worker that is drained gets no request after a restart either.
  router.drain(await listDrainedWorkers(database))
  const beating = keepBeating()
  return {
    handlers: {
      getStatus: async () => report(),
      getFleet: async () => {
        await beat()
        return await readFleet(deps)
      },
      drainWorker: async ({ body: { worker } }) => {
        if (isLocalWorker(worker))
          throw new Fault(
            "invalid_request",
            `Cannot drain ${worker}: every gateway of the region calls its own models so; stop the gateway instead`,
          )
        if (!(await knowsWorker(deps, worker)))
          throw new Fault(
            "not_found",
            `Cannot drain ${worker}: no gateway has a worker of this id; see umpire status`,
          )
        await drainWorker(database, worker, new Date(clock.nowMs()))
        await beat()
        return { worker, drained: true }
      },
      undrainWorker: async ({ body: { worker } }) => {
        await undrainWorker(database, worker)
        await beat()
        return { worker, drained: false }
      },
    },
    addMetrics: (metrics) =>
      metrics.gauge(
        "umpire_silent_gateways_held_dollars",
        "Credit held by gateways of the installation that have been silent for a minute, in USD.",
        () => [{ labels: {}, value: dollarsOf(heldBySilent) }],
      ),
    close: async () => {
      stop.abort()
      await beating
      await removeGateway(database, report().gateway_id).catch(() => undefined)
    },
  }
}

async function readFleet({ database }: FleetDeps): Promise<FleetState> {
  const rows = await listGateways(database)
  return {
    drained_workers: await listDrainedWorkers(database),
    gateways: rows.map(({ report, seenSAgo }) => ({
      ...readReport(report),
      seen_s_ago: seenSAgo,
    })),
  }
}

async function knowsWorker({ database }: FleetDeps, worker: string): Promise<boolean> {
  const rows = await listGateways(database)
  return rows.some(({ report }) =>
    readReport(report).models.some(({ workers }) => workers.some(({ id }) => id === worker)),
  )
}

// Written by a gateway of this installation, perhaps of another version.
const readReport = (report: string): GatewayState => JSON.parse(report)
