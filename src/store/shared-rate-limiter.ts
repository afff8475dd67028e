/**
 * Rate limits that hold over all gateways on one database, without asking it for each request.
 *
 *   take --> the mirror: what the store said, and what was counted here since --> allowed or refused, in memory
 *                 |                                            ^
 *                 | what was counted here, batched             | how many count now, of all gateways
 *                 v                                            |
 *               store (rate-buckets.ts): one exchange at a time, for all keys
 *
 * A gateway may count as many as its part of the *lease* before the store knows of them; then it waits for the exchange. So
 * all gateways together let through at most the limit and one lease. A lease is a twentieth of what a minute allows.
 *
 * While the store does not answer, each gateway goes on with its share of the limit: that of one among the gateways that
 * were last seen.
 *
 * Example: 600 a minute at two gateways. The lease is 30, so each may count 15 on its own; it tells the store after 8, or
 * after a second.
 */
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import { type Rate, type RateDecision, type RateLimits, RateLimiter } from "../base/rate-limiter.ts"
import {
  type CountedRate,
  addToRateBuckets,
  announceGateway,
  deleteRateBuckets,
  forgetGateway,
} from "./rate-buckets.ts"
import { type Database, StoreUnavailable } from "./sql.ts"

interface SharedRateLimiterDeps {
  readonly database: Database
  /** Tells gateways apart; need not outlive the process. */
  readonly gatewayId: string
  readonly clock: Clock
  readonly log: Log
  /** A store that is silent for so long counts as unavailable. */
  readonly answerMsMax?: number
}

const minuteMs = 60_000
const leasesPerMinute = 20
/** What is counted is told to the store within this time, and a refusal is not older. */
const freshMs = 1_000
const answerMsMaxDefault = 1_000
const announceEveryMs = 10_000
/** In one statement. */
const exchangedMax = 1_000
/** Above this many keys those that have nothing to tell are forgotten; at the bound the oldest is. */
const keysSwept = 10_000
const keysMax = 200_000

interface Bucket {
  rate: Rate
  /** Counted here, and not told to the store yet. */
  untold: number
  /** When the store was last heard. */
  heardMs: number
  /** The mirror counts this gateway's share of the limit, as without the store. */
  isShare: boolean
}

interface Told extends CountedRate {
  readonly bucket: Bucket
  readonly untold: number
}

/** How many all gateways together may count before the store knows of them. */
export function leaseOf({ burst, intervalMs }: Rate): number {
  return Math.max(1, Math.min(burst, Math.ceil(minuteMs / intervalMs / leasesPerMinute)))
}

export async function openSharedRateLimiter(deps: SharedRateLimiterDeps): Promise<SharedRateLimiter> {
  const limiter = new SharedRateLimiter(deps)
  await limiter.announce()
  return limiter
}

