/**
 * One encoder ready to score: turns texts into tokens, checks that they fit, and hands them to the scheduler, which runs the
 * network. Nothing here is of Node: it runs in a browser too.
 */
import { nextTurn } from "../../base/turns.ts"
import { Fault } from "../../contract/errors.ts"
import type { Branch } from "../branch.ts"
import type { EngineCall, EvidenceVector, ModelFacts, Scored, ScoreWork, VectorWork } from "../engine.ts"
import type { Graph, Pooling, QuestionTokens, Tokens } from "./graph.ts"
import type { EncoderWork } from "./job.ts"
import { type EncoderFile, factsOf } from "./model-file.ts"
import { type SchedulerOptions, type SchedulerStats, Scheduler } from "./scheduler.ts"
import { type Tokenizer, openTokenizer, textPieces } from "./tokenizer.ts"

const DEFAULT_CACHE_BYTES = 256 * 1024 * 1024
/**
 * From 64 tokens in a run on a core takes equally long for each, however many there are (0.7 ms on ARM), so that larger runs
 * would only make others wait.
 */
export const RUN_TOKENS_PER_THREAD = 64
/**
 * On two cores two small decisions, which are 94 tokens each, share a run: that takes 5 to 8 % less processor time than a run for each.
 * Three and more gain nothing.
 */
export const SHARED_TOKENS_PER_THREAD = 96
/** A GPU is filled by rows of many requests: 64 of the longest, 170 of the usual 94 tokens. */
export const RUN_TOKENS_ON_GPU = 16_384
/** Branches, and characters of evidence, tokenised before other work gets a turn. */
const BRANCHES_PER_TURN = 64
const CHARACTERS_PER_TURN = 8192
/** Tokens of an option that its vector is made of, as in training. */
const OPTION_TOKENS_MAX = 48

export interface SchedulingOptions {
  /** Memory for evidence that was read, of requests at work and of recent ones; one request alone may exceed it. */
  readonly cacheBytes?: number
  /** Requests that may wait before further ones are refused as `overloaded`. */
  readonly waitingMax?: number
}

interface PreparedWork extends EncoderWork {
  readonly inputTokens: number
  readonly kinds: readonly Branch["kind"][]
  readonly reading: ScoreWork["reading"]
}

export class Encoder {
  readonly facts: ModelFacts
  readonly #file: EncoderFile
  /** What is taught on one says nothing about another. */
  readonly modelVersion: string
  readonly #words: Tokenizer
  readonly #graph: Graph
  readonly #scheduler: Scheduler

