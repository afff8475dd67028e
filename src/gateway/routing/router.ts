/** Routes each request: plans its regions by policy, and runs its work at workers that are up, willing and not full, behind the engines' own ports. */
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Region } from "../../base/regions.ts"
import { Fault } from "../../contract/errors.ts"
import type {
  EmbedEngine,
  EmbedWork,
  EvidenceReading,
  GenerateEngine,
  GenerateWork,
  GenerationEvent,
  PreparedEmbedding,
  PreparedGeneration,
  PreparedScore,
  ScoreEngine,
} from "../../engine/engine.ts"
import { branchLength } from "../classification/classification.ts"
import { type HealthChecks, type HealthOptions, startHealthChecks } from "./health.ts"
import { type Placed, type Work, Route } from "./route.ts"
import { type OrganizationRouting, type Policies, planRoute } from "./plan.ts"
import type { LiveTraffic } from "./queue.ts"
import type { RequestTrace } from "../telemetry.ts"
import { type WorkerReport, type WorkerSettings, Worker, WorkerPool } from "./worker.ts"

interface RouterParts {
  readonly regions: readonly Region[]
  /** Where this gateway stands. */
  readonly from: Region | null
  /** The workers of each model, by its SKU. */
  readonly workers: ReadonlyMap<string, readonly WorkerSettings[]>
  readonly policies: Policies
  readonly clock: Clock
  readonly log: Log
  readonly health: HealthOptions
  /** How long a request may wait for a place. */
  readonly queueWaitMs: number
  /** Told of live requests, where lines of batches wait for them. */
  readonly liveTraffic?: Pick<LiveTraffic, "enterLive">
}

export interface RouteRequest {
  readonly model: string
  readonly organizationId: string
  /** The region that the request asks for. */
  readonly hint: string | null
  /** A line of a batch, which lets live requests go first. */
  readonly isBatch?: boolean
  /** Told where the request spends its time. */
  readonly trace: RequestTrace
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
  /** The workers of these ids, and no others, get no new requests. */
  drain(workerIds: readonly string[]): void
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
      const { trace, isBatch } = request
      const leave = isBatch === true ? undefined : parts.liveTraffic?.enterLive()
      trace.enter("route")
      try {
        const pool = pools.get(request.model) ?? emptyPool
        const routing = await parts.policies.of(request.organizationId)
        const plan = planFor(parts, pool, request, routing)
        pool.countRequest()
        return new RoutedRequest(parts, pool, request, plan, leave)
      } catch (error) {
        leave?.()
        throw error
      } finally {
        trace.leave("route")
      }
    },
    add,
    report: () =>
      [...pools].map(([model, { workers }]) => ({
        model,
        workers: workers.map((worker) => worker.report()),
      })),
    drain: (workerIds) => {
      for (const { workers } of pools.values())
        for (const worker of workers) worker.isDrained = workerIds.includes(worker.id)
    },
    close: async () => await checks.close(),
  }
}

function planFor(
  { regions, from }: RouterParts,
  pool: WorkerPool,
  { hint }: RouteRequest,
  { policy, visible }: OrganizationRouting,
): readonly Region[] {
  return planRoute({
    policy,
    regions,
    visible,
    hosts: (regionId) => pool.inRegion(regionId).length > 0,
    hint,
    from,
    latencyMs: (regionId) => Math.min(...pool.inRegion(regionId).map(({ latencyMs }) => latencyMs)),
  })
}

/** One request: each piece of its work has a route of its own, and all of them end with it. */
class RoutedRequest implements Routed {
  readonly #parts: RouterParts
  readonly #pool: WorkerPool
  readonly #request: RouteRequest
  readonly #plan: readonly Region[]
  /** Ends it as live traffic. */
  readonly #leave: (() => void) | undefined
  readonly #routes: Route[] = []
  /** One for all answers of the request: it knows which of them is the first. */
  #generator: RoutedGenerator | undefined

