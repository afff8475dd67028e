/** Runs a server until a signal stops it, or a failure that nothing handled; then closes it in order. */
import { constants } from "node:os"
import type { Log } from "../base/log.ts"

interface Closable {
  close(): Promise<void>
}

/** Once all is closed, nothing should run any more. */
const lingerMsMax = 2_000

interface Run<Running extends Closable> {
  readonly start: () => Promise<Running>
  readonly announce: (running: Running) => void
  /** What has not closed after so long is left behind. */
  readonly closeMsMax: number
}

/** Returns the exit status; after a failure that nothing handled, or a close that takes too long, the process exits with 1. */
export async function runUntilStopped<Running extends Closable>(
  log: Log,
  { start, announce, closeMsMax }: Run<Running>,
): Promise<number> {
  const failure = firstUnhandled(log)
  let running: Running | null = null
  try {
    running = await Promise.race([start(), failure])
    announce(running)
    const signal = await Promise.race([stopSignal(), failure])
    log.info({ signal }, "stopping")
    const lastResort = exitAfter(closeMsMax, 1, log)
    await running.close()
    clearTimeout(lastResort)
    exitAfter(lingerMsMax, 0, log)
    return 0
  } catch (error) {
    if (!(error instanceof UnhandledFailure)) throw error
    exitAfter(closeMsMax, 1, log)
    await running?.close().catch((err: unknown) => log.error({ err }, "a part could not be closed"))
    process.exit(1)
  }
}

/** Ends the process whatever still holds it: a thread that is busy, a connection, a part that does not close. */
function exitAfter(ms: number, status: number, log: Log): NodeJS.Timeout {
  const exit = (): never => {
    log.error({ open: openResources() }, "ending: not everything is closed in time")
    process.exit(status)
  }
  return setTimeout(exit, ms).unref()
}

/** By kind, how many hold the process. */
function openResources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** An exception or rejection that nothing handled; it was logged. */
class UnhandledFailure extends Error {
  override readonly name = "UnhandledFailure"
}

/**
 * Rejects at the first exception or rejection that nothing handles, logged with its stack. Node by itself would end the
 * process at once, with requests in flight and without a line in the log.
 */
function firstUnhandled(log: Log): Promise<never> {
  const failure = Promise.withResolvers<never>()
  // It is no longer awaited while the server closes.
  failure.promise.catch(() => undefined)
  // Without a listener of their own, unhandled rejections come here too.
  process.on("uncaughtException", (err, origin) => {
    log.fatal({ err, origin }, "stopping: an error that nothing handled")
    failure.reject(new UnhandledFailure("Cannot go on: see the log", { cause: err }))
  })
  return failure.promise
}

/** Who stops a process group signals us twice, directly and through our parent: within this time it counts once. */
const sameStopMs = 2_000

export async function stopSignal(): Promise<NodeJS.Signals> {
  return await new Promise((resolve) => {
    let firstMs: number | null = null
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, () => {
        const nowMs = performance.now()
        if (firstMs !== null && nowMs - firstMs > sameStopMs) process.exit(128 + constants.signals[signal])
        firstMs ??= nowMs
        resolve(signal)
      })
  })
}
