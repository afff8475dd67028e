/** The workers of one model: which of them suits a request best, and how many retries their failures may cause. */
import { hash } from "node:crypto"
import type { Worker } from "./worker.ts"

export interface RetryBudget {
  /** Retries allowed per request, in the long run. */
  readonly ratio: number
  /** Retries that may be saved up: what a sudden failure of a worker may cost at once. */
  readonly savedMax: number
}

const standardRetries: RetryBudget = { ratio: 0.2, savedMax: 200 }
/** Prefixes remembered per model; a worker's own cache holds far fewer. */
const prefixesMax = 10_000

export class WorkerPool {
  readonly workers: readonly Worker[]
  readonly #byRegion: ReadonlyMap<string, readonly Worker[]>
  /** The worker that last evaluated a prefix, the least recently used first. */
  readonly #prefixes = new Map<string, Worker>()
  readonly #retries: RetryBudget
  #retriesLeft: number

  constructor(workers: readonly Worker[], retries: RetryBudget = standardRetries) {
    this.workers = workers
    this.#byRegion = Map.groupBy(workers, ({ regionId }) => regionId)
    this.#retries = retries
    this.#retriesLeft = retries.savedMax
  }

  inRegion(regionId: string): readonly Worker[] {
    return this.#byRegion.get(regionId) ?? []
  }

  /** A request came, which earns a part of a retry: a failing worker is not answered with a multiple of the load. */
  countRequest(): void {
    this.#retriesLeft = Math.min(this.#retries.savedMax, this.#retriesLeft + this.#retries.ratio)
  }

  /** Whether one more try may be made; then it is taken from the budget. */
  takeRetry(): boolean {
    if (this.#retriesLeft < 1) return false
    this.#retriesLeft--
    return true
  }

  /** What two requests share when the later one finds its prefix evaluated; null where there is no choice of workers. */
  prefixKey(organizationId: string, prefix: string | null): string | null {
    if (prefix === null || this.workers.length < 2) return null
    return hash("sha256", `${organizationId}\n${prefix}`, "base64")
  }

  rememberPrefix(key: string, worker: Worker): void {
    this.#prefixes.delete(key)
    const oldest = this.#prefixes.keys().next().value
    if (oldest !== undefined && this.#prefixes.size >= prefixesMax) this.#prefixes.delete(oldest)
    this.#prefixes.set(key, worker)
  }

  /**
   * The candidate with the fewest outstanding tokens; or the one that has the prefix, as long as what it has to do more
   * than the other is less than evaluating the prefix anew (`tokens`). Ties go to the quicker, then to the first.
   */
  choose(candidates: readonly Worker[], prefixKey: string | null, tokens: number): Worker | undefined {
    let least: Worker | undefined
    for (const worker of candidates) if (!least || isLessBusy(worker, least)) least = worker
    const known = prefixKey === null ? undefined : this.#prefixes.get(prefixKey)
    if (!least || !known || !candidates.includes(known)) return least
    const extraTokens = known.queue.outstandingTokens - least.queue.outstandingTokens
    return extraTokens <= tokens ? known : least
  }
}

function isLessBusy(a: Worker, b: Worker): boolean {
  const between = a.queue.outstandingTokens - b.queue.outstandingTokens
  return between === 0 ? a.latencyMs < b.latencyMs : between < 0
}
