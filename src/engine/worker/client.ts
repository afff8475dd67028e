/** The engines of a model at an Umpire worker, as a gateway sees them: each call is one request, and nothing is kept there. */
import { Fault } from "../../contract/errors.ts"
import type { PreparedScore, ScoreEngine, ScoreWork } from "../engine.ts"
import {
  type EmbedEngine,
  type EmbedWork,
  type GenerateEngine,
  type GenerateWork,
  type GenerationEvent,
  type GenerationUsage,
  noGenerationUsage,
  type PreparedEmbedding,
  type PreparedGeneration,
} from "../generate/generate.ts"
import {
  type EmbedAnswer,
  type GenerationSizes,
  type ScoreAnswer,
  type WireError,
  type WorkerRequest,
  brokenAnswer,
  decodeError,
  decodeLine,
  digestHeader,
  digestOf,
  findMismatch,
  healthPath,
  protocolHeader,
  protocolVersion,
  workPath,
} from "./wire.ts"

export interface WorkerAddress {
  readonly url: string
  /** What the worker calls the model. */
  readonly model: string
  readonly key: string | undefined
}

export interface WorkerClient {
  readonly scorer: Pick<ScoreEngine, "prepare">
  readonly generator: Pick<GenerateEngine, "prepare">
  readonly embedder: Pick<EmbedEngine, "prepare">
  /** Rejects when the worker cannot serve now. */
  readonly check: (signal: AbortSignal) => Promise<void>
}

/** An answer holds at most 4096 margins, or the vectors of one request. */
const answerBytesMax = 256 * 1024 * 1024
/** A line holds one event. */
const lineCharactersMax = 8 * 1024 * 1024

export function workerClient(address: WorkerAddress): WorkerClient {
  return {
    scorer: { prepare: async (work, signal) => await prepareScore(address, work, signal) },
    generator: { prepare: async (work, signal) => await prepareGeneration(address, work, signal) },
    embedder: { prepare: async (work, signal) => await prepareEmbedding(address, work, signal) },
    async check(signal) {
      const response = await fetch(new URL(healthPath, address.url), { signal })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the worker answers ${response.status}`)
      const mismatch = findMismatch(response.headers.get(protocolHeader))
      if (mismatch !== null) throw new Error(mismatch)
    },
  }
}

async function prepareScore(
  address: WorkerAddress,
  work: ScoreWork,
  signal: AbortSignal,
): Promise<PreparedScore> {
  const { model } = address
  const sizes = await ask<ScoreAnswer>(address, { kind: "prepare_score", model, work }, signal)
  const inputTokens = checkCount(sizes.inputTokens)
  return {
    inputTokens,
    async run(runSignal) {
      const { margins } = await ask<ScoreAnswer>(address, { kind: "score", model, work }, runSignal)
      if (!Array.isArray(margins) || margins.length !== work.branches.length)
        throw brokenAnswer("it has not one margin for each branch")
      if (!margins.every(Number.isFinite)) throw brokenAnswer("a margin is not a number")
      return Float64Array.from(margins)
    },
    discard: () => undefined,
  }
}

async function prepareEmbedding(
  address: WorkerAddress,
  work: EmbedWork,
  signal: AbortSignal,
): Promise<PreparedEmbedding> {
  const { model } = address
  const sizes = await ask<EmbedAnswer>(address, { kind: "prepare_embedding", model, work }, signal)
  return {
    inputTokens: checkCount(sizes.inputTokens),
    async run(runSignal) {
      const { vectors } = await ask<EmbedAnswer>(address, { kind: "embed", model, work }, runSignal)
      if (!Array.isArray(vectors) || vectors.length !== work.inputs.length)
        throw brokenAnswer("it has not one vector for each input")
      return vectors.map((vector) => Float32Array.from(vector))
    },
  }
}

async function prepareGeneration(
  address: WorkerAddress,
  work: GenerateWork,
  signal: AbortSignal,
): Promise<PreparedGeneration> {
  const { model } = address
  const sizes = await ask<GenerationSizes>(address, { kind: "prepare_generation", model, work }, signal)
  let used: GenerationUsage = noGenerationUsage
  return {
    inputTokensMost: checkCount(sizes.inputTokensMost),
    outputTokensMost: checkCount(sizes.outputTokensMost),
    run: (outputTokensMax, runSignal) =>
      stream(
        address,
        { kind: "generate", model, work, outputTokensMax },
        runSignal,
        (usage) => (used = usage),
      ),
    usage: () => used,
    discard: () => undefined,
  }
}

async function* stream(
  address: WorkerAddress,
  request: WorkerRequest,
  signal: AbortSignal,
  onUsage: (usage: GenerationUsage) => void,
): AsyncGenerator<GenerationEvent> {
  const response = await send(address, request, signal)
  if (!response.ok || !response.body) throw await failureOf(response)
  for await (const text of linesOf(response.body, signal)) {
    const line = decodeLine(text)
    onUsage(line.usage)
    if (line.kind === "end") return
    if (line.kind === "failed") throw decodeError(line.error)
    yield line.event
  }
  throw brokenAnswer("it was cut off")
}

async function* linesOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for await (const bytes of body) {
      rest += decoder.decode(bytes, { stream: true })
      if (rest.length > lineCharactersMax) throw brokenAnswer("a line is too long")
      const lines = rest.split("\n")
      rest = lines.pop() ?? ""
      yield* lines
    }
  } catch (error) {
    throw asFailure(error, signal)
  }
}

async function ask<Answer>(
  address: WorkerAddress,
  request: WorkerRequest,
  signal: AbortSignal,
): Promise<Answer> {
  const response = await send(address, request, signal)
  if (!response.ok) throw await failureOf(response)
  if (Number(response.headers.get("content-length")) > answerBytesMax) {
    await response.body?.cancel()
    throw brokenAnswer("it is too long")
  }
  let text: string
  try {
    text = await response.text()
  } catch (error) {
    throw asFailure(error, signal)
  }
  if (digestOf(text) !== response.headers.get(digestHeader)) throw brokenAnswer("it is not what was sent")
  // The digest says that a worker of ours wrote it.
  return JSON.parse(text) as Answer
}

async function send(address: WorkerAddress, request: WorkerRequest, signal: AbortSignal): Promise<Response> {
  let response: Response
  try {
    response = await fetch(new URL(workPath, address.url), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        [protocolHeader]: protocolVersion,
        ...(address.key === undefined ? {} : { authorization: `Bearer ${address.key}` }),
      },
      body: JSON.stringify(request),
      redirect: "error",
      signal,
    })
  } catch (error) {
    throw asFailure(error, signal)
  }
  const mismatch = response.ok ? findMismatch(response.headers.get(protocolHeader)) : null
  if (mismatch === null) return response
  await response.body?.cancel()
  throw brokenAnswer(mismatch)
}

/** Refusals of the work are told as they are; anything else than a worker's own words is a failure of the worker. */
async function failureOf(response: Response): Promise<Fault> {
  const text = await response.text().catch(() => "")
  // The digest says that a worker of ours wrote it.
  if (digestOf(text) === response.headers.get(digestHeader))
    return decodeError((JSON.parse(text) as { error: WireError }).error)
  return new Fault("inference_failed", `Cannot run the work: the worker answered ${response.status}`)
}

/** Whoever aborted knows why; a broken connection is the worker's failure. */
function asFailure(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof Fault) return error
  return new Fault("inference_failed", "Cannot run the work: the connection to the worker broke", {
    cause: error,
  })
}

function checkCount(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw brokenAnswer("a count is not a number")
}
