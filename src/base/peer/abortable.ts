/** Waits for a promise or for an aborted signal, whichever comes first. */

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
