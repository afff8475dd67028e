/** Models that are tried one after another until one serves, of a decision or of a generation, and how the stages are told. */
import type { Model } from "../base/catalog.ts"
import { usdText } from "../base/money.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"
import { stagesHeader } from "../contract/platform/virtual-models.ts"
import type { RecordedStage } from "../store/journal/record.ts"
import { noUsage, type Sequence } from "./meter.ts"

/** `answering` is the model whose stage is still open. */
export function tellStages(
  header: (name: string, value: string) => void,
  stages: readonly RecordedStage[],
  answering: Model | null = null,
): void {
  const told = stages.map(({ model, result, questions, ms, cost_ticks, ...used }) =>
    [
      headerToken(model),
      `result=${result}`,
      ...(questions === null ? [] : [`questions=${questions}`]),
      `tokens=${used.input_tokens + used.cached_input_tokens + used.output_tokens}`,
      `ms=${ms}`,
      `cost=${usdText(BigInt(cost_ticks))}`,
    ].join(";"),
  )
  header(stagesHeader, [...told, ...(answering ? [headerToken(answering.sku)] : [])].join(", "))
}

/** Names may have letters of any alphabet; headers may not. */
export const headerToken = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._/:-]/gu, (character) => encodeURIComponent(character))

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

const isForNextModel = (error: unknown): error is Fault => error instanceof Fault && goesOn.has(error.code)

/** One model's turn. */
export interface Turn {
  readonly model: Model
  /** No model is asked after it. */
  readonly isLast: boolean
}

interface StagedModels {
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
  { signal, work }: { readonly signal: AbortSignal; readonly work: (turn: Turn) => Promise<Result> },
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
