/** Asks the questions of a draft and brings the answers into one form, with what they took. */
import { sequenceHeader } from "../../../src/contract/endpoint.ts"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import type { CallOptions } from "../../../src/contract/client.ts"
import { stagesHeader } from "../../../src/contract/platform/virtual-models.ts"
import { api } from "../api.ts"
import {
  type Answer,
  type Draft,
  fromDecision,
  fromSystemOne,
  questionKeys,
  toDecisions,
  toSystemOne,
} from "./draft.ts"
import { type AnsweredStage, priceOf, readStages } from "./stages.ts"

export interface Answered {
  readonly model: string
  /** One per question, in order; null for a refusal. */
  readonly answers: readonly (Answer | null)[]
  readonly inputTokens: number
  readonly latencyMs: number
  readonly costUsd: number | null
  /** Of a virtual model. */
  readonly stages?: readonly AnsweredStage[]
}

export interface AskOptions {
  readonly orgId: string
  readonly models: readonly OrgModel[]
  readonly signal: AbortSignal
  /** Told of the request's record, also where the request is refused. */
  readonly onSequence: (id: string) => void
}

export async function ask(
  draft: Draft,
  sku: string,
  { orgId, models, signal, onSequence }: AskOptions,
): Promise<Answered> {
  let stages: readonly AnsweredStage[] = []
  const onHeaders = (headers: Headers): void => {
    stages = readStages(headers.get(stagesHeader))
    const id = headers.get(sequenceHeader)
    if (id) onSequence(id)
  }
  const options = { headers: { "x-umpire-organization": orgId }, signal, onHeaders }
  const startedMs = performance.now()
  const { model, answers, inputTokens } =
    draft.api === "decisions"
      ? await askDecisions(draft, sku, options)
      : await askSystemOne(draft, sku, options)
  const latencyMs = performance.now() - startedMs
  const costUsd = priceOf(stages.length > 0 ? stages : [{ model: sku, tokens: inputTokens }], models)
  return { model, answers, inputTokens, latencyMs, costUsd, stages }
}

type Options = Pick<CallOptions, "headers" | "signal" | "onHeaders">
type Part = Pick<Answered, "model" | "answers" | "inputTokens">

async function askDecisions(draft: Draft, sku: string, options: Options): Promise<Part> {
  const { model, answers, usage } = await api.createDecision({ body: toDecisions(draft, sku), ...options })
  return { model, answers: answers.map(fromDecision), inputTokens: usage.input_tokens }
}

async function askSystemOne(draft: Draft, sku: string, options: Options): Promise<Part> {
  const { model, answers, usage } = await api.createSystemOne({ body: toSystemOne(draft, sku), ...options })
  const keys = questionKeys(draft.questions)
  const ordered = draft.questions.map((question, index) => {
    const answer = answers[keys[index] ?? ""]
    return answer ? fromSystemOne(answer, question) : null
  })
  return { model, answers: ordered, inputTokens: usage.input_tokens }
}
