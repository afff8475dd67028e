/** Scores several texts of one request, a few at a time: they are reserved together, and have one record. */
import type { Model } from "../../base/catalog.ts"
import { mapConcurrent } from "../../base/map-concurrent.ts"
import { LIMITS, utf8Bytes } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { admitAny } from "../../engine/admission.ts"
import { type Branch, promptText } from "../../engine/branch.ts"
import type { ScoreWork } from "../../engine/engine.ts"
import { type Usage, noUsage } from "../sequence-record.ts"
import type { Resolved } from "../organization-access.ts"
import { tokensMost } from "../tokens-most.ts"
import type { MeteredCall } from "../metered-call.ts"
import { type InferenceParts, resolveModel } from "./inference.ts"

/** So many texts of one request hold a place at a worker; an encoder reads them in one run. */
const concurrencyMax = 8

export type TextWork = Omit<ScoreWork, "organizationId">

export interface ScoredEach {
  /** Of each text, in their order. */
  readonly margins: readonly Float64Array[]
  readonly usage: Usage
}

export async function scoreEach(
  parts: InferenceParts,
  metered: MeteredCall,
  model: Model,
  texts: readonly TextWork[],
): Promise<ScoredEach> {
  const { organizationId, sequence } = metered
  const { signal } = metered.request
  for (const { branches } of texts) checkBranches(branches)
  const routed = await metered.route(parts.router, model)
  // The exact count is known only at a worker, whose places a request must not hold all at once.
  const inputTokens = texts.reduce((sum, text) => sum + tokensMost(text), 0)
  await sequence.reserve(model, { ...noUsage, inputTokens, executionMs: parts.timeoutMs })
  const margins: Float64Array[] = []
  const used = { ...noUsage, inputTokens: 0 }
  const startedMs = parts.clock.monotonicMs()
  await mapConcurrent(texts, { concurrency: concurrencyMax, signal }, async (text, at, either) => {
    const scored = await routed.score({ ...text, organizationId }, { signal: either, admit: admitAny })
    margins[at] = scored.margins
    used.inputTokens += scored.inputTokens
  })
  return { margins, usage: { ...used, executionMs: parts.clock.monotonicMs() - startedMs } }
}

/** Models for decisions; the errors are those of this surface. */
export async function decisionModels(
  parts: InferenceParts,
  call: MeteredCall,
  named: { readonly name: string; readonly about: string },
): Promise<Resolved> {
  try {
    return await resolveModel(parts, call, { ...named, wanted: "decisions" })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "unknown_model") throw error
    throw new Fault("model_not_found", error.message, { param: "model", cause: error })
  }
}

function checkBranches(branches: readonly Branch[]): void {
  for (const branch of branches)
    if (utf8Bytes(promptText(branch)) > LIMITS.expandedQuestionBytesMax)
      throw new Fault("invalid_request", "Cannot score: the question with the query in it is too long", {
        param: "query",
      })
}
