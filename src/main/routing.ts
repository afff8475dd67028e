/** The engines of this machine and the router, as the configuration describes them: which workers run which model, and where. */
import type { Catalog, Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { WorkerConfig } from "../base/config-models.ts"
import type { Config } from "../base/config-schema.ts"
import { ConfigError } from "../base/config.ts"
import type { Log } from "../base/log.ts"
import type { Region } from "../base/regions.ts"
import type { DialectName } from "../engine/remote/dialects.ts"
import { type RemoteWorker, openRemoteWorker } from "../engine/remote/remote-worker.ts"
import { workerClient } from "../engine/worker/client.ts"
import { createPolicies } from "../gateway/organization-access.ts"
import type { LiveTraffic } from "../gateway/routing/queue.ts"
import { type Router, createRouter } from "../gateway/routing/router.ts"
import type { WorkerEngines, WorkerSettings } from "../gateway/routing/worker.ts"
import type { Organizations } from "../store/organization-snapshot.ts"

interface RoutingNeeds {
  readonly config: Config
  readonly catalog: Catalog
  readonly regions: readonly Region[]
  readonly organizations: Pick<Organizations, "of">
  readonly clock: Clock
  readonly log: Log
  /** Told of live requests, where lines of batches wait for them. */
  readonly liveTraffic?: LiveTraffic
  /** The engines of a model in this machine. */
  readonly local: (model: Model) => WorkerEngines
  /** The engines of a model at another server. */
  readonly remote: (model: Model, worker: WorkerConfig & { readonly url: string }) => WorkerEngines
}

export interface Routing extends Router {
  /** A model that was added to the catalog runs in this machine. */
  addLocal(model: Model): void
}

/** One missed check may be chance; two are not. */
const failedChecksMax = 2

/** Whether a process of this machine runs the model. */
export function runsHere({ models }: Config, { sku }: Model): boolean {
  const workers = models.find((model) => model.sku === sku)?.workers ?? []
  return workers.length === 0 || workers.some(({ url }) => url === undefined)
}

export function remoteEngines(
  model: Model,
  { url, key, dialect, model: name }: WorkerConfig & { readonly url: string },
): WorkerEngines {
  const called = name ?? model.sku
  const client =
    dialect === "umpire"
      ? workerClient({ url, key, model: called })
      : dialectClient(model, called, { url, key, dialect })
  const { check } = client
  if (model.kind === "embedding") return { embedder: client.embedder, check }
  return { scorer: client.scorer, generator: client.generator, check }
}

function dialectClient(
  { contextTokensMax, quantization, file }: Model,
  name: string,
  {
    url,
    key,
    dialect,
  }: { readonly url: string; readonly key: string | undefined; readonly dialect: DialectName },
): RemoteWorker {
  const model = { name, contextTokensMax, quantization, file: file === "" ? null : file }
  return openRemoteWorker({ url, key }, dialect, { model })
}

export async function openRouting(needs: RoutingNeeds): Promise<Routing> {
  const { config, catalog, regions, organizations, clock, log, liveTraffic } = needs
  const { queue_wait_ms, health_interval_ms, health_timeout_ms } = config.routing
  const from = ownRegion(config, regions)
  const workersOf = workersByModel(config)
  const workers = new Map(
    catalog
      .list()
      .map((model) => [
        model.sku,
        settingsOf(needs, from, { model, configured: workersOf.get(model.sku) ?? [] }),
      ]),
  )
  const router = createRouter({
    regions,
    from,
    workers,
    policies: createPolicies(organizations),
    clock,
    log,
    health: {
      intervalMs: health_interval_ms,
      timeoutMs: health_timeout_ms,
      failuresMax: failedChecksMax,
    },
    queueWaitMs: queue_wait_ms,
    ...(liveTraffic ? { liveTraffic } : {}),
  })
  return {
    ...router,
    addLocal: (model) => router.add(model.sku, settingsOf(needs, from, { model, configured: [] })),
  }
}

function ownRegion({ gateway }: Config, regions: readonly Region[]): Region {
  const from = gateway.region === undefined ? regions[0] : regions.find(({ id }) => id === gateway.region)
  if (from) return from
  throw new ConfigError(`Cannot use the configuration: gateway.region: no region is named ${gateway.region}`)
}

function workersByModel({ models }: Config): Map<string, readonly WorkerConfig[]> {
  return new Map(models.map(({ sku, workers }) => [sku, workers]))
}

function settingsOf(
  { config, regions, local, remote }: RoutingNeeds,
  from: Region,
  { model, configured }: { readonly model: Model; readonly configured: readonly WorkerConfig[] },
): WorkerSettings[] {
  const { concurrency_max, queue_max, attempt_timeout_ms } = config.routing
  const workers = configured.length > 0 ? configured : [{ dialect: "openai" as const }]
  return workers.map((worker: WorkerConfig, index) => {
    const regionId = worker.region ?? from.id
    if (!regions.some(({ id }) => id === regionId))
      throw new ConfigError(
        `Cannot use the model ${model.sku}: workers.${index}.region: no region is named ${regionId}`,
      )
    const { url } = worker
    return {
      id: `${regionId}/${url === undefined ? "local" : new URL(url).host}#${index}`,
      regionId,
      slotsMax: worker.concurrency_max ?? concurrency_max,
      waitingMax: queue_max,
      attemptTimeoutMs: url === undefined ? null : attempt_timeout_ms,
      engines: url === undefined ? local(model) : remote(model, { ...worker, url }),
    }
  })
}
