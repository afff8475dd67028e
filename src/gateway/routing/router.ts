/**
 * Routes each request: plans its regions by policy, and runs its work at workers that are up, willing and not full, behind the engines'
 * own ports. Every worker is asked at intervals whether it can serve.
 */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Region } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type Embedded,
  type EmbedWork,
  type EngineCall,
  type GenerateCall,
  type GenerateEngine,
  type GenerateWork,
  type GenerationSizes,
  type Scored,
  type ScoreSize,
  type ScoreWork,
  noGenerationUsage,
} from "../../engine/engine.ts"
import { branchLength } from "../classification/classification.ts"
import type { RequestTrace } from "../telemetry.ts"
import { type Policies, planRoute } from "./plan.ts"
import type { LiveTraffic } from "./queue.ts"
import { type Load, Route } from "./route.ts"
import { type WorkerReport, type WorkerSettings, Worker, WorkerPool, JoinedSignal } from "./worker.ts"

interface RouterDeps {
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

/** The engines of one request, wherever it is planned to run. It must be closed, however the request ends. */
export interface Routed {
  score(work: ScoreWork, call: EngineCall): Promise<Scored>
  embed(work: EmbedWork, call: EngineCall): Promise<Embedded>
  /** Further ones are further answers to the same request: they share the slot of the first. */
  generate(work: GenerateWork, call: GenerateCall): ReturnType<GenerateEngine["generate"]>
  close(): void
}

interface ModelReport {
  readonly model: string
  readonly workers: readonly WorkerReport[]
}

export interface Router {
  /** Throws Fault `unknown_routing_hint`, `region_denied` or `routing_failed`. */
  open(request: RouteRequest): Promise<Routed>
  /** The most that scoring reads and writes at any worker of the model; null where that is not more than its texts. */
  sizeMost(sku: string, work: Pick<ScoreWork, "evidence" | "branches">): ScoreSize | null
  /** A model that was added to the catalog. */
  add(sku: string, workers: readonly WorkerSettings[]): void
  /** One that left it; what runs at its workers is finished. */
  remove(sku: string): void
  report(): readonly ModelReport[]
  /** The workers of these ids, and no others, get no new requests. */
  drain(workerIds: readonly string[]): void
  close(): Promise<void>
}

export function createRouter(deps: RouterDeps): Router {
  const pools = new Map<string, WorkerPool>()
  const checks = new HealthChecks(deps.health, deps.clock, deps.log)
  const add = (sku: string, settings: readonly WorkerSettings[]): void => {
    const pool = new WorkerPool(settings.map((one) => new Worker(deps.clock, one)))
    pools.set(sku, pool)
    for (const worker of pool.workers) checks.begin(worker)
  }
  for (const [sku, settings] of deps.workers) add(sku, settings)
  return {
    async open(request) {
      const { trace, isBatch } = request
      const leave = isBatch === true ? undefined : deps.liveTraffic?.enterLive()
      trace.enter("route")
      try {
        const pool = pools.get(request.model) ?? emptyPool
        const plan = planRoute({
          ...(await deps.policies.of(request.organizationId)),
          regions: deps.regions,
          from: deps.from,
          hint: request.hint,
          hosts: (regionId) => pool.inRegion(regionId).length > 0,
          latencyMs: (regionId) => Math.min(...pool.inRegion(regionId).map(({ latencyMs }) => latencyMs)),
        })
        pool.countRequest()
        return new RoutedRequest({ ...deps, pool, request, plan, leave })
      } catch (error) {
        leave?.()
        throw error
      } finally {
        trace.leave("route")
      }
    },
    add,
    remove: (sku) => {
      for (const worker of pools.get(sku)?.workers ?? []) checks.end(worker)
      pools.delete(sku)
    },
    sizeMost: (sku, work) => {
      const sizes = (pools.get(sku)?.workers ?? []).flatMap(
        ({ engines }) => engines.scorer?.sizeMost?.(work) ?? [],
      )
      return sizes.reduce<ScoreSize | null>(
        (most, { inputTokens, outputTokens }) => ({
          inputTokens: Math.max(most?.inputTokens ?? 0, inputTokens),
          outputTokens: Math.max(most?.outputTokens ?? 0, outputTokens),
        }),
        null,
      )
    },
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

/** Of a model that runs nowhere: every region is found not to host it. */
const emptyPool = new WorkerPool([])

/** English text has about four bytes a token; enough to balance by until the request is tokenised. */
const bytesPerToken = 4
/** What a request with an open end is expected to write. */
const outputTokensExpected = 512
/** How many messages name the prefix of a conversation: the instructions and what it began with. */
const namingMessages = 2

interface RequestDeps extends Pick<RouterDeps, "clock" | "log" | "queueWaitMs"> {
  readonly pool: WorkerPool
  readonly request: RouteRequest
  readonly plan: readonly Region[]
  /** Ends it as live traffic. */
  readonly leave?: (() => void) | undefined
}

/** One request: each piece of its work has a route of its own, and all of them end with it. */
export class RoutedRequest implements Routed {
  readonly #deps: RequestDeps
  readonly #routes: Pick<Route, "close">[] = []
  #hasSlot = false

  constructor(deps: RequestDeps) {
    this.#deps = deps
  }

  async score(work: ScoreWork, call: EngineCall): Promise<Scored> {
    const { organizationId, evidence, branches } = work
    const bytes = branches.reduce((sum, branch) => sum + branchLength(branch), evidence.length)
    const route = this.#route<number>({
      slot: { organizationId, tokens: Math.ceil(bytes / bytesPerToken), isReady: true },
      sharesSlot: false,
      prefix: evidence,
      tokensOf: (inputTokens) => inputTokens,
    })
    return await route.run(call, async ({ scorer }, at) => await offered(scorer).score(work, at))
  }

  async embed(work: EmbedWork, call: EngineCall): Promise<Embedded> {
    const { organizationId } = this.#deps.request
    const tokens = work.inputs.reduce(
      (sum, input) => sum + (typeof input === "string" ? input.length / bytesPerToken : input.length),
      0,
    )
    const route = this.#route<number>({
      slot: { organizationId, tokens: Math.ceil(tokens), isReady: true },
      sharesSlot: false,
      prefix: null,
      tokensOf: (inputTokens) => inputTokens,
    })
    return await route.run(call, async ({ embedder }, at) => await offered(embedder).embed(work, at))
  }

  generate(work: GenerateWork, call: GenerateCall): ReturnType<GenerateEngine["generate"]> {
    const { organizationId } = work
    const route = this.#route<GenerationSizes>({
      slot: { organizationId, tokens: Math.ceil(expectedTokens(work)), isReady: false },
      sharesSlot: this.#hasSlot,
      prefix: prefixOf(work),
      tokensOf: ({ inputTokensMost, outputTokensMost }) =>
        inputTokensMost + Math.min(outputTokensMost, outputTokensExpected),
    })
    this.#hasSlot = true
    let attempts = 0
    return route.stream(call, ({ generator }, at) => {
      const attempt = ++attempts
      call.onUsage(noGenerationUsage)
      return offered(generator).generate(work, {
        ...at,
        // One that was left may still say what it used.
        onUsage: (usage) => attempt === attempts && call.onUsage(usage),
      })
    })
  }

  close(): void {
    this.#deps.leave?.()
    for (const route of this.#routes) route.close()
  }

  #route<Size>(load: Load<Size>): Route<Size> {
    const { request, log, ...deps } = this.#deps
    const { model, trace, onPlaced } = request
    const route = new Route<Size>(
      {
        ...deps,
        trace,
        onPlaced: (region) => onPlaced?.(region),
        onFailure: (worker, error) =>
          log.warn(
            { model, worker: worker.id, region: worker.regionId, err: error },
            "a worker failed a request",
          ),
      },
      load,
    )
    this.#routes.push(route)
    return route
  }
}

