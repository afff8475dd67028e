/**
 * Who runs when: the slots of a worker with the bounded queue before them, fair between organizations and with room for small
 * requests; and live traffic, which goes before the lines of batches.
 */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import { FairTurns } from "../../base/turns.ts"
import { Fault } from "../../contract/errors.ts"

export interface QueueOptions {
  readonly slotsMax: number
  readonly waitingMax: number
}

/** What a request asks of a worker. */
export interface SlotRequest {
  readonly organizationId: string
  /** An estimate until the request is tokenised. */
  readonly tokens: number
  /** Whether its work is all there from the start, as branches are; tokens that are generated come one by one. */
  readonly isReady?: boolean
}

/** A slot of the worker; it must be released, once or more often. */
export interface Slot {
  /** What the request turned out to need. */
  resize(tokens: number): void
  release(): void
}

/** A request of more tokens is large: one of 4096 branches is, one of a few questions about a page is not. */
export const largeTokensMin = 8_192
/** Large requests hold at most this share of the slots, so that small ones always find some. */
const largeShare = 0.5
/**
 * Large requests whose work is all there from the start keep an engine busy alone: side by side they would all take as
 * long as the last of them, one after the other the first is done early. So many tokens of them run together, or one.
 */
const readyTokensMax = 65_536
/** One organization holds at most this share of the slots and of the queue. */
const organizationShare = 0.75
const retryAfterMsMin = 1_000
const retryAfterMsMax = 30_000
/** How much the latest request counts in the running mean of how long a slot is held. */
const heldWeight = 0.1

interface Waiter {
  readonly request: SlotRequest
  readonly isLarge: boolean
  readonly admit: (slot: Slot) => void
}

export class SlotQueue {
  readonly #options: QueueOptions
  readonly #clock: Clock
  readonly #turns: FairTurns
  readonly #waiters: Waiter[] = []
  #running = 0
  #largeRunning = 0
  #readyTokens = 0
  #tokens = 0
  #heldMs = 0

  constructor(clock: Clock, options: QueueOptions) {
    this.#clock = clock
    this.#options = options
    this.#turns = new FairTurns(shareOf(options.slotsMax, organizationShare))
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiters.length
  }

  /** Of everything that runs or waits. */
  get outstandingTokens(): number {
    return this.#tokens
  }

