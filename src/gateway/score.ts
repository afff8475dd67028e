/** Asks one model for the margins of branches: finds a worker, reserves what the work costs, and runs it. */
import type { Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import { utf8Bytes } from "../contract/decisions.ts"
import { uncalibratedHeader } from "../contract/platform/virtual-models.ts"
import { promptText } from "../engine/branch.ts"
import {
  type EvidenceReading,
  type Scored as WorkerScored,
  type ScoreSize,
  type ScoreWork,
  unusableIn,
} from "../engine/engine.ts"
import type { CascadeDays } from "./cascade-days.ts"
import { coherentMargins } from "./classification/classification.ts"
import { costOf, noUsage, type Usage } from "./meter.ts"
import type { MeteredCall } from "./metered-call.ts"
import type { Router } from "./routing/router.ts"
import { headerToken } from "./stages.ts"

export interface ScoreDeps {
  readonly router: Pick<Router, "open"> & Partial<Pick<Router, "sizeMost">>
  readonly clock: Clock
  /** The longest that a model can work on one request. */
  readonly timeoutMs: number
  /** Where live requests are asked: what cascades send on is counted, and held to what they may cost in a day. */
  readonly cascadeDays?: Pick<CascadeDays, "count" | "hold">
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
  /** A chat model's, that nothing calibrates. */
  readonly isUncalibrated: boolean
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
      return { margins: new Float64Array(), usage: noUsage, reading: null, isUncalibrated: false }
    }
    let startedMs = 0
    const admit = async (inputTokens: number, outputTokens = 0): Promise<void> => {
      await reserve({ ...noUsage, inputTokens, outputTokens, executionMs: deps.timeoutMs })
      startedMs = deps.clock.monotonicMs()
    }
    const scored = await routed.score({ organizationId, evidence, branches, reading }, { signal, admit })
    const { margins, isUncalibrated = false } = scored
    return {
      margins: coherentMargins(branches, margins),
      usage: usageOf(scored, deps.clock.monotonicMs() - startedMs),
      reading: reading ? (scored.reading ?? unread(model, scored)) : null,
      isUncalibrated,
    }
  } catch (error) {
    const unusable = unusableIn(error)
    if (unusable) {
      const { used } = unusable
      unusable.costTicks = costOf(model.prices, usageOf({ inputTokens: used.inputTokens, chat: used }, 0))
    }
    throw error
  } finally {
    routed.close()
  }
}

/** What a worker counted. */
export type CountedTokens = Pick<WorkerScored, "inputTokens" | "chat">

export function usageOf({ inputTokens, chat }: CountedTokens, executionMs: number): Usage {
  const { cachedInputTokens = 0, outputTokens = 0 } = chat ?? {}
  return { inputTokens: inputTokens - cachedInputTokens, cachedInputTokens, outputTokens, executionMs }
}

export const tellUncalibrated = (call: MeteredCall, { sku }: Model): void =>
  call.header(uncalibratedHeader, headerToken(sku))

/**
 * Of an engine that does not tell: the catalog is all that is known of it, and how a chat model is asked and calibrated. What was
 * taught before a check does not fit the answers after it.
 */
const unread = (
  { sku, quantization }: Model,
  { calibration = quantization, isUncalibrated = false }: WorkerScored,
): EvidenceReading => ({
  vector: null,
  modelVersion: `${sku}/${isUncalibrated ? UNCALIBRATED : calibration}`,
})

/** Ends the version of a model whose answers promise nothing. */
export const UNCALIBRATED = "uncalibrated"

/** Tokens that the wording of a branch and the template around it take, at most. */
const wordingTokensMax = 512

/** The most that one text's branches can read and write at any worker of the model, known before one is found. */
export const sizeMost = (
  router: ScoreDeps["router"],
  sku: string,
  work: Pick<ScoreWork, "evidence" | "branches">,
): ScoreSize => router.sizeMost?.(sku, work) ?? { inputTokens: tokensMost(work), outputTokens: 0 }

/** No tokenizer makes more tokens than there are bytes. */
export const tokensMost = ({ evidence, branches }: Pick<ScoreWork, "evidence" | "branches">): number =>
  branches.reduce(
    (sum, branch) => sum + utf8Bytes(promptText(branch)) + wordingTokensMax,
    utf8Bytes(evidence) + wordingTokensMax,
  )
