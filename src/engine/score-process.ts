/** A model that scores in a process of its own, restarted when it dies: what every embedded engine is to the gateway. */
import { childChannel } from "../base/peer/channels.ts"
import { PeerGone } from "../base/peer/peer.ts"
import { Supervisor } from "../base/peer/supervisor.ts"
import { Fault } from "../contract/errors.ts"
import { engineClient } from "./engine-client.ts"
import type { EngineService } from "./engine-service.ts"
import type { ModelFacts, PreparedScore, ScoreEngine, ScoreWork } from "./engine.ts"

export interface ScoreProcessOptions {
  /** The module that the process starts with. */
  readonly entry: URL
  /** What its `open` is given. */
  readonly open: unknown
  /** Without an answered ping for this long the process is killed. */
  readonly silenceMsMax: number
  /** Told when the process dies, with the reason, for the log. */
  readonly onDeath?: ((reason: string) => void) | undefined
}

interface ScoreService extends EngineService {
  open: { input: unknown; output: ModelFacts }
}

export interface ScoreProcess<Status> extends ScoreEngine {
  /** As of the last answered ping of the present process; undefined before the first. */
  stats(): (Status & { readonly restarts: number }) | undefined
  /** Of the present process. */
  readonly pid: number | undefined
}

/** Resolves when the model is loaded; rejects with a clear sentence when it cannot be. */
export async function startScoreProcess<Status extends object>(
  options: ScoreProcessOptions,
): Promise<Required<ScoreProcess<Status>>> {
  const { entry, open, silenceMsMax, onDeath } = options
  let status: Status | undefined
  const peer = new Supervisor<ScoreService>({
    spawn: () => childChannel(entry),
    open,
    isEager: true,
    silenceMsMax,
    onDeath: (reason) => {
      status = undefined
      onDeath?.(reason)
    },
    // The child's own `status` made it.
    onStatus: (told) => (status = told as Status | undefined),
  })
  try {
    await peer.ready()
  } catch (error) {
    await peer.close()
    throw error instanceof PeerGone ? cannotStart(error) : error
  }
  const { scorer } = engineClient(peer)
  return {
    stats: () => status && { ...status, restarts: peer.restarts },
    get pid() {
      return peer.pid
    },
    facts: async () => {
      if (peer.opened === undefined) throw notRunning()
      return await Promise.resolve(peer.opened)
    },
    prepare: async (work, signal) => await prepareRetrying(scorer, work, signal),
    vector: async (work, signal) => await retryOnce(signal, async () => await scorer.vector(work, signal)),
    close: async () => await peer.close(),
  }
}

/** Scoring is idempotent: what a dying process took with it is done again, once. */
async function prepareRetrying(
  scorer: Pick<ScoreEngine, "prepare">,
  work: ScoreWork,
  signal: AbortSignal,
): Promise<PreparedScore> {
  let current: PreparedScore | undefined = await retryOnce(signal, () => scorer.prepare(work, signal))
  return {
    inputTokens: current.inputTokens,
    run: async (runSignal) =>
      await retryOnce(runSignal, async () => {
        const prepared = current ?? (await scorer.prepare(work, runSignal))
        current = undefined
        return await prepared.run(runSignal)
      }),
    discard: () => {
      current?.discard()
      current = undefined
    },
  }
}

async function retryOnce<Result>(signal: AbortSignal, attempt: () => Promise<Result>): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof PeerGone) || signal.aborted) throw error
    return await attempt()
  }
}

const notRunning = (): Fault =>
  new Fault("inference_failed", "Cannot score the request: the engine is not running")

const cannotStart = (cause: Error): Error =>
  new Error(
    "Cannot start the engine: its process ended each time while it loaded the model; " +
      "the model file may be damaged or too large for this machine",
    { cause },
  )
