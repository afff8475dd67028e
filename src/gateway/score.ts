/** Scores branches for a request: find a worker, prepare, reserve what it costs, run. */
import type { Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { EvidenceReading, PreparedScore, ScoreWork } from "../engine/engine.ts"
import { type Sequence, type Usage, noUsage } from "./meter.ts"
import type { Routed, Router } from "./routing/router.ts"

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
  readonly onPlaced?: (region: string) => void
  /** False: nothing is reserved, so that nothing is charged. */
  readonly isCharged: boolean
}

export interface Scored {
  readonly margins: Float64Array
  readonly usage: Usage
  /** Where the request asks for it. */
  readonly reading: EvidenceReading | null
}

export async function score(parts: ScoreParts, request: ScoreRequest, signal: AbortSignal): Promise<Scored> {
  const { model, organizationId, evidence, branches, reading, sequence, hint, isCharged } = request
  const routed: Routed = await parts.router.open({
    model: model.sku,
    organizationId,
    hint,
    onPlaced: (region) => {
      sequence.placed(region)
      request.onPlaced?.(region)
    },
  })
  const reserve = async (usage: Usage): Promise<void> => {
    if (isCharged) await sequence.reserve(model, usage)
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
