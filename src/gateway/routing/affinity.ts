/** Remembers which worker last evaluated a prefix, and chooses between that one and the least busy one. */
import { hash } from "node:crypto"
import type { Worker } from "./worker.ts"

/** Prefixes remembered per model; a worker's own cache holds far fewer. */
const rememberedMax = 10_000

/** What two requests share when the later one finds its prefix evaluated. */
export function prefixKey(organizationId: string, prefix: string): string {
  return hash("sha256", `${organizationId}\n${prefix}`, "base64")
}

export class PrefixAffinity {
  readonly #workers = new Map<string, Worker>()

  /** The last to be used are remembered. */
  remember(key: string, worker: Worker): void {
    this.#workers.delete(key)
    if (this.#workers.size >= rememberedMax) {
      const oldest = this.#workers.keys().next().value
      if (oldest !== undefined) this.#workers.delete(oldest)
    }
    this.#workers.set(key, worker)
  }

  /**
   * The worker with the fewest outstanding tokens; or the one that has the prefix, as long as what it has to do more
   * than the other is less than evaluating the prefix anew (`tokens`). Ties go to the quicker, then to the first.
   */
  choose(candidates: readonly Worker[], key: string | null, tokens: number): Worker | undefined {
    let least: Worker | undefined
    for (const worker of candidates) if (!least || isLessBusy(worker, least)) least = worker
    const known = key === null ? undefined : this.#workers.get(key)
    if (!least || !known || !candidates.includes(known)) return least
    const extraTokens = known.queue.outstandingTokens - least.queue.outstandingTokens
    return extraTokens <= tokens ? known : least
  }
}

function isLessBusy(a: Worker, b: Worker): boolean {
  const between = a.queue.outstandingTokens - b.queue.outstandingTokens
  return between === 0 ? a.latencyMs < b.latencyMs : between < 0
}