  /** A slot that is free now; null when the request would have to wait. */
  take(request: SlotRequest): Slot | null {
    const isLarge = request.tokens >= largeTokensMin
    // No waiting request could run now, so a new one overtakes only those whose organization has used its share.
    if (!this.#hasRoom(request, isLarge) || this.#turns.next([request.organizationId]) === undefined)
      return null
    this.#tokens += request.tokens
    return this.#start(request, isLarge)
  }

  /** Rejects with `overloaded` at once when there is no room, and with the signal's reason when it is aborted first. */
  async acquire(request: SlotRequest, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted()
    const slot = this.take(request)
    if (slot) return slot
    const { waitingMax } = this.#options
    const own = this.#waiters.filter(
      ({ request: { organizationId } }) => organizationId === request.organizationId,
    )
    if (this.#waiters.length >= waitingMax || own.length >= shareOf(waitingMax, organizationShare))
      throw this.full()
    return await this.#wait(request, signal)
  }

  /** For the further answers that one request wants: they count as load, and need no slot beside the one it has. */
  share(request: SlotRequest): Slot {
    this.#tokens += request.tokens
    return new HeldSlot(this, request, null)
  }

  /** How long until a request that is refused now can expect a slot. */
  retryAfterMs(): number {
    const expectedMs = (this.#heldMs * (this.#waiters.length + 1)) / this.#options.slotsMax
    return Math.min(retryAfterMsMax, Math.max(retryAfterMsMin, Math.round(expectedMs)))
  }

  async #wait(request: SlotRequest, signal: AbortSignal): Promise<Slot> {
    const admitted = Promise.withResolvers<Slot>()
    const isLarge = request.tokens >= largeTokensMin
    const waiter: Waiter = { request, isLarge, admit: admitted.resolve }
    const leave = (): void => {
      if (!this.#remove(waiter)) return
      this.#tokens -= request.tokens
      admitted.reject(signal.reason)
    }
    this.#waiters.push(waiter)
    this.#tokens += request.tokens
    signal.addEventListener("abort", leave, { once: true })
    try {
      return await admitted.promise
    } finally {
      signal.removeEventListener("abort", leave)
    }
  }

  full(): Fault {
    return new Fault("overloaded", "Cannot take the request: every slot for it is taken; try again later", {
      retryAfterMs: this.retryAfterMs(),
    })
  }

  #start(request: SlotRequest, isLarge: boolean): Slot {
    this.#running++
    if (isLarge) this.#largeRunning++
    const isWeighed = isLarge && request.isReady === true
    if (isWeighed) this.#readyTokens += request.tokens
    const endTurn = this.#turns.begin(request.organizationId)
    return new HeldSlot(this, request, { endTurn, isLarge, isWeighed, startedMs: this.#clock.monotonicMs() })
  }

  /** Told by a slot of what it turned out to need. */
  resized(byTokens: number, isWeighed: boolean): void {
    this.#tokens += byTokens
    if (isWeighed) this.#readyTokens += byTokens
  }

  /** Told by a slot that it is free. */
  left({ endTurn, isLarge, startedMs }: Occupied): void {
    this.#running--
    if (isLarge) this.#largeRunning--
    endTurn()
    this.#learn(this.#clock.monotonicMs() - startedMs)
    this.#admitNext()
  }

  #learn(heldMs: number): void {
    this.#heldMs = this.#heldMs === 0 ? heldMs : this.#heldMs + heldWeight * (heldMs - this.#heldMs)
  }

  #admitNext(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const { request, isLarge, admit } = next
      this.#remove(next)
      admit(this.#start(request, isLarge))
    }
  }

  /** Of the first in line of each organization that there is room for. */
  #next(): Waiter | undefined {
    const first = new Map<string, Waiter>()
    for (const waiter of this.#waiters) {
      const { request, isLarge } = waiter
      if (!first.has(request.organizationId) && this.#hasRoom(request, isLarge))
        first.set(request.organizationId, waiter)
    }
    return first.get(this.#turns.next(first.keys()) ?? "")
  }

  #hasRoom({ tokens, isReady }: SlotRequest, isLarge: boolean): boolean {
    const { slotsMax } = this.#options
    if (this.#running >= slotsMax) return false
    if (!isLarge) return true
    if (isReady && this.#readyTokens > 0 && this.#readyTokens + tokens > readyTokensMax) return false
    return this.#largeRunning < shareOf(slotsMax, largeShare)
  }

  #remove(waiter: Waiter): boolean {
    const at = this.#waiters.indexOf(waiter)
    if (at >= 0) this.#waiters.splice(at, 1)
    return at >= 0
  }
}

/** What a request that runs takes up. */
interface Occupied {
  readonly endTurn: () => void
  readonly isLarge: boolean
  readonly isWeighed: boolean
  readonly startedMs: number
}

class HeldSlot implements Slot {
  readonly #queue: SlotQueue
  /** Null for one that shares the slot of another. */
  readonly #occupied: Occupied | null
  #tokens: number
  #isHeld = true

  constructor(queue: SlotQueue, { tokens }: SlotRequest, occupied: Occupied | null) {
    this.#queue = queue
    this.#occupied = occupied
    this.#tokens = tokens
  }

  resize(tokens: number): void {
    if (!this.#isHeld) return
    this.#queue.resized(tokens - this.#tokens, this.#occupied?.isWeighed === true)
    this.#tokens = tokens
  }

  release(): void {
    if (!this.#isHeld) return
    this.resize(0)
    this.#isHeld = false
    if (this.#occupied) this.#queue.left(this.#occupied)
  }
}

/** Never all of it where there is more than one, and never none. */
function shareOf(total: number, share: number): number {
  return total <= 1 ? total : Math.max(1, Math.min(total - 1, Math.ceil(total * share)))
}

interface LiveTrafficOptions {
  /** Of the time, beside live traffic, from above 0 to 1. */
  readonly batchShare: number
  readonly quietMs?: number
}

/** Someone who asks more often than this is there all the time. */
const quietMsDefault = 2_000
/** A long line does not keep the next one out for hours. */
const gapMsMax = 60_000
const pollIntervalMs = 50

/**
 * Lets live requests go first: lines of batches run freely only while no live request runs or ran a moment ago. Beside live
 * traffic they get a small share of the time, one by one, so that a batch ends although there is always someone.
 */
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

  /** Counts a live request; the returned function says that it has ended. */
  enterLive(): () => void {
    this.#live++
    return once(() => {
      this.#live--
      this.#lastLiveMs = this.#clock.monotonicMs()
    })
  }

  /** Resolves when a line of a batch may run; the returned function says that it has. Rejects with the signal's reason. */
  async enterLine(signal: AbortSignal): Promise<() => void> {
    for (;;) {
      signal.throwIfAborted()
      const waitMs = this.#waitMs()
      if (waitMs <= 0) return this.#begin()
      // What an abort means is said at the next turn.
      await wait(Math.min(waitMs, pollIntervalMs), undefined, { signal }).catch(() => undefined)
    }
  }

  #isQuiet(): boolean {
    return this.#live === 0 && this.#clock.monotonicMs() - this.#lastLiveMs >= this.#quietMs
  }

  #waitMs(): number {
    if (this.#isQuiet() || this.#share >= 1) return 0
    return this.#lines > 0 ? pollIntervalMs : this.#nextLineMs - this.#clock.monotonicMs()
  }

  #begin(): () => void {
    const startedMs = this.#clock.monotonicMs()
    this.#lines++
    return once(() => {
      this.#lines--
      const nowMs = this.#clock.monotonicMs()
      const gapMs = (nowMs - startedMs) * (1 / this.#share - 1)
      this.#nextLineMs = nowMs + Math.min(gapMs, gapMsMax)
    })
  }
}

function once(end: () => void): () => void {
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    end()
  }
}