  constructor(
    parts: RouterParts,
    pool: WorkerPool,
    request: RouteRequest,
    plan: readonly Region[],
    leave: (() => void) | undefined,
  ) {
    this.#parts = parts
    this.#pool = pool
    this.#request = request
    this.#plan = plan
    this.#leave = leave
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
    this.#leave?.()
    for (const route of this.#routes) route.close()
  }

  #begin(): Route {
    const { clock, queueWaitMs } = this.#parts
    const route = new Route({
      plan: this.#plan,
      pool: this.#pool,
      clock,
      queueWaitMs,
      trace: this.#request.trace,
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

type RoutedScorer = Pick<ScoreEngine, "prepare">
type RoutedGenerator = Pick<GenerateEngine, "prepare">
type RoutedEmbedder = Pick<EmbedEngine, "prepare">

/** English text has about four bytes a token; enough to balance by until the request is tokenised. */
const bytesPerToken = 4
/** What a request with an open end is expected to write. */
const outputTokensExpected = 512
/** How many messages name the prefix of a conversation: the instructions and what it began with. */
const namingMessages = 2

/** Begins a route of its own for each piece of work of a request. */
export type NewRoute = () => Route

export function routedScorer(newRoute: NewRoute): RoutedScorer {
  return {
    prepare(work, signal) {
      const { organizationId, evidence, branches } = work
      const bytes = branches.reduce((sum, branch) => sum + branchLength(branch), evidence.length)
      return RoutedWork.place<Float64Array, PreparedScore>(
        newRoute(),
        {
          slot: { organizationId, tokens: Math.ceil(bytes / bytesPerToken), isReady: true },
          sharesSlot: false,
          prefix: evidence,
          prepare: (engines, either) => prepareAt(engines.scorer, work, either),
        },
        signal,
      )
    },
  }
}

function routedEmbedder(newRoute: NewRoute, organizationId: string): RoutedEmbedder {
  return {
    prepare(work: EmbedWork, signal) {
      const tokens = work.inputs.reduce(
        (sum, input) => sum + (typeof input === "string" ? input.length / bytesPerToken : input.length),
        0,
      )
      return RoutedWork.place<readonly Float32Array[], PreparedEmbedding>(
        newRoute(),
        {
          slot: { organizationId, tokens: Math.ceil(tokens), isReady: true },
          sharesSlot: false,
          prefix: null,
          prepare: (engines, either) => prepareAt(engines.embedder, work, either),
        },
        signal,
      )
    },
  }
}

/** Work that is prepared at a worker and answers all at once. */
interface Runnable<Result> {
  readonly inputTokens: number
  /** Of work that scores. */
  readonly reading?: EvidenceReading | undefined
  run(signal: AbortSignal): Promise<Result>
  discard(): void
}

/** Work that was prepared at a worker, and runs at one after the other until one answers. */
class RoutedWork<Result, Prepared extends Runnable<Result>> {
  readonly #route: Route
  readonly #work: Work<Prepared>
  #placed: Placed<Prepared>

  static async place<Result, Prepared extends Runnable<Result>>(
    route: Route,
    work: Work<Prepared>,
    signal: AbortSignal,
  ): Promise<RoutedWork<Result, Prepared>> {
    return new RoutedWork<Result, Prepared>(route, work, await route.place(work, signal))
  }

  private constructor(route: Route, work: Work<Prepared>, placed: Placed<Prepared>) {
    this.#route = route
    this.#work = work
    this.#placed = placed
    placed.attempt.measured(placed.prepared.inputTokens)
  }

  /** At the worker that has it now. */
  get inputTokens(): number {
    return this.#placed.prepared.inputTokens
  }

  get reading(): Prepared["reading"] {
    return this.#placed.prepared.reading
  }

  async run(signal: AbortSignal): Promise<Result> {
    for (;;) {
      const { attempt, prepared } = this.#placed
      try {
        const result = await attempt.step(signal, (either) => prepared.run(either))
        attempt.succeeded()
        return result
      } catch (error) {
        this.#route.failed(attempt, error, signal)
      }
      this.#placed = await this.#route.place(this.#work, signal)
      this.#placed.attempt.measured(this.#placed.prepared.inputTokens)
    }
  }

  discard(): void {
    this.#placed.prepared.discard()
    this.#placed.attempt.abandon()
  }
}

export function routedGenerator(newRoute: NewRoute): RoutedGenerator {
  let sharesSlot = false
  return {
    async prepare(request, signal) {
      const route = newRoute()
      const { organizationId } = request
      const work: Work<PreparedGeneration> = {
        slot: { organizationId, tokens: Math.ceil(expectedTokens(request)), isReady: false },
        sharesSlot,
        prefix: prefixOf(request),
        prepare: (engines, either) => prepareAt(engines.generator, request, either),
      }
      sharesSlot = true
      let placed = await route.place(work, signal)
      const { inputTokensMost, outputTokensMost, notEnforced, isHandedOn } = placed.prepared
      placed.attempt.measured(inputTokensMost + Math.min(outputTokensMost, outputTokensExpected))
      return {
        inputTokensMost,
        outputTokensMost,
        notEnforced,
        isHandedOn,
        usage: () => placed.prepared.usage(),
        run: (outputTokensMax, runSignal) =>
          generate(route, placed, outputTokensMax, runSignal, async () => {
            placed = await route.place(work, runSignal)
            return placed
          }),
        discard: () => {
          placed.prepared.discard()
          placed.attempt.abandon()
        },
      }
    },
  }
}

/** At one worker after the other up to the first event. After it a failure is the caller's to see: half an answer is not begun anew. */
async function* generate(
  route: Route,
  first: Placed<PreparedGeneration>,
  outputTokensMax: number,
  signal: AbortSignal,
  again: () => Promise<Placed<PreparedGeneration>>,
): AsyncGenerator<GenerationEvent> {
  for (let placed = first; ; placed = await again()) {
    const { attempt, prepared } = placed
    const either = attempt.joined(signal)
    const events = prepared.run(outputTokensMax, either.signal)[Symbol.asyncIterator]()
    let isStarted = false
    let isOver = false
    try {
      for (;;) {
        const next = await attempt.inEngine(() => either.until(events.next()))
        if (next.done) break
        attempt.started()
        isStarted = true
        yield next.value
      }
      isOver = true
      attempt.succeeded()
      return
    } catch (error) {
      isOver = true
      route.failed(attempt, error, signal)
      if (isStarted) throw error
    } finally {
      // A reader that leaves ends the work and gives back the slot.
      if (!isOver) {
        either.abort(new Fault("inference_failed", "Cannot continue: the stream is no longer read"))
        await events.return?.()
      }
      attempt.abandon()
    }
  }
}

function expectedTokens({ messages, outputTokensMax }: GenerateWork): number {
  const bytes = messages.reduce((sum, { content }) => sum + content.length, 0)
  return bytes / bytesPerToken + Math.min(outputTokensMax ?? outputTokensExpected, outputTokensExpected)
}

function prefixOf({ messages }: GenerateWork): string {
  return messages
    .slice(0, namingMessages)
    .map(({ role, content }) => `${role}\n${content}`)
    .join("\n")
}

/** What prepares work of a kind. */
interface Preparer<Request, Prepared> {
  prepare(request: Request, signal: AbortSignal): Promise<Prepared>
}

function prepareAt<Request, Prepared>(
  engine: Preparer<Request, Prepared> | undefined,
  request: Request,
  signal: AbortSignal,
): Promise<Prepared> {
  if (engine) return engine.prepare(request, signal)
  throw new Fault(
    "invalid_request",
    "Cannot run the request: the model's workers do not offer this operation",
  )
}
