/** Answers POST /v1/rerank: orders documents by P(relevant) of a decision model, or by the cosine of their embeddings. */
import type { Model } from "../../base/catalog.ts"
import { mapConcurrent } from "../../base/lists.ts"
import { LIMITS, utf8Bytes } from "../../contract/decisions.ts"
import type { Handler } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { createRerank } from "../../contract/openai/endpoints.ts"
import type { RerankRequest, Reranking } from "../../contract/openai/rerank.ts"
import { type Branch, promptText, relevanceBranch } from "../../engine/branch.ts"
import type { EngineCall, ScoreSize, ScoreWork } from "../../engine/engine.ts"
import { readPredicate } from "../../scoring/answers.ts"
import { detectLanguage } from "../language.ts"
import type { MeteredCall } from "../metered-call.ts"
import type { Resolved } from "../organization-access.ts"
import { noUsage, sumUsage, type Usage } from "../meter.ts"
import { sizeMost, tellUncalibrated, usageOf } from "../score.ts"
import { embedMetered } from "./embed.ts"
import {
  type AskedModel,
  type InferenceDeps,
  inputContent,
  outputContent,
  resolveModel,
  runInference,
  serve,
} from "./inference.ts"

interface Relevance {
  /** Of each document, from 0 to 1. */
  readonly scores: readonly number[]
  readonly usage: Usage
}

type Version = Reranking["meta"]["api_version"]["version"]

export function rerankHandler(deps: InferenceDeps, version: Version): Handler<typeof createRerank> {
  return async (asker) =>
    await runInference(deps, { callSource: "rerank", wire: "rerank", asker }, async (metered, body) => {
      const texts = body.documents.map((one, at) => nonblank(typeof one === "string" ? one : one.text, at))
      const resolved = await rankers(deps, metered, body)
      metered.sequence.describe({ questions: texts.length })
      metered.keep(() => inputContent({ messages: [], texts: [body.query, ...texts] }))
      const { model, scores, usage } = await serve(metered, resolved, async (turn) => {
        const relevance = turn.model.kind === "embedding" ? byEmbedding : byDecision
        const found = await relevance(deps, metered, { model: turn.model, query: body.query, texts })
        return { model: turn.model, ...found }
      })
      await metered.succeed(usage, () => outputContent(model.sku))
      return reranking(
        body,
        { scores, usage },
        { id: deps.ids.next("rerank"), model: model.sku, texts, version },
      )
    })
}

function nonblank(text: string, at: number): string {
  if (text.trim() !== "") return text
  throw new Fault("invalid_request", `Cannot rerank: documents.${at} is blank`, { param: `documents.${at}` })
}

/** Models for decisions, or one for embeddings, which a virtual model can name too. */
async function rankers(
  deps: InferenceDeps,
  metered: MeteredCall,
  { model, query }: RerankRequest,
): Promise<Resolved> {
  const known = deps.catalog.find(model, "generation")
  const language = metered.inLanguage(await detectLanguage(query))
  const named = { name: model, about: query, language }
  const embedding = { ...named, wanted: "embedding" } as const
  if (known?.kind === "embedding") return await resolveModel(deps, metered, embedding)
  try {
    return await decisionModels(deps, metered, named)
  } catch (error) {
    if (known || !(error instanceof Fault) || error.code !== "model_not_found") throw error
    return await resolveModel(deps, metered, embedding).catch(() => {
      throw error
    })
  }
}

interface Ranking {
  readonly model: Model
  readonly query: string
  readonly texts: readonly string[]
}

async function byDecision(
  deps: InferenceDeps,
  metered: MeteredCall,
  { model, query, texts }: Ranking,
): Promise<Relevance> {
  const branches = [relevanceBranch(query)]
  const work = texts.map((evidence) => ({ evidence, branches }))
  const { margins, usage } = await scoreEach(deps, metered, { model, texts: work })
  return { scores: margins.map(([margin]) => readPredicate(margin ?? Number.NaN)), usage }
}

async function byEmbedding(
  deps: InferenceDeps,
  metered: MeteredCall,
  { model, query, texts }: Ranking,
): Promise<Relevance> {
  const work = { inputs: [query, ...texts], dimensions: null }
  const { vectors, usage } = await embedMetered(deps, metered, { model, work })
  const [asked, ...documents] = vectors
  return { scores: documents.map((vector) => cosine(asked ?? vector, vector)), usage }
}

/** Of vectors of length one; what points away is not less relevant than what has nothing to do with it. */
function cosine(a: Float32Array, b: Float32Array): number {
  const product = a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
  return Math.min(1, Math.max(0, product))
}

