/** Turns, so that what one sends keeps no other waiting: between owners, such as organizations, and between the work of one thread. */

/** So many owners are remembered by their last turn; one that is forgotten counts as new. */
const ownersMax = 10_000

export class FairTurns {
  readonly #perOwnerMax: number
  readonly #running = new Map<string, number>()
  /** By owner, the latest at the end. */
  readonly #lastTurns = new Map<string, number>()
  #turns = 0

  constructor(perOwnerMax = Infinity) {
    this.#perOwnerMax = perOwnerMax
  }

  running(owner: string): number {
    return this.#running.get(owner) ?? 0
  }

  /** The owner with the fewest running, and among equals the one whose turn was longest ago; none when all run their most. */
  next(owners: Iterable<string>): string | undefined {
    let best: string | undefined
    for (const owner of owners)
      if (this.running(owner) < this.#perOwnerMax && (best === undefined || this.#compare(owner, best) < 0))
        best = owner
    return best
  }

  /** Takes a turn; the returned function ends it. */
  begin(owner: string): () => void {
    this.#running.set(owner, this.running(owner) + 1)
    this.#lastTurns.delete(owner)
    this.#lastTurns.set(owner, ++this.#turns)
    const [oldest] = this.#lastTurns.keys()
    if (this.#lastTurns.size > ownersMax && oldest !== undefined) this.#lastTurns.delete(oldest)
    return () => {
      const left = this.running(owner) - 1
      if (left > 0) this.#running.set(owner, left)
      else this.#running.delete(owner)
    }
  }

  #compare(a: string, b: string): number {
    const byRunning = this.running(a) - this.running(b)
    return byRunning === 0 ? (this.#lastTurns.get(a) ?? 0) - (this.#lastTurns.get(b) ?? 0) : byRunning
  }
}

/** What a party was given, compared only among those that are at work now. */
export interface Share {
  servedTokens: number
}

/** Where a newcomer starts: level with the least served of those at work, so that time spent away earns nothing. */
export function levelOf(working: Iterable<Share>): number {
  let least = Infinity
  for (const { servedTokens } of working) least = Math.min(least, servedTokens)
  return Number.isFinite(least) ? least : 0
}

/** A browser holds timers back; its messages come at once. */
const { port1, port2 } = typeof setImmediate === "undefined" ? new MessageChannel() : {}
const waiting: (() => void)[] = []
port1?.addEventListener("message", () => waiting.shift()?.())
port1?.start()

/** Lets others of this thread have their turn: messages that wait are read before work goes on. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (!port2) return void setImmediate(resolve)
    waiting.push(resolve)
    port2.postMessage(null)
  })
