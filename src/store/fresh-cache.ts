/** A bounded cache whose entries are trusted for a short time, and longer only while the store is unavailable. */
import type { Clock } from "../base/clock.ts"
import { StoreUnavailable } from "./sql.ts"

/** How long a request that could be served from the cache waits for a fresh answer. */
const answerMsMax = 1_000

interface FreshCacheOptions {
  readonly clock: Clock
  /** A change without a notification is seen within this time. */
  readonly freshMs: number
  /** How long an entry is still used while the store does not answer. */
  readonly staleMs: number
  readonly entriesMax: number
}

interface Entry<Value> {
  readonly value: Value
  readonly readMs: number
}

export class FreshCache<Value> {
  readonly #options: FreshCacheOptions
  readonly #load: (key: string) => Promise<Value | null>
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #loading = new Map<string, Promise<Value | null>>()

  constructor(options: FreshCacheOptions, load: (key: string) => Promise<Value | null>) {
    this.#options = options
    this.#load = load
  }

  /** Null when the store has no such value; absence is not remembered. */
  async get(key: string): Promise<Value | null> {
    const { clock, freshMs, staleMs } = this.#options
    const entry = this.#entries.get(key)
    const ageMs = entry ? clock.monotonicMs() - entry.readMs : Infinity
    if (entry && ageMs < freshMs) return entry.value
    try {
      const reading = this.#read(key)
      return await (entry && ageMs < staleMs ? withinReadTimeout(reading) : reading)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      if (entry && ageMs < staleMs) return entry.value
      throw error
    }
  }

  /** A read in flight may return the old value, so later calls read again. */
  invalidate(key: string): void {
    this.#entries.delete(key)
    this.#loading.delete(key)
  }

  invalidateWhere(isAffected: (value: Value) => boolean): void {
    for (const [key, { value }] of this.#entries) if (isAffected(value)) this.#entries.delete(key)
    this.#loading.clear()
  }

  invalidateAll(): void {
    this.#entries.clear()
    this.#loading.clear()
  }

  /** Those who ask at the same time share one read. */
  async #read(key: string): Promise<Value | null> {
    const running = this.#loading.get(key)
    if (running) return await running
    const started = this.#load(key)
    this.#loading.set(key, started)
    try {
      const value = await started
      // Forgotten meanwhile: the value may be from before the change, so it is not kept.
      if (this.#loading.get(key) === started) this.#remember(key, value)
      return value
    } finally {
      if (this.#loading.get(key) === started) this.#loading.delete(key)
    }
  }

  #remember(key: string, value: Value | null): void {
    this.#entries.delete(key)
    if (value === null) return
    if (this.#entries.size >= this.#options.entriesMax) {
      const oldest = this.#entries.keys().next().value
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
    this.#entries.set(key, { value, readMs: this.#options.clock.monotonicMs() })
  }
}

/** A store that does not answer in time counts as unavailable. */
async function withinReadTimeout<Result>(reading: Promise<Result>): Promise<Result> {
  const silent = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => silent.reject(new StoreUnavailable("The store does not answer")),
    answerMsMax,
  )
  try {
    return await Promise.race([reading, silent.promise])
  } finally {
    clearTimeout(timer)
    // The caller may be gone when the read fails; the rejection is handled here.
    reading.catch(() => undefined)
  }
}