interface RerankFacts {
  readonly id: string
  readonly model: string
  readonly texts: readonly string[]
  readonly version: Version
}

function reranking(
  { top_n, return_documents }: RerankRequest,
  { scores, usage }: Relevance,
  { id, model, texts, version }: RerankFacts,
): Reranking {
  const inputTokens = usage.inputTokens + usage.cachedInputTokens
  const { outputTokens } = usage
  const results = scores
    .map((relevance_score, index) => ({ index, relevance_score }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top_n ?? scores.length)
  return {
    id,
    object: "list",
    model,
    results: results.map((result) => ({
      ...result,
      ...(return_documents === true ? { document: { text: texts[result.index] ?? "" } } : {}),
    })),
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens + outputTokens },
    meta: { api_version: { version }, tokens: { input_tokens: inputTokens, output_tokens: outputTokens } },
  }
}

/** So many texts of one request hold a place at a worker; an encoder reads them in one run. */
const concurrencyMax = 8

type TextWork = Omit<ScoreWork, "organizationId">

interface ScoredEach {
  /** Of each text, in their order. */
  readonly margins: readonly Float64Array[]
  readonly usage: Usage
}

export async function scoreEach(
  deps: InferenceDeps,
  metered: MeteredCall,
  { model, texts }: { readonly model: Model; readonly texts: readonly TextWork[] },
): Promise<ScoredEach> {
  const { organizationId, sequence } = metered
  const { signal } = metered.request
  for (const { branches } of texts) checkBranches(branches)
  const routed = await metered.route(deps.router, model)
  // The exact count is known only at a worker, whose places a request must not hold all at once.
  const reservation = new ReservationOfEach({
    sizes: () => texts.map((text) => sizeMost(deps.router, model.sku, text)),
    reserve: async (most) =>
      await sequence.reserve(model, { ...noUsage, ...most, executionMs: deps.timeoutMs }),
  })
  await reservation.reserve()
  const margins: Float64Array[] = []
  const used: Usage[] = []
  let isUncalibrated = false
  const startedMs = deps.clock.monotonicMs()
  await mapConcurrent(texts, { concurrency: concurrencyMax, signal }, async (text, at, either) => {
    const scored = await routed.score(
      { ...text, organizationId },
      { signal: either, admit: reservation.admitter(at) },
    )
    margins[at] = scored.margins
    used[at] = usageOf(scored, 0)
    isUncalibrated ||= scored.isUncalibrated === true
  })
  if (isUncalibrated) tellUncalibrated(metered, model)
  return { margins, usage: { ...sumUsage(used), executionMs: deps.clock.monotonicMs() - startedMs } }
}

interface EachSizes {
  /** The most that each text takes, as far as that is known. */
  readonly sizes: () => readonly ScoreSize[]
  readonly reserve: (most: ScoreSize) => Promise<void>
}

/**
 * Reserves what texts take together before any is sent; and more, before a text is sent that takes more: how much a chat model may think
 * is known only once its server was asked.
 */
class ReservationOfEach {
  readonly #deps: EachSizes
  readonly #needed = new Map<number, ScoreSize>()
  #held: readonly ScoreSize[] = []
  #holding: Promise<void> | null = null

  constructor(deps: EachSizes) {
    this.#deps = deps
  }

  async reserve(): Promise<void> {
    const sizes = this.#deps.sizes().map((size, at) => largerOf(size, this.#needed.get(at) ?? size))
    await this.#deps.reserve({
      inputTokens: sizes.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
      outputTokens: sizes.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    })
    this.#held = sizes
  }

  admitter(at: number): EngineCall["admit"] {
    return async (inputTokens, outputTokens = 0) => {
      const need = { inputTokens, outputTokens }
      this.#needed.set(at, need)
      while (!this.#isHeld(at, need))
        await (this.#holding ??= this.reserve().finally(() => (this.#holding = null)))
    }
  }

  #isHeld(at: number, { inputTokens, outputTokens }: ScoreSize): boolean {
    const held = this.#held[at]
    return held !== undefined && inputTokens <= held.inputTokens && outputTokens <= held.outputTokens
  }
}

const largerOf = (one: ScoreSize, other: ScoreSize): ScoreSize => ({
  inputTokens: Math.max(one.inputTokens, other.inputTokens),
  outputTokens: Math.max(one.outputTokens, other.outputTokens),
})

/** Models for decisions; the errors are those of this surface. */
export async function decisionModels(
  deps: InferenceDeps,
  call: MeteredCall,
  named: AskedModel,
): Promise<Resolved> {
  try {
    return await resolveModel(deps, call, { ...named, wanted: "decisions" })
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