class SharedRateLimiter implements RateLimits {
  readonly #deps: SharedRateLimiterDeps
  readonly #mirror: RateLimiter
  readonly #buckets = new Map<string, Bucket>()
  /** Keys that the store is told of or asked about with the next exchange. */
  readonly #due = new Set<string>()
  readonly #resets = new Set<string>()
  readonly #announcing: NodeJS.Timeout
  #gateways = 1
  #isAway = false
  /** The exchange that runs, and the one that begins after it. */
  #exchanging: Promise<void> | null = null
  #next: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(deps: SharedRateLimiterDeps) {
    this.#deps = deps
    this.#mirror = new RateLimiter(deps.clock, keysMax)
    this.#announcing = setInterval(() => void this.announce(), announceEveryMs).unref()
  }

  take(key: string, rate: Rate, count = 1): RateDecision | Promise<RateDecision> {
    return this.#decide(key, rate, count) ?? this.#takeAfterExchange(key, rate, count)
  }

  add(key: string, rate: Rate, count: number): void {
    this.#mirror.add(key, this.#shareOf(key, rate), count)
    this.#count(key, rate, count)
  }

  reset(key: string): void {
    this.#mirror.reset(key)
    this.#buckets.delete(key)
    this.#resets.add(key)
    void this.#exchange()
  }

  /** Says that this gateway lives, and learns how many do. */
  async announce(): Promise<void> {
    const { database, gatewayId } = this.#deps
    try {
      this.#gateways = await announceGateway(database, gatewayId)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Tells the store what it does not know yet. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#announcing)
    clearTimeout(this.#timer)
    await this.#exchanging
    await this.#exchange()
    await forgetGateway(this.#deps.database, this.#deps.gatewayId).catch((error: unknown) =>
      this.#fail(error),
    )
  }

  /** Null when the store must be heard first. */
  #decide(key: string, rate: Rate, count: number): RateDecision | null {
    const share = this.#shareOf(key, rate)
    const decision = this.#mirror.check(key, share, count)
    const bucket = this.#buckets.get(key)
    if (!this.#isAway && !this.#isEnough(decision, bucket, rate, count)) return null
    if (!decision.isAllowed) return decision
    this.#mirror.add(key, share, count)
    this.#count(key, rate, count)
    return decision
  }

  /** The mirror may lack what others counted, so a refusal is right unless the key was reset at another gateway. */
  #isEnough(decision: RateDecision, bucket: Bucket | undefined, rate: Rate, count: number): boolean {
    if (!decision.isAllowed) {
      const heardMs = bucket?.heardMs ?? -Infinity
      return this.#deps.clock.monotonicMs() - heardMs < freshMs
    }
    const untold = bucket?.untold ?? 0
    return untold === 0 || untold + count <= this.#leaseShareOf(rate)
  }

  async #takeAfterExchange(key: string, rate: Rate, count: number): Promise<RateDecision> {
    for (;;) {
      this.#bucket(key, rate)
      this.#due.add(key)
      await this.#answerOrAway()
      const decision = this.#decide(key, rate, count)
      if (decision) return decision
    }
  }

  /** One exchange that began after this call, or the finding that the store does not answer. */
  async #answerOrAway(): Promise<void> {
    const silent = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#fail(new StoreUnavailable("The store does not answer"))
      silent.resolve()
    }, this.#deps.answerMsMax ?? answerMsMaxDefault)
    try {
      await Promise.race([this.#exchange(), silent.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  #bucket(key: string, rate: Rate): Bucket {
    let bucket = this.#buckets.get(key)
    if (!bucket) {
      if (this.#buckets.size >= keysSwept) this.#sweep()
      this.#buckets.set(key, (bucket = { rate, untold: 0, heardMs: -Infinity, isShare: false }))
    }
    bucket.rate = rate
    return bucket
  }

  #count(key: string, rate: Rate, count: number): void {
    const bucket = this.#bucket(key, rate)
    bucket.untold += count
    this.#due.add(key)
    if (this.#isAway || bucket.untold * 2 < this.#leaseShareOf(rate)) this.#exchangeLater()
    else void this.#exchange()
  }

  #exchangeLater(): void {
    if (this.#timer || this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#exchange()
    }, freshMs).unref()
  }

  /** One at a time; what is counted while one runs goes with the next. */
  #exchange(): Promise<void> {
    this.#next ??= this.#exchangeAfter(this.#exchanging)
    return this.#next
  }

  async #exchangeAfter(running: Promise<void> | null): Promise<void> {
    await running
    this.#exchanging = this.#next
    this.#next = null
    await this.#tell()
    this.#exchanging = null
    if (this.#due.size > 0) this.#exchangeLater()
  }

  async #tell(): Promise<void> {
    const { database } = this.#deps
    const resets = [...this.#resets]
    const told = this.#takeDue()
    try {
      await deleteRateBuckets(database, resets)
      for (const key of resets) this.#resets.delete(key)
      if (told.length > 0) this.#hear(told, await addToRateBuckets(database, told))
      this.#isAway = false
    } catch (error) {
      for (const { key } of told) this.#due.add(key)
      this.#fail(error)
    }
  }

  #takeDue(): Told[] {
    const told: Told[] = []
    for (const key of this.#due) {
      if (told.length >= exchangedMax) break
      this.#due.delete(key)
      const bucket = this.#buckets.get(key)
      // What has passed meanwhile, as in an outage, counts no longer.
      if (bucket)
        told.push({
          key,
          bucket,
          rate: bucket.rate,
          untold: bucket.untold,
          count: Math.min(bucket.untold, this.#mirror.backlog(key)),
        })
    }
    return told
  }

  #hear(told: readonly Told[], backlogs: ReadonlyMap<string, number>): void {
    for (const { key, bucket, rate, untold } of told) {
      // It was reset meanwhile.
      if (this.#buckets.get(key) !== bucket) continue
      bucket.untold -= untold
      bucket.heardMs = this.#deps.clock.monotonicMs()
      bucket.isShare = false
      this.#mirror.set(key, rate, (backlogs.get(key) ?? 0) + bucket.untold)
    }
  }

  #fail(error: unknown): void {
    if (!(error instanceof StoreUnavailable))
      this.#deps.log.error({ err: error }, "rate limits could not be counted in the store")
    else if (!this.#isAway)
      this.#deps.log.warn({ gateways: this.#gateways }, "rate limits are counted without the store")
    this.#isAway = true
    this.#exchangeLater()
  }

  /** The limit, or the part of it that is this gateway's while the store is unavailable. */
  #shareOf(key: string, rate: Rate): Rate {
    if (!this.#isAway) return rate
    const share = {
      burst: Math.max(1, Math.floor(rate.burst / this.#gateways)),
      intervalMs: rate.intervalMs * this.#gateways,
    }
    const bucket = this.#bucket(key, rate)
    // Of what counts, too, only a share is this gateway's.
    if (!bucket.isShare) this.#mirror.set(key, share, this.#mirror.backlog(key) / this.#gateways)
    bucket.isShare = true
    return share
  }

  #leaseShareOf(rate: Rate): number {
    return Math.max(1, Math.floor(leaseOf(rate) / this.#gateways))
  }

  #sweep(): void {
    for (const [key, { untold, heardMs }] of this.#buckets)
      if (untold === 0 && this.#deps.clock.monotonicMs() - heardMs >= freshMs) this.#buckets.delete(key)
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size >= keysMax && oldest !== undefined) this.#buckets.delete(oldest)
  }
}
