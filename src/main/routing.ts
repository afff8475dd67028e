/** The engines of this machine and the router, as the configuration describes them: which workers run which model, and where. */
import type { Catalog, Model, Region } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { WorkerConfig } from "../base/config-models.ts"
import type { Config } from "../base/config-schema.ts"
import { ConfigError } from "../base/config.ts"
import type { Log } from "../base/log.ts"
import type { DialectName } from "../engine/remote/dialects.ts"
import type { Decider } from "../engine/remote/decider.ts"
import { type RemoteWorker, openRemoteWorker } from "../engine/remote/remote-worker.ts"
import { workerClient } from "../engine/engine-client.ts"
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
  /** Where models run that an operator connected by their address. */
  readonly connected?: (sku: string) => readonly WorkerConfig[]
  /** The engines of a model at another server. */
  readonly remote: (model: Model, worker: WorkerConfig & { readonly url: string }) => WorkerEngines
}

export interface Routing extends Router {
  /** A model that was added to the catalog: it runs in this machine, unless it is connected. */
  addModel(model: Model): void
  removeModel(sku: string): void
}

/** One missed check may be chance; two are not. */
const failedChecksMax = 2

/** Whether a process of this machine runs the model. */
export function runsHere({ models }: Config, { sku }: Model): boolean {
  const workers = models.find((model) => model.sku === sku)?.workers ?? []
  return workers.length === 0 || workers.some(({ url }) => url === undefined)
}

type ServedModel = Pick<Model, "sku" | "kind" | "contextTokensMax" | "quantization" | "file">

/** `decider` tells how the worker decides, where it is not an Umpire worker. */
export function remoteEngines(
  model: ServedModel,
  { url, key, dialect, model: name }: WorkerConfig & { readonly url: string },
): WorkerEngines & { readonly decider?: Decider } {
  const called = name ?? model.sku
  if (dialect === "umpire") return enginesOf(model, workerClient({ url, key, model: called }))
  const client = dialectClient(model, called, { url, key, dialect })
  const engines = enginesOf(model, client)
  return model.kind === "embedding" ? engines : { ...engines, decider: client.scorer }
}

const enginesOf = (
  { kind }: ServedModel,
  { scorer, generator, embedder, check }: Required<WorkerEngines>,
): WorkerEngines => (kind === "embedding" ? { embedder, check } : { scorer, generator, check })

function dialectClient(
  { contextTokensMax, quantization, file }: ServedModel,
  name: string,
  { url, key, dialect }: { url: string; key: string | undefined; dialect: DialectName },
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
    catalog.list().map((model) => [
      model.sku,
      settingsOf(needs, from, {
        model,
        configured: workersOf.get(model.sku) ?? needs.connected?.(model.sku) ?? [],
      }),
    ]),
  )
  const router = createRouter({
    regions,
    from,
    workers,
    policies: createPolicies(organizations),
    clock,
    log,
    health: { intervalMs: health_interval_ms, timeoutMs: health_timeout_ms, failuresMax: failedChecksMax },
    queueWaitMs: queue_wait_ms,
    ...(liveTraffic ? { liveTraffic } : {}),
  })
  return {
    ...router,
    addModel: (model) =>
      router.add(
        model.sku,
        settingsOf(needs, from, { model, configured: needs.connected?.(model.sku) ?? [] }),
      ),
    removeModel: (sku) => router.remove(sku),
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
  { model, configured }: { model: Model; configured: readonly WorkerConfig[] },
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
