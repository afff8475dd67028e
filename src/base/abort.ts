/** Waits that end when a signal is aborted, also for work that ignores its signal. */

/**
 * A signal that is aborted when one of its sources is. AbortSignal.any keeps memory at sources that live long, such as a
 * worker's, for every signal that was listened to; this one leaves nothing behind after `release`.
 */
export class JoinedSignal {
  readonly #controller = new AbortController()
  readonly #sources: AbortSignal[] = []
  readonly #waits = new Set<(reason: unknown) => void>()
  // It listens to signals only, so that what an event comes from is one.
  readonly #onAbort = (event: Event): void => this.abort((event.target as AbortSignal).reason)

  constructor(...sources: readonly AbortSignal[]) {
    for (const source of sources) this.listenTo(source)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Adds a source; one that is there already counts once. */
  listenTo(source: AbortSignal): void {
    if (this.#sources.includes(source)) return
    this.#sources.push(source)
    if (source.aborted) this.abort(source.reason)
    else source.addEventListener("abort", this.#onAbort)
  }

  /** What `work` becomes, or a rejection with the signal's reason as soon as it is aborted. */
  until<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.signal.aborted) reject(this.signal.reason as Error)
      this.#waits.add(reject)
      void work.then(resolve, reject).then(() => this.#waits.delete(reject))
    })
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
    // The reason of the first abort, which is the signal's.
    for (const reject of this.#waits) reject(this.signal.reason)
  }

  /** Stops listening to its sources. */
  release(): void {
    for (const source of this.#sources) source.removeEventListener("abort", this.#onAbort)
    this.#sources.length = 0
  }
}

/** Rejects with the signal's reason after `onAbort`; a later outcome of the promise is ignored. */
export async function abortable<Result>(
  promise: Promise<Result>,
  signal: AbortSignal | undefined,
  onAbort: () => void = () => undefined,
): Promise<Result> {
  if (!signal) return await promise
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => {
    onAbort()
    aborted.reject(signal.reason)
  }
  if (signal.aborted) abort()
  signal.addEventListener("abort", abort, { once: true })
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener("abort", abort)
  }
}
