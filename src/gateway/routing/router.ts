/** Finds a way for each request: plans by policy, then takes it to workers that are up, willing and not full. */
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Region } from "../../base/regions.ts"
import { type HealthChecks, type HealthOptions, startHealthChecks } from "./health.ts"
import { planRoute } from "./plan.ts"
import type { Policies } from "./policies.ts"
import { Route } from "./route.ts"
import {
  type RoutedEmbedder,
  type RoutedGenerator,
  type RoutedScorer,
  routedEmbedder,
  routedGenerator,
  routedScorer,
} from "./routed.ts"
import { type WorkerReport, type WorkerSettings, Worker, WorkerPool } from "./worker.ts"

interface RouterParts {
  readonly regions: readonly Region[]
  /** Where this gateway stands. */
  readonly from: Region | null
  /** The workers of each model, by its SKU. */
  readonly workers: ReadonlyMap<string, readonly WorkerSettings[]>
  readonly policies: Pick<Policies, "of">
  readonly clock: Clock
  readonly log: Log
  readonly health: HealthOptions
  /** How long a request may wait for a place. */
  readonly queueWaitMs: number
}

export interface RouteRequest {
  readonly model: string
  readonly organizationId: string
  /** The region that the request asks for. */
  readonly hint: string | null
  /** Told where the request is being worked on; again when it moves on before its first byte. */
  readonly onPlaced?: (region: string) => void
}

/** The engines of one request. It must be closed, however the request ends. */
export interface Routed {
  readonly scorer: RoutedScorer
  readonly generator: RoutedGenerator
  readonly embedder: RoutedEmbedder
  close(): void
}

export interface ModelReport {
  readonly model: string
  readonly workers: readonly WorkerReport[]
}

export interface Router {
  /** Throws Fault `unknown_routing_hint`, `region_denied` or `routing_failed`. */
  open(request: RouteRequest): Promise<Routed>
  /** A model that was added to the catalog, with workers in this machine, which need no health checks. */
  add(sku: string, workers: readonly WorkerSettings[]): void
  report(): readonly ModelReport[]
  close(): Promise<void>
}

export function createRouter(parts: RouterParts): Router {
  const pools = new Map<string, WorkerPool>()
  const add = (sku: string, settings: readonly WorkerSettings[]): void => {
    pools.set(sku, new WorkerPool(settings.map((one) => new Worker(parts.clock, one))))
  }
  for (const [sku, settings] of parts.workers) add(sku, settings)
  const everyone = [...pools.values()].flatMap(({ workers }) => workers)
  const checks: HealthChecks = startHealthChecks(everyone, parts.health, parts.clock, parts.log)
  return {
    async open(request) {
      const pool = pools.get(request.model) ?? emptyPool
      const { policy, visible } = await parts.policies.of(request.organizationId)
      const plan = planRoute({
        policy,
        regions: parts.regions,
        visible,
        hosts: (regionId) => pool.inRegion(regionId).length > 0,
        hint: request.hint,
        from: parts.from,
        latencyMs: (regionId) => Math.min(...pool.inRegion(regionId).map(({ latencyMs }) => latencyMs)),
      })
      pool.countRequest()
      return new RoutedRequest(parts, pool, request, plan)
    },
    add,
    report: () =>
      [...pools].map(([model, { workers }]) => ({
        model,
        workers: workers.map((worker) => worker.report()),
      })),
    close: async () => await checks.close(),
  }
}

/** One request: each piece of its work has a route of its own, and all of them end with it. */
class RoutedRequest implements Routed {
  readonly #parts: RouterParts
  readonly #pool: WorkerPool
  readonly #request: RouteRequest
  readonly #plan: readonly Region[]
  readonly #routes: Route[] = []
  /** One for all answers of the request: it knows which of them is the first. */
  #generator: RoutedGenerator | undefined

  constructor(parts: RouterParts, pool: WorkerPool, request: RouteRequest, plan: readonly Region[]) {
    this.#parts = parts
    this.#pool = pool
    this.#request = request
    this.#plan = plan
  }

  get scorer(): RoutedScorer {
    return routedScorer(() => this.#begin())
  }

  get generator(): RoutedGenerator {
    this.#generator ??= routedGenerator(() => this.#begin())
    return this.#generator
  }

  get embedder(): RoutedEmbedder {
    return routedEmbedder(() => this.#begin(), this.#request.organizationId)
  }

  close(): void {
    for (const route of this.#routes) route.close()
  }

  #begin(): Route {
    const { clock, queueWaitMs } = this.#parts
    const route = new Route({
      plan: this.#plan,
      pool: this.#pool,
      clock,
      queueWaitMs,
      onPlaced: (region) => this.#request.onPlaced?.(region),
      onFailure: (worker, error) => this.#failed(worker, error),
    })
    this.#routes.push(route)
    return route
  }

  #failed(worker: Worker, error: unknown): void {
    this.#parts.log.warn(
      { model: this.#request.model, worker: worker.id, region: worker.regionId, err: error },
      "a worker failed a request",
    )
  }
}

/** Of a model that runs nowhere: every region is found not to host it. */
const emptyPool = new WorkerPool([])
