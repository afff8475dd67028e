/** The engine process: owns one model and answers the supervisor's messages, and ends when its parent does. */
import { Fault } from "../../contract/errors.ts"
import type { FromEngine, ToEngine, WireFault } from "./protocol.ts"
import { PULSE_INTERVAL_MS } from "./protocol.ts"
import type { PreparedJob, ScorerOptions, TextWork } from "./scorer.ts"
import { Scorer } from "./scorer.ts"

/** Jobs that are held, prepared or running; the supervisor's callers are many and their texts may be large. */
const JOBS_MAX = 8192
const HELD_TOKENS_MAX = 64 * 1024 * 1024

interface HeldJob {
  readonly abort: AbortController
  prepared: PreparedJob | undefined
}

const held = new Map<number, HeldJob>()
let heldTokens = 0
let scorer: Scorer | undefined

process.on("message", (message: ToEngine) => receive(message))
process.on("disconnect", () => process.exit(0))
// The supervisor decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
process.on("SIGINT", () => undefined)

function receive(message: ToEngine): void {
  switch (message.kind) {
    case "open":
      void openModel(message.options)
      return
    case "prepare":
      void prepare(message.id, message.work)
      return
    case "run":
      void run(message.id)
      return
    case "drop":
      drop(message.id)
      return
    default:
      message satisfies never
  }
}

async function openModel(options: ScorerOptions): Promise<void> {
  const pulse = setInterval(sendPulse, PULSE_INTERVAL_MS)
  try {
    scorer = await Scorer.open(options)
    send({ kind: "ready", facts: scorer.facts })
  } catch (error) {
    clearInterval(pulse)
    const sentence = error instanceof Error ? error.message : "Cannot load the model"
    send({ kind: "refused", sentence }, () => process.exit(1))
  }
}

function sendPulse(): void {
  const stats = scorer?.stats() ?? NO_STATS
  send({ kind: "pulse", stats: { ...stats, held: held.size }, decodingMs: scorer?.decodingMs() ?? 0 })
}

const NO_STATS = {
  waiting: 0,
  running: 0,
  cellsReserved: 0,
  cellsMax: 0,
  decodes: 0,
  tokensDecoded: 0,
  tokensReused: 0,
  cacheHits: 0,
  cacheMisses: 0,
  cacheBytes: 0,
} as const

async function prepare(id: number, work: TextWork): Promise<void> {
  const job: HeldJob = { abort: new AbortController(), prepared: undefined }
  try {
    const model = opened()
    if (held.size >= JOBS_MAX || heldTokens >= HELD_TOKENS_MAX) {
      const sentence = `Cannot take the request: ${held.size} are held; try again later`
      throw new Fault("overloaded", sentence, { retryAfterMs: 1000 })
    }
    held.set(id, job)
    const prepared = await model.prepare(work, job.abort.signal)
    if (job.abort.signal.aborted) return
    job.prepared = prepared
    heldTokens += prepared.inputTokens
    send({ kind: "prepared", id, inputTokens: prepared.inputTokens })
  } catch (error) {
    if (job.abort.signal.aborted) return
    held.delete(id)
    send({ kind: "failed", id, fault: wireFault(error) })
  }
}

async function run(id: number): Promise<void> {
  const job = held.get(id)
  // Dropped while the message was on its way.
  if (job?.prepared === undefined) return
  try {
    const differences = await opened().run(job.prepared, job.abort.signal)
    forget(id)
    send({ kind: "scored", id, differences })
  } catch (error) {
    if (job.abort.signal.aborted) return
    forget(id)
    if (error instanceof Fault && error.code === "inference_failed") endAfterFailure(error)
    else send({ kind: "failed", id, fault: wireFault(error) })
  }
}

/** The cells are in an unknown state: a fresh process is the repair, and the supervisor runs the work again there. */
function endAfterFailure(error: Fault): void {
  process.stderr.write(`${error.message}: ${String(error.cause)}\n`)
  process.exit(1)
}

function drop(id: number): void {
  const job = held.get(id)
  if (job === undefined) return
  job.abort.abort()
  forget(id)
}

function forget(id: number): void {
  heldTokens -= held.get(id)?.prepared?.inputTokens ?? 0
  held.delete(id)
}

function opened(): Scorer {
  if (scorer === undefined) throw new Fault("inference_failed", "Cannot score: the model is not loaded yet")
  return scorer
}

function wireFault(error: unknown): WireFault {
  if (!(error instanceof Fault)) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    return {
      code: "inference_failed",
      sentence: "Cannot score the request: the engine failed while it worked",
    }
  }
  const { code, message, retryAfterMs } = error
  return { code, sentence: message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
}

function send(message: FromEngine, sent?: () => void): void {
  // A parent that is gone reads nothing; the disconnect event ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => sent?.())
  else sent?.()
}
