/** Bounds waits, also on something that does not heed its signal. */

/** What `work` becomes, or a rejection with the signal's reason as soon as it is aborted. */
export async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener("abort", onAbort, { once: true })
  // Whichever comes second is nobody's concern.
  aborted.promise.catch(() => undefined)
  work.catch(() => undefined)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener("abort", onAbort)
  }
}

export interface JoinedSignal {
  readonly signal: AbortSignal
  abort(reason: unknown): void
  /** Stops listening to the signals it was joined from. */
  release(): void
}

/** Aborted when one of `sources` is. Unlike AbortSignal.any it leaves nothing behind at sources that live long. */
export function joinSignals(...sources: readonly AbortSignal[]): JoinedSignal {
  const controller = new AbortController()
  const listeners = sources.map((source) => {
    const onAbort = (): void => controller.abort(source.reason)
    if (source.aborted) onAbort()
    source.addEventListener("abort", onAbort, { once: true })
    return () => source.removeEventListener("abort", onAbort)
  })
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release: () => {
      for (const stopListening of listeners) stopListening()
    },
  }
}