  /** `runTokensMax` and `sharedTokensMax` as of the scheduler. */
  constructor(
    file: EncoderFile,
    graph: Graph,
    options: SchedulingOptions & Pick<SchedulerOptions, "runTokensMax" | "sharedTokensMax">,
  ) {
    this.facts = factsOf(file)
    this.#file = file
    this.modelVersion = file.version
    this.#words = openTokenizer(file)
    this.#graph = graph
    this.#scheduler = new Scheduler(graph, {
      cacheBytesMax: options.cacheBytes ?? DEFAULT_CACHE_BYTES,
      blockTokensMax: file.description.blockTokensMax,
      runTokensMax: options.runTokensMax,
      sharedTokensMax: options.sharedTokensMax ?? options.runTokensMax,
      ...(options.waitingMax === undefined ? {} : { waitingMax: options.waitingMax }),
    })
  }

  async score(work: ScoreWork, { admit, signal }: EngineCall): Promise<Scored> {
    const prepared = await this.#prepare(work, signal)
    await admit(prepared.inputTokens)
    return await this.#run(prepared, signal)
  }

  async #prepare(
    { organizationId, evidence, branches, reading }: ScoreWork,
    signal: AbortSignal,
  ): Promise<PreparedWork> {
    const evidenceTokens = await this.#evidenceTokens(evidence, signal)
    const questions: (QuestionTokens & { readonly branches: Tokens[] })[] = []
    let lastStem: string | undefined
    const options: (Tokens | undefined)[] = []
    let inputTokens = evidenceTokens.length
    for (const [index, branch] of branches.entries()) {
      if (index % BRANCHES_PER_TURN === BRANCHES_PER_TURN - 1) await nextTurn()
      signal.throwIfAborted()
      const { stem, rest } = branchTexts(branch)
      if (stem === "" || stem !== lastStem)
        questions.push({ stem: Int32Array.from(this.#words.encode(stem)), branches: [] })
      lastStem = stem
      const question = questions.at(-1)
      const ids = [...this.#words.encode(rest), this.#words.special.separator]
      const branchTokens = (question?.stem.length ?? 0) + ids.length
      this.#refuseTooLong(evidenceTokens.length + branchTokens)
      inputTokens += branchTokens
      question?.branches.push(Int32Array.from(ids))
      options.push(this.#optionTokens(branch))
    }
    const kinds = branches.map(({ kind }) => kind)
    return {
      organizationId,
      evidence: evidenceTokens,
      questions,
      options,
      inputTokens,
      kinds,
      reading,
      pooling: reading?.vector === true ? poolingOf(kinds) : "none",
    }
  }

  async #run(work: PreparedWork, signal: AbortSignal): Promise<Scored> {
    const { margins: raw, cosines, similarityWeights, vector } = await this.#scheduler.submit(work, signal)
    const { calibration, similarityCentre, recalledWeight } = this.#file.description
    const { inputTokens, reading } = work
    const margins = raw.map((margin, index) => {
      const { temperature, bias } = calibration[work.kinds[index] ?? "predicate"]
      const similar = cosines[index] ?? { tuned: similarityCentre, recalled: similarityCentre }
      const similarity =
        (similarityWeights[index] ?? 0) * (similar.tuned - similarityCentre) +
        recalledWeight * (similar.recalled - similarityCentre)
      return (margin + similarity) / temperature + bias
    })
    if (!reading) return { margins, inputTokens }
    const { vector: isWanted } = reading
    return {
      margins,
      inputTokens,
      reading: { vector: isWanted ? vector : null, modelVersion: this.modelVersion },
    }
  }

  /**
   * The means over all tokens of the last layer, as it is and as recalled, and of the middle layer's values, of length one.
   * Heads that are taught on last and middle layer are right more often than on the last alone (tried on the vectors of the preview of this model:
   * with 100 labels 0.95 instead of 0.91 on SNIPS, 0.90 instead of 0.85 on prompt injections).
   */
  async vector({ organizationId, evidence }: VectorWork, signal: AbortSignal): Promise<EvidenceVector> {
    const tokens = await this.#evidenceTokens(evidence, signal)
    const work = { organizationId, evidence: tokens, questions: [], options: [], pooling: "whole" } as const
    const { vector } = await this.#scheduler.submit(work, signal)
    return { inputTokens: tokens.length, vector }
  }

  #optionTokens(branch: Branch): Tokens | undefined {
    if (branch.kind !== "choice") return undefined
    const { start, separator } = this.#words.special
    const ids = this.#words.encode(optionText(branch)).slice(0, OPTION_TOKENS_MAX)
    return Int32Array.from([start, ...ids, separator])
  }

  /** All are counted, so that a refusal can tell the length; only as many as fit are kept. */
  async #evidenceTokens(evidence: string, signal: AbortSignal): Promise<Tokens> {
    const { start, separator } = this.#words.special
    const ids = [start]
    let count = 2
    for (const piece of textPieces(evidence, CHARACTERS_PER_TURN)) {
      if (count > 2) await nextTurn()
      signal.throwIfAborted()
      const found = this.#words.encode(piece)
      count += found.length
      if (count <= this.facts.contextTokensMax) for (const id of found) ids.push(id)
    }
    this.#refuseTooLong(count)
    return Int32Array.from([...ids, separator])
  }

  #refuseTooLong(found: number): void {
    const { contextTokensMax } = this.facts
    if (found <= contextTokensMax) return
    throw new Fault(
      "context_length_exceeded",
      `Cannot score the request: the input with its longest question has ${found} tokens ` +
        `and the context of the model holds ${contextTokensMax}; shorten the input or the question`,
    )
  }

  /** How long the present run has taken. */
  runningMs(): number {
    return this.#scheduler.runningMs()
  }

  stats(): SchedulerStats {
    return this.#scheduler.stats()
  }

  /** Waits for what runs, then frees native memory. */
  async close(): Promise<void> {
    await this.#scheduler.idle()
    await this.#graph.close()
  }
}

/** Choices need the whole vector anyway, for the cosines with their options. */
const poolingOf = (kinds: readonly Branch["kind"][]): Pooling =>
  kinds.length === 0 || kinds.includes("choice") ? "whole" : "middle"

export interface BranchTexts {
  /** What the branches of its question have in common; empty where it is the only one. */
  readonly stem: string
  readonly rest: string
}

/**
 * The wording of a branch. The meanings of yes and no were not in training. On 350 labelled questions the meaning of yes in parentheses changes 7 % of
 * the answers and as many for the better (0.714 right, 0.711 without); the meaning of no, in every wording tried, turns up
 * to three quarters of the answers round (0.39 to 0.56 right), so it is left out.
 */
export function branchTexts(branch: Branch): BranchTexts {
  const asked = `question: ${branch.question}`
  switch (branch.kind) {
    case "predicate":
      return { stem: "", rest: branch.yesMeans === "" ? asked : `${asked} (${branch.yesMeans})` }
    case "choice":
      return { stem: `${asked} answer:`, rest: optionText(branch) }
    case "score": {
      const { level, levels, label, description } = branch
      return { stem: asked, rest: `rating ${level} of ${levels - 1}: ${described(label, description)}` }
    }
  }
}

/** An option by itself, for its vector. */
const optionText = ({ value, description }: Extract<Branch, { kind: "choice" }>): string =>
  described(value, description)

const described = (text: string, description: string): string =>
  description === "" ? text : `${text}: ${description}`
