/** What the thread behind a library serves, in Node and in a browser. */
import { mapConcurrent } from "../base/lists.ts"
import type { Handlers } from "../base/peer/peer.ts"
import { Fault } from "../contract/errors.ts"
import { relevanceBranch } from "../engine/branch.ts"
import type { Encoder } from "../engine/encoder/encoder.ts"
import { readPredicate } from "../scoring/answers.ts"
import type * as Answers from "./answers.ts"
import type { OpenSet } from "./sets.ts"
import type { EmbedRequest, RankedDocument, RerankRequest, SetDecision } from "./types.ts"

export interface LibraryService<Model> {
  open: { input: Model; output: { readonly name: string; readonly version: string } }
  decide: {
    /** The body of POST /v1/decisions, and which of the sets that were opened is asked. */
    input: { readonly request: string; readonly set: number | null }
    output: SetDecision
  }
  openSet: {
    input: Uint8Array
    output: { readonly id: number; readonly name: string; readonly version: number }
  }
  embed: {
    input: Omit<EmbedRequest, "signal">
    output: { readonly vectors: Float32Array[]; readonly inputTokens: number }
  }
  rerank: { input: Omit<RerankRequest, "signal">; output: RankedDocument[] }
}

const rerankConcurrency = 8

interface Loaded {
  readonly encoder: Encoder
  readonly answers: typeof Answers
}

/** What reads requests is loaded while the model is opened. */
export function libraryHandlers<Model extends { readonly model: string }>(
  openEncoder: (model: Model) => Promise<Encoder>,
): Omit<Handlers<LibraryService<Model>>, "embed"> {
  let loaded: Loaded | undefined
  const sets: OpenSet[] = []
  const opened = (): Loaded => {
    if (loaded) return loaded
    throw new Error("Cannot decide: no model is loaded")
  }
  return {
    open: async (model) => {
      const opening = openEncoder(model).catch((cause: unknown) => {
        throw cause instanceof Fault ? cause : unusable(model.model, cause)
      })
      const [encoder, answers] = await Promise.all([opening, import("./answers.ts")])
      loaded = { encoder, answers }
      return { name: encoder.facts.name, version: encoder.modelVersion }
    },
    decide: async ({ request, set }, signal) => {
      const { encoder, answers } = opened()
      const asked = set === null ? answers : sets[set]
      if (!asked) throw new Error("Cannot decide: no such set is open")
      return await asked.decide(encoder, request, signal)
    },
    openSet: async (bytes) => {
      const { encoder } = opened()
      const { openSet } = await import("./sets.ts")
      const set = await openSet(bytes, encoder.modelVersion)
      return { id: sets.push(set) - 1, name: set.name, version: set.version }
    },
    rerank: async ({ query, documents, count = documents.length }, signal) => {
      const { encoder, answers } = opened()
      const branches = [relevanceBranch(query)]
      const options = { concurrency: rerankConcurrency, signal }
      const relevances = await mapConcurrent(documents, options, async (evidence, _, either) => {
        const { margins } = await answers.score(encoder, { evidence, branches }, either)
        return readPredicate(margins[0] ?? Number.NaN)
      })
      return relevances
        .map((relevance, index) => ({ index, relevance }))
        .toSorted((a, b) => b.relevance - a.relevance || a.index - b.index)
        .slice(0, count)
    },
  }
}

const unusable = (model: string, cause: unknown): Fault =>
  new Fault(
    "unknown_model",
    `Cannot load ${JSON.stringify(model)}: ${cause instanceof Error ? cause.message : "its file cannot be used"}`,
    { cause },
  )
