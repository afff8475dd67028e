/** One stage of a request: tries its models in order until one serves it, scores with a model, and tells the stages in a header. */
import type { Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"
import { stagesHeader } from "../contract/platform/virtual-models.ts"
import type { EvidenceReading, PreparedScore, ScoreWork } from "../engine/engine.ts"
import type { RecordedStage } from "../store/journal/record.ts"
import type { Sequence } from "./meter.ts"
import type { Routed, Router } from "./routing/router.ts"
import { type Usage, noUsage } from "./sequence-record.ts"

/**
 * What another model may do better: a failure, overload, a context that is too short, a refusal by the organization's or the
 * key's policy. A mistake of the request, a guardrail that blocks it and a lack of credit are none.
 */
const goesOn: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "inference_failed",
  "routing_failed",
  "invalid_worker_response",
  "overloaded",
  "context_length_exceeded",
  "region_denied",
  "model_denied",
  "model_access_required",
  "decisions_unsupported",
])

export const isForNextModel = (error: unknown): error is Fault =>
  error instanceof Fault && goesOn.has(error.code)

/** One model's turn. */
export interface Turn {
  readonly model: Model
  /** Nobody comes after it. */
  readonly isLast: boolean
}

export interface StagedModels {
  readonly models: readonly Model[]
  /** Null: a plain model, which has no stages. */
  readonly virtual: string | null
  /** Of decisions. */
  readonly questions?: number
}

type StagedSequence = Pick<Sequence, "beginStage" | "endStage" | "describe">

/** The stage of the model that serves stays open: it ends with the sequence, or where it is known what it used. */
export async function firstThatServes<Result>(
  sequence: StagedSequence,
  { models, virtual, questions }: StagedModels,
  signal: AbortSignal,
  work: (turn: Turn) => Promise<Result>,
): Promise<Result> {
  if (virtual !== null) sequence.describe({ virtualModel: virtual })
  for (const [at, model] of models.entries()) {
    if (virtual !== null) sequence.beginStage(model, questions)
    const isLast = at === models.length - 1
    try {
      return await work({ model, isLast })
    } catch (error) {
      if (isLast || signal.aborted || !isForNextModel(error)) throw error
      // What fails is free.
      sequence.endStage(error.code, noUsage)
    }
  }
  throw new Error("Cannot serve the request: a stage has no models")
}

export interface StageAnswer {
  readonly model: Model
  readonly scored: Scored
}

/** Another model may know how many margins were asked for. */
export async function scoreAt(
  parts: ScoreParts,
  request: ScoreRequest,
  signal: AbortSignal,
): Promise<StageAnswer> {
  const { model, branches } = request
  const scored = await score(parts, request, signal)
  if (scored.margins.length === branches.length) return { model, scored }
  throw new Fault(
    "invalid_worker_response",
    `Cannot read the scores: ${scored.margins.length} margins came back for ${branches.length} branches; send the request again`,
  )
}

export interface ScoreParts {
  readonly router: Pick<Router, "open">
  readonly clock: Clock
  /** The longest that a model can work on one request. */
  readonly timeoutMs: number
}

export interface ScoreRequest extends ScoreWork {
  readonly model: Model
  readonly sequence: Sequence
  /** The region that the request asks for. */
  readonly hint: string | null
  /** A line of a batch. */
  readonly isBatch?: boolean
  readonly onPlaced?: (region: string) => void
  /** False: nothing is reserved, so that nothing is charged. */
  readonly isCharged: boolean
  /** Admits what it may use, instead of a reservation of its own. */
  readonly admit?: (most: Usage) => Promise<void>
}

export interface Scored {
  readonly margins: Float64Array
  readonly usage: Usage
  /** Where the request asks for it. */
  readonly reading: EvidenceReading | null
}

/** Finds a worker, prepares, reserves what it costs, and runs. */
export async function score(parts: ScoreParts, request: ScoreRequest, signal: AbortSignal): Promise<Scored> {
  const { model, organizationId, evidence, branches, reading, sequence, hint, isCharged } = request
  const { trace } = sequence
  sequence.describe({ branches: branches.length })
  const routed: Routed = await trace.measure("route", () =>
    parts.router.open({
      model: model.sku,
      organizationId,
      hint,
      isBatch: request.isBatch === true,
      trace,
      onPlaced: (region) => {
        sequence.placed(region)
        request.onPlaced?.(region)
      },
    }),
  )
  const reserve = async (usage: Usage): Promise<void> => {
    if (request.admit) await request.admit(usage)
    else if (isCharged) await sequence.reserve(model, usage)
    else sequence.name(model.sku)
  }
  let prepared: PreparedScore | null = null
  try {
    // Nothing asked: no answers and zero usage (decisions accepts an empty list).
    if (branches.length === 0 && !reading) {
      await reserve(noUsage)
      return { margins: new Float64Array(), usage: noUsage, reading: null }
    }
    const work = { organizationId, evidence, branches, ...(reading ? { reading } : {}) }
    prepared = await routed.scorer.prepare(work, signal)
    // Nothing is evaluated before what it costs is reserved; that is known exactly once the texts are tokens.
    const { inputTokens } = prepared
    await reserve({ ...noUsage, inputTokens, executionMs: parts.timeoutMs })
    const running = prepared
    prepared = null
    const startedMs = parts.clock.monotonicMs()
    const margins = await running.run(signal)
    // Read after it ran: some workers say how many tokens they read only with their answer.
    const used = { inputTokens: running.inputTokens, executionMs: parts.clock.monotonicMs() - startedMs }
    return {
      margins,
      usage: { ...noUsage, ...used },
      reading: reading ? (running.reading ?? unread(model)) : null,
    }
  } finally {
    prepared?.discard()
    routed.close()
  }
}

/** Of an engine that does not tell: the catalog is all that is known of it. */
const unread = ({ sku, quantization }: Model): EvidenceReading => ({
  vector: null,
  modelVersion: `${sku}/${quantization}`,
})

/** `answering` is the model whose stage is still open. */
export function tellStages(
  header: (name: string, value: string) => void,
  stages: readonly RecordedStage[],
  answering: Model | null = null,
): void {
  const told = stages.map(({ model, result, questions, ms, ...used }) =>
    [
      headerToken(model),
      `result=${result}`,
      ...(questions === null ? [] : [`questions=${questions}`]),
      `tokens=${used.input_tokens + used.cached_input_tokens + used.output_tokens}`,
      `ms=${ms}`,
    ].join(";"),
  )
  header(stagesHeader, [...told, ...(answering ? [headerToken(answering.sku)] : [])].join(", "))
}

/** Names may have letters of any alphabet; headers may not. */
export const headerToken = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._/:-]/gu, (character) => encodeURIComponent(character))
