/** One stage of a request: tries its models in order until one serves it, and scores by one of them. */
import type { Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import { utf8Bytes } from "../contract/decisions.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"
import { promptText } from "../engine/branch.ts"
import type { EvidenceReading, ScoreWork } from "../engine/engine.ts"
import { coherentMargins } from "./classification/classification.ts"
import type { Sequence } from "./meter.ts"
import type { MeteredCall } from "./metered-call.ts"
import type { Router } from "./routing/router.ts"
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

const isForNextModel = (error: unknown): error is Fault => error instanceof Fault && goesOn.has(error.code)

/** One model's turn. */
export interface Turn {
  readonly model: Model
  /** No model is asked after it. */
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

export interface StageAnswer {
  readonly model: Model
  readonly scored: Scored
}

/** Asks one stage of a decision: some branches, read otherwise than the request says where it is told so. */
export type AskStage = (
  stage: Partial<Pick<ScoreWork, "branches" | "reading">> & {
    readonly models: readonly Model[]
    /** How many they are asked. */
    readonly questions: number
    /** Admits what a model may use, instead of a reservation of its own. */
    readonly admit?: ((model: Model, most: Usage) => Promise<void>) | undefined
  },
  signal: AbortSignal,
) => Promise<StageAnswer>

/** Another model may know how many margins were asked for. */
export async function scoreAt(
  deps: ScoreDeps,
  request: ScoreRequest,
  signal: AbortSignal,
): Promise<StageAnswer> {
  const { model, branches } = request
  const scored = await score(deps, request, signal)
  if (scored.margins.length === branches.length) return { model, scored }
  throw new Fault(
    "invalid_worker_response",
    `Cannot read the scores: ${scored.margins.length} margins came back for ${branches.length} branches; send the request again`,
  )
}

export interface ScoreDeps {
  readonly router: Pick<Router, "open">
  readonly clock: Clock
  /** The longest that a model can work on one request. */
  readonly timeoutMs: number
}

export interface ScoreRequest extends Omit<ScoreWork, "organizationId"> {
  readonly call: MeteredCall
  readonly model: Model
  /** False: nothing is reserved, so that nothing is charged. */
  readonly isCharged: boolean
  /** Admits what it may use, instead of a reservation of its own. */
  readonly admit?: ((most: Usage) => Promise<void>) | undefined
}

export interface Scored {
  readonly margins: Float64Array
  readonly usage: Usage
  /** Where the request asks for it. */
  readonly reading: EvidenceReading | null
}

/** Finds a worker, reserves what the work costs once its size is known there, and runs it. */
export async function score(deps: ScoreDeps, request: ScoreRequest, signal: AbortSignal): Promise<Scored> {
  const { call, model, evidence, branches, reading, isCharged } = request
  const { organizationId, sequence } = call
  sequence.describe({ branches: branches.length })
  const routed = await call.route(deps.router, model)
  const reserve = async (usage: Usage): Promise<void> => {
    if (request.admit) await request.admit(usage)
    else if (isCharged) await sequence.reserve(model, usage)
    else sequence.name(model.sku)
  }
  try {
    // Nothing asked: no answers and zero usage (decisions accepts an empty list).
    if (branches.length === 0 && !reading) {
      await reserve(noUsage)
      return { margins: new Float64Array(), usage: noUsage, reading: null }
    }
    let startedMs = 0
    const admit = async (inputTokens: number): Promise<void> => {
      await reserve({ ...noUsage, inputTokens, executionMs: deps.timeoutMs })
      startedMs = deps.clock.monotonicMs()
    }
    const scored = await routed.score({ organizationId, evidence, branches, reading }, { signal, admit })
    const { margins, inputTokens } = scored
    return {
      margins: coherentMargins(branches, margins),
      usage: { ...noUsage, inputTokens, executionMs: deps.clock.monotonicMs() - startedMs },
      reading: reading ? (scored.reading ?? unread(model)) : null,
    }
  } finally {
    routed.close()
  }
}

/** Of an engine that does not tell: the catalog is all that is known of it. */
const unread = ({ sku, quantization }: Model): EvidenceReading => ({
  vector: null,
  modelVersion: `${sku}/${quantization}`,
})

/** Tokens that the wording of a branch and the template around it take, at most. */
const wordingTokensMax = 512

/** No tokenizer makes more tokens than there are bytes. */
export const tokensMost = ({ evidence, branches }: Pick<ScoreWork, "evidence" | "branches">): number =>
  branches.reduce(
    (sum, branch) => sum + utf8Bytes(promptText(branch)) + wordingTokensMax,
    utf8Bytes(evidence) + wordingTokensMax,
  )
