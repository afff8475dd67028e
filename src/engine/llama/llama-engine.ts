/** The embedded engine as the gateway sees it: a model in a process of its own, restarted when it dies. */
import { childChannel } from "../../base/peer/channels.ts"
import { PeerGone } from "../../base/peer/peer.ts"
import { Supervisor } from "../../base/peer/supervisor.ts"
import { Fault } from "../../contract/errors.ts"
import { engineClient } from "../engine-client.ts"
import type { PreparedScore, ScoreEngine, ScoreWork } from "../engine.ts"
import type { ScorerService, ScorerStatus } from "./child.ts"
import type { ScorerOptions } from "./scorer.ts"

/** Without an answered ping for this long the process is killed. */
const silenceMsMaxDefault = 30_000

export interface LlamaEngineOptions extends ScorerOptions {
  readonly silenceMsMax?: number
  /** Told when the process dies, with the reason, for the log. */
  readonly onDeath?: (reason: string) => void
}

export interface LlamaEngine extends ScoreEngine {
  /** As of the last answered ping of the present process; undefined before the first. */
  stats(): (ScorerStatus & { readonly restarts: number }) | undefined
  /** Of the present process. */
  readonly pid: number | undefined
}

/** Resolves when the model is loaded; rejects with a clear sentence when it cannot be. */
export async function startLlamaEngine(options: LlamaEngineOptions): Promise<LlamaEngine> {
  const { onDeath, silenceMsMax = silenceMsMaxDefault, ...open } = options
  let status: ScorerStatus | undefined
  const peer = new Supervisor<ScorerService>({
    spawn: () => childChannel(new URL("./child.ts", import.meta.url)),
    open,
    isEager: true,
    silenceMsMax,
    onDeath: (reason) => {
      status = undefined
      onDeath?.(reason)
    },
    // The child's own `status` made it.
    onStatus: (told) => (status = told as ScorerStatus | undefined),
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