function offered<Engine>(engine: Engine | undefined): Engine {
  if (engine) return engine
  throw new Fault(
    "invalid_request",
    "Cannot run the request: the model's workers do not offer this operation",
  )
}

function expectedTokens({ messages, outputTokensMax }: GenerateWork): number {
  const bytes = messages.reduce((sum, { content }) => sum + content.length, 0)
  return bytes / bytesPerToken + Math.min(outputTokensMax ?? outputTokensExpected, outputTokensExpected)
}

/** What later requests of a conversation have in common with this one. */
export const prefixOf = ({ messages }: GenerateWork): string =>
  messages
    .slice(0, namingMessages)
    .map(({ role, content }) => `${role}\n${content}`)
    .join("\n")

interface HealthOptions {
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Failed checks in a row after which a worker is down. */
  readonly failuresMax: number
}

/** One loop for each worker that can be asked. */
class HealthChecks {
  readonly #options: HealthOptions
  readonly #clock: Clock
  readonly #log: Log
  readonly #loops = new Map<Worker, { readonly stop: AbortController; readonly ended: Promise<void> }>()

  constructor(options: HealthOptions, clock: Clock, log: Log) {
    this.#options = options
    this.#clock = clock
    this.#log = log
  }

  begin(worker: Worker): void {
    if (!worker.engines.check) return
    const stop = new AbortController()
    this.#loops.set(worker, { stop, ended: this.#run(worker, stop.signal) })
  }

