/** The process that generates or embeds with one model; it answers the gateway's messages and ends when its parent does. */
import { Fault } from "../../contract/errors.ts"
import { EmbeddingModel, type PreparedInputs } from "./embedding-model.ts"
import type { EmbedWork, GenerateWork } from "./generate.ts"
import { Generation, type LocalPrepared, prepareGeneration } from "./generation.ts"
import { LocalModel } from "./local-model.ts"
import { Outbox } from "./outbox.ts"
import type { FromGenerator, GenerationOptions, ToGenerator, WireFault } from "./protocol.ts"
import { PULSE_INTERVAL_MS, WINDOW_EVENTS } from "./protocol.ts"

interface Job {
  readonly abort: AbortController
  prepared?: LocalPrepared
  inputs?: PreparedInputs
  generation?: Generation
  /** Sent and not yet taken by the reader. */
  untaken: number
  resume?: () => void
}

const jobs = new Map<number, Job>()
let generator: LocalModel | undefined
let embedder: EmbeddingModel | undefined

process.on("message", (message: ToGenerator) => receive(message))
process.on("disconnect", () => process.exit(0))
// The gateway decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
process.on("SIGINT", () => undefined)
setInterval(() => send({ kind: "pulse" }), PULSE_INTERVAL_MS)

function receive(message: ToGenerator): void {
  switch (message.kind) {
    case "open":
      void open(message.options)
      return
    case "prepare":
      prepare(message.id, message.work)
      return
    case "run":
      void run(message.id, message.outputTokensMax)
      return
    case "prepare_embedding":
      prepareEmbedding(message.id, message.work)
      return
    case "embed":
      void embed(message.id)
      return
    case "taken":
      take(message.id, message.count)
      return
    case "drop":
      drop(message.id)
      return
    default:
      message satisfies never
  }
}

async function open(options: GenerationOptions): Promise<void> {
  try {
    if (options.kind === "generation") generator = await LocalModel.open(options)
    else embedder = await EmbeddingModel.open(options)
    send({ kind: "ready" })
  } catch (error) {
    process.stderr.write(`${String(error)}\n`)
    send({ kind: "refused", sentence: "Cannot load the model: its file cannot be used" }, () =>
      process.exit(1),
    )
  }
}

function prepare(id: number, work: GenerateWork): void {
  attempt(id, () => {
    if (!generator) throw new Fault("inference_failed", "Cannot generate: the model is not loaded")
    const prepared = prepareGeneration(generator, work)
    jobs.set(id, { abort: new AbortController(), prepared, untaken: 0 })
    send({
      kind: "prepared",
      id,
      inputTokens: prepared.tokens.length,
      outputTokensMost: prepared.outputTokensMost,
    })
  })
}

async function run(id: number, outputTokensMax: number): Promise<void> {
  const job = jobs.get(id)
  // Dropped while the message was on its way.
  if (!generator || !job?.prepared) return
  const generation = new Generation(generator, job.prepared, outputTokensMax, job.abort.signal)
  job.generation = generation
  const outbox = new Outbox((events) => {
    job.untaken += events.length
    send({ kind: "events", id, events, usage: generation.usage() })
  })
  try {
    for await (const event of generation.run()) {
      outbox.add(event)
      if (job.untaken >= WINDOW_EVENTS) await taken(job)
    }
    jobs.delete(id)
  } catch (error) {
    jobs.delete(id)
    if (job.abort.signal.aborted) {
      outbox.discard()
      send({ kind: "stopped", id, usage: generation.usage() })
    } else {
      outbox.flush()
      send({ kind: "failed", id, fault: wireFault(error), usage: generation.usage() })
    }
  }
}

/** Waits while the reader is too far behind. */
async function taken(job: Job): Promise<void> {
  await new Promise<void>((resolve) => {
    job.resume = resolve
    job.abort.signal.addEventListener("abort", () => resolve(), { once: true })
  })
}

function take(id: number, count: number): void {
  const job = jobs.get(id)
  if (!job) return
  job.untaken -= count
  if (job.untaken < WINDOW_EVENTS) job.resume?.()
}

function prepareEmbedding(id: number, work: EmbedWork): void {
  attempt(id, () => {
    if (!embedder) throw new Fault("inference_failed", "Cannot embed: the model is not loaded")
    const inputs = embedder.prepare(work)
    jobs.set(id, { abort: new AbortController(), inputs, untaken: 0 })
    send({ kind: "prepared", id, inputTokens: inputs.inputTokens, outputTokensMost: 0 })
  })
}

async function embed(id: number): Promise<void> {
  const job = jobs.get(id)
  if (!embedder || !job?.inputs) return
  try {
    const vectors = await embedder.run(job.inputs, job.abort.signal)
    if (!job.abort.signal.aborted) send({ kind: "embedded", id, vectors })
  } catch (error) {
    if (!job.abort.signal.aborted) send({ kind: "failed", id, fault: wireFault(error), usage: null })
  } finally {
    jobs.delete(id)
  }
}

function drop(id: number): void {
  const job = jobs.get(id)
  job?.abort.abort()
  // A running one says itself what it used.
  if (job?.generation) return
  jobs.delete(id)
  send({ kind: "stopped", id, usage: null })
}

function attempt(id: number, work: () => void): void {
  try {
    work()
  } catch (error) {
    send({ kind: "failed", id, fault: wireFault(error), usage: null })
  }
}

function wireFault(error: unknown): WireFault {
  if (!(error instanceof Fault)) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    return { code: "inference_failed", sentence: "Cannot run the request: the engine failed while it worked" }
  }
  if (error.cause instanceof Error) process.stderr.write(`${error.message}: ${error.cause.message}\n`)
  const { code, message, param, retryAfterMs } = error
  return {
    code,
    sentence: message,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

function send(message: FromGenerator, sent?: () => void): void {
  // A parent that is gone reads nothing; the disconnect event ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => sent?.())
  else sent?.()
}
