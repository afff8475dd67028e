/**
 * Lets live requests go first: lines of batches run freely only while no live request runs or ran a moment ago. Beside live
 * traffic they get a small share of the time, one by one, so that a batch ends although there is always someone.
 */
import type { Clock } from "../../base/clock.ts"
import type { RouteRequest, Routed, Router } from "./router.ts"

export interface LiveTrafficOptions {
  /** Of the time, beside live traffic, from above 0 to 1. */
  readonly batchShare: number
  readonly quietMs?: number
}

/** Someone who asks more often than this is there all the time. */
const quietMsDefault = 2_000
/** A long line does not keep the next one out for hours. */
const gapMsMax = 60_000
const lookEveryMs = 50

export class LiveTraffic {
  readonly #clock: Pick<Clock, "monotonicMs">
  readonly #share: number
  readonly #quietMs: number
  #live = 0
  #lastLiveMs = -Infinity
  #lines = 0
  #nextLineMs = -Infinity

  constructor(
    clock: Pick<Clock, "monotonicMs">,
    { batchShare, quietMs = quietMsDefault }: LiveTrafficOptions,
  ) {
    this.#clock = clock
    this.#share = batchShare
    this.#quietMs = quietMs
  }

  /** Counts what the router opens, but for lines of batches. */
  count(router: Pick<Router, "open">): Pick<Router, "open"> {
    return {
      open: async (request) => {
        if (request.isBatch === true) return await router.open(request)
        return await this.#openLive(router, request)
      },
    }
  }

  /** Resolves when a line of a batch may run; the returned function says that it has. Rejects with the signal's reason. */
  async enterLine(signal: AbortSignal): Promise<() => void> {
    for (;;) {
      signal.throwIfAborted()
      const waitMs = this.#waitMs()
      if (waitMs <= 0) return this.#begin()
      await sleep(Math.min(waitMs, lookEveryMs), signal)
    }
  }

  async #openLive(router: Pick<Router, "open">, request: RouteRequest): Promise<Routed> {
    this.#live++
    let isOpen = true
    const end = (): void => {
      if (!isOpen) return
      isOpen = false
      this.#live--
      this.#lastLiveMs = this.#clock.monotonicMs()
    }
    try {
      return withClose(await router.open(request), end)
    } catch (error) {
      end()
      throw error
    }
  }

  #isQuiet(): boolean {
    return this.#live === 0 && this.#clock.monotonicMs() - this.#lastLiveMs >= this.#quietMs
  }

  #waitMs(): number {
    if (this.#isQuiet() || this.#share >= 1) return 0
    return this.#lines > 0 ? lookEveryMs : this.#nextLineMs - this.#clock.monotonicMs()
  }

  #begin(): () => void {
    const startedMs = this.#clock.monotonicMs()
    this.#lines++
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#lines--
      const nowMs = this.#clock.monotonicMs()
      const gapMs = (nowMs - startedMs) * (1 / this.#share - 1)
      this.#nextLineMs = nowMs + Math.min(gapMs, gapMsMax)
    }
  }
}

function withClose(routed: Routed, end: () => void): Routed {
  return {
    get scorer() {
      return routed.scorer
    },
    get generator() {
      return routed.generator
    },
    get embedder() {
      return routed.embedder
    },
    close: () => {
      end()
      routed.close()
    },
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop)
      resolve()
    }, ms)
    signal.addEventListener("abort", stop, { once: true })
  })
}
