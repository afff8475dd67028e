/** Asks the questions of a draft and brings the answers into one form, with what they took. */
import { costHeader, sequenceHeader } from "../../../src/contract/endpoint.ts"
import type { CallOptions } from "../../../src/contract/client.ts"
import { languageHeader, unknownLanguage } from "../../../src/contract/language.ts"
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
import { type AnsweredStage, readStages } from "./stages.ts"

export interface Answered {
  readonly model: string
  /** One per question, in order; null for a refusal. */
  readonly answers: readonly (Answer | null)[]
  readonly inputTokens: number
  readonly latencyMs: number
  /** What was charged; null where the server does not say. */
  readonly costUsd: number | null
  /** The code of the text's language; left out where it was not told or is unknown. */
  readonly language?: string
  /** Of a virtual model. */
  readonly stages?: readonly AnsweredStage[]
}

interface AskOptions {
  readonly orgId: string
  readonly signal: AbortSignal
  /** Told of the request's record, also where the request is refused. */
  readonly onSequence: (id: string) => void
}

export async function ask(
  draft: Draft,
  sku: string,
  { orgId, signal, onSequence }: AskOptions,
): Promise<Answered> {
  let stages: readonly AnsweredStage[] = []
  let costUsd: number | null = null
  let language: string | null = null
  const onHeaders = (headers: Headers): void => {
    stages = readStages(headers.get(stagesHeader))
    language = headers.get(languageHeader)
    const cost = headers.get(costHeader)
    costUsd = cost === null ? null : Number(cost)
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
  const told = language === null || language === unknownLanguage ? {} : { language }
  return { model, answers, inputTokens, latencyMs, costUsd, stages, ...told }
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