  end(worker: Worker): void {
    this.#loops.get(worker)?.stop.abort()
    this.#loops.delete(worker)
  }

  async close(): Promise<void> {
    const loops = [...this.#loops.values()]
    for (const { stop } of loops) stop.abort()
    await Promise.all(loops.map(({ ended }) => ended))
  }

  async #run(worker: Worker, stop: AbortSignal): Promise<void> {
    const health = new Health(worker, this.#options, this.#clock, this.#log)
    while (!stop.aborted) {
      await health.check(stop)
      await wait(this.#options.intervalMs, undefined, { signal: stop, ref: false }).catch(() => undefined)
    }
  }
}

/** What the checks of one worker have found so far. */
export class Health {
  readonly #worker: Worker
  readonly #options: HealthOptions
  readonly #clock: Clock
  readonly #log: Log
  #failuresInRow = 0

  constructor(worker: Worker, options: HealthOptions, clock: Clock, log: Log) {
    this.#worker = worker
    this.#options = options
    this.#clock = clock
    this.#log = log
  }

  async check(stop: AbortSignal): Promise<void> {
    const startedMs = this.#clock.monotonicMs()
    const limit = new JoinedSignal(stop)
    const timer = setTimeout(
      () => limit.abort(new Error("no answer in time")),
      this.#options.timeoutMs,
    ).unref()
    try {
      await limit.until(this.#worker.engines.check?.(limit.signal) ?? Promise.resolve())
    } catch (error) {
      if (!stop.aborted) this.#failed(error, startedMs)
      return
    } finally {
      clearTimeout(timer)
      limit.release()
    }
    this.#passed(this.#clock.monotonicMs() - startedMs)
  }

  #passed(latencyMs: number): void {
    this.#failuresInRow = 0
    this.#worker.measured(latencyMs)
    if (!this.#worker.isDown) return
    this.#worker.markUp()
    this.#log.info({ worker: this.#worker.id, region: this.#worker.regionId }, "a worker is back")
  }

  #failed(error: unknown, startedMs: number): void {
    // Too busy to answer a check in time, but it answers requests: that is not dead.
    if (this.#worker.lastAnswerMs >= startedMs) return
    this.#failuresInRow++
    if (this.#failuresInRow < this.#options.failuresMax || this.#worker.isDown) return
    this.#worker.markDown(error)
    this.#log.warn({ worker: this.#worker.id, region: this.#worker.regionId, err: error }, "a worker is down")
  }
}
