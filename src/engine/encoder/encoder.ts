/**
 * One encoder ready to score: turns texts into tokens, checks that they fit, and hands them to the scheduler, whose network runs in
 * a thread of its own, so that requests are read and answered meanwhile.
 */
import { availableParallelism } from "node:os"
import { Connection } from "../../base/peer/connection.ts"
import { threadChannel } from "../../base/peer/supervisor.ts"
import { Fault } from "../../contract/errors.ts"
import type { Branch } from "../branch.ts"
import type { EngineCall, EvidenceVector, ModelFacts, Scored, ScoreWork, VectorWork } from "../engine.ts"
import {
  type BranchPart,
  type BranchRow,
  type BranchScores,
  type Graph,
  type GraphOptions,
  type GraphRow,
  type Past,
  type Pooling,
  type QuestionTokens,
  type RowScores,
  type Tokens,
  pastBytes,
} from "./graph.ts"
import type { EncoderWork } from "./job.ts"
import {
  type EncoderDescription,
  type EncoderFile,
  checkWeights,
  factsOf,
  readEncoderFile,
  versionOf,
} from "./model-file.ts"
import { type SchedulerStats, Scheduler } from "./scheduler.ts"

const DEFAULT_CACHE_BYTES = 256 * 1024 * 1024
/**
 * From 64 tokens in a run on a core takes equally long for each, however many there are (0.7 ms on ARM), so that larger runs
 * would only make others wait.
 */
const RUN_TOKENS_PER_THREAD = 64
/** Branches, and characters of evidence, tokenised before other work gets a turn. */
const BRANCHES_PER_TURN = 64
const CHARACTERS_PER_TURN = 8192

export interface EncoderOptions {
  /** Path of an ONNX file. */
  readonly modelFile: string
  readonly threads?: number
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
  readonly #modelVersion: string
  readonly #words: WordPiece
  readonly #graph: Graph
  readonly #scheduler: Scheduler

  private constructor(file: EncoderFile, graph: Graph, options: EncoderOptions & { threads: number }) {
    this.facts = factsOf(file)
    this.#file = file
    this.#modelVersion = versionOf(file)
    this.#words = new WordPiece(file.vocabulary)
    this.#graph = graph
    this.#scheduler = new Scheduler(graph, {
      cacheBytesMax: options.cacheBytes ?? DEFAULT_CACHE_BYTES,
      blockTokensMax: file.description.blockTokensMax,
      runTokensMax: RUN_TOKENS_PER_THREAD * options.threads,
      ...(options.waitingMax === undefined ? {} : { waitingMax: options.waitingMax }),
    })
  }

  static async open(options: EncoderOptions): Promise<Encoder> {
    const { modelFile, threads = availableParallelism() } = options
    const file = await readEncoderFile(modelFile)
    await checkWeights(modelFile, file)
    const shortRunTokensMax = RUN_TOKENS_PER_THREAD * threads
    const graph = await openThreadedGraph(file.description, { modelFile, threads, shortRunTokensMax })
    return new Encoder(file, graph, { ...options, threads })
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
      reading: { vector: isWanted ? vector : null, modelVersion: this.#modelVersion },
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

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export interface BranchTexts {
  /** What the branches of its question have in common; empty where it is the only one. */
  readonly stem: string
  readonly rest: string
}

/**
 * The meanings of yes and no were not in training. On 350 labelled questions the meaning of yes in parentheses changes 7 % of
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

/** Tokens of an option that its vector is made of, as in training. */
const OPTION_TOKENS_MAX = 48

/** An option by itself, for its vector. */
const optionText = ({ value, description }: Extract<Branch, { kind: "choice" }>): string =>
  described(value, description)

const described = (text: string, description: string): string =>
  description === "" ? text : `${text}: ${description}`

/** Longer words are unknown as a whole, as in training. */
const WORD_CHARACTERS_MAX = 100
/** Distinct words whose tokens are remembered: branches repeat their question's. */
const MEMOIZED_WORDS_MAX = 20_000
/** V8 copies a part of a text that is as short as this; a longer one would keep the whole text in memory. */
const MEMOIZED_UNITS_MAX = 12

const ASCII = /^[\t\n\r\x20-\x7e]*$/
/** Control, format, private-use and replacement characters are dropped; tab and line ends are spaces. */
const DROPPED = /\ufffd|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu
const NONSPACING_MARK = /\p{Mn}/gu
/** Every CJK ideograph is a word. */
const IDEOGRAPH =
  /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu
/** A word is a punctuation mark, or a run of characters that are neither punctuation nor space. */
const WORD = /[!-/:-@[-`{-~\p{P}]|[^\s\p{White_Space}!-/:-@[-`{-~\p{P}]+/gu

interface SpecialTokens {
  readonly start: number
  readonly separator: number
  readonly unknown: number
}

export class WordPiece {
  readonly special: SpecialTokens
  readonly #initial = new Map<string, number>()
  readonly #continuing = new Map<string, number>()
  readonly #memoized = new Map<string, readonly number[]>()

  /** The vocabulary in the order of its ids; throws RangeError when it lacks a special token. */
  constructor(vocabulary: readonly string[]) {
    for (const [id, token] of vocabulary.entries()) {
      if (token.startsWith("##")) this.#continuing.set(token.slice(2), id)
      this.#initial.set(token, id)
    }
    const named = (token: string): number => {
      const id = this.#initial.get(token)
      if (id === undefined) throw new RangeError(`its vocabulary has no token ${token}`)
      return id
    }
    this.special = { start: named("[CLS]"), separator: named("[SEP]"), unknown: named("[UNK]") }
  }

  encode(text: string): number[] {
    const ids: number[] = []
    for (const [word] of normalize(text).matchAll(WORD)) for (const id of this.#tokensOf(word)) ids.push(id)
    return ids
  }

  #tokensOf(word: string): readonly number[] {
    if (word.length > MEMOIZED_UNITS_MAX) return this.#split(word)
    const known = this.#memoized.get(word)
    if (known !== undefined) return known
    const ids = this.#split(word)
    if (this.#memoized.size >= MEMOIZED_WORDS_MAX) this.#memoized.clear()
    this.#memoized.set(word, ids)
    return ids
  }

  /** Greedy: the longest token that the rest of the word starts with, until nothing is left. */
  #split(word: string): readonly number[] {
    // A character has at most two units.
    if (word.length > 2 * WORD_CHARACTERS_MAX) return [this.special.unknown]
    const characters = Array.from(word)
    if (characters.length > WORD_CHARACTERS_MAX) return [this.special.unknown]
    const ids: number[] = []
    for (let start = 0; start < characters.length;) {
      const found = this.#longest(characters, start)
      if (found === undefined) return [this.special.unknown]
      ids.push(found.id)
      start = found.end
    }
    return ids
  }

  #longest(characters: readonly string[], start: number): { id: number; end: number } | undefined {
    const tokens = start === 0 ? this.#initial : this.#continuing
    for (let end = characters.length; end > start; end--) {
      const id = tokens.get(characters.slice(start, end).join(""))
      if (id !== undefined) return { id, end }
    }
    return undefined
  }
}

/** Pieces of about so many characters that end before a blank, so that their tokens are those of the whole text. */
export function* textPieces(text: string, charactersMin: number): Generator<string> {
  for (let start = 0; start < text.length;) {
    const blank = text.slice(start + charactersMin).search(/[ \t\n\r]/u)
    const end = blank < 0 ? text.length : start + charactersMin + blank
    yield text.slice(start, end)
    start = end
  }
}

function normalize(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  const cleaned = text.toWellFormed().replace(DROPPED, "").replace(IDEOGRAPH, " $& ")
  const unaccented = cleaned.normalize("NFD").replace(NONSPACING_MARK, "")
  // Character by character: lower-casing a whole text would turn the last sigma of a word into its final form.
  return Array.from(unaccented, (character) => character.toLowerCase()).join("")
}

/** What the thread of the network serves. */
export interface GraphService {
  open: {
    input: { readonly description: EncoderDescription; readonly options: GraphOptions }
    output: void
  }
  readEvidence: {
    input: { readonly past: PastHandle; readonly block: Tokens; readonly start: number }
    output: Float32Array
  }
  readBranch: {
    input: { readonly past: PastHandle; readonly part: Tokens; readonly at: BranchPart }
    output: void
  }
  scoreRows: { input: readonly GraphRow[]; output: RowScores[] }
  scoreQuestions: {
    input: {
      readonly past: PastHandle
      readonly rows: readonly BranchRow[]
      readonly offset: number
    }
    output: BranchScores
  }
  release: { input: number; output: void }
}

export interface PastHandle extends Past {
  readonly id: number
  /** What it begins with. */
  readonly base: PastHandle | null
}

async function openThreadedGraph(description: EncoderDescription, options: GraphOptions): Promise<Graph> {
  const thread = new Connection<GraphService>(threadChannel(new URL("./graph-thread.ts", import.meta.url)))
  try {
    await thread.call("open", { description, options })
  } catch (error) {
    await thread.close()
    throw error
  }
  return new ThreadedGraph(thread, description)
}

/** The network in its thread; this side has handles of what lies there. */
class ThreadedGraph implements Graph {
  readonly #thread: Connection<GraphService>
  readonly #description: EncoderDescription
  #lastId = 0

  constructor(thread: Connection<GraphService>, description: EncoderDescription) {
    this.#thread = thread
    this.#description = description
  }

  bytesOf(tokens: number): number {
    return pastBytes(this.#description, tokens)
  }

  createPast(tokens: number): PastHandle {
    return { id: ++this.#lastId, tokens, bytes: this.bytesOf(tokens), base: null }
  }

  extendPast(past: Past, tokens: number): PastHandle {
    return { ...this.createPast(past.tokens + tokens), base: handle(past) }
  }

  releasePast(past: Past): void {
    // A thread that is gone has nothing left to release.
    void this.#thread.call("release", handle(past).id).catch(() => undefined)
  }

  async readEvidence(past: Past, block: Tokens, start: number): Promise<Float32Array> {
    return await this.#thread.call("readEvidence", { past: handle(past), block: block.slice(), start })
  }

  async readBranch(past: Past, part: Tokens, at: BranchPart): Promise<void> {
    await this.#thread.call("readBranch", { past: handle(past), part: part.slice(), at })
  }

  async scoreRows(rows: readonly GraphRow[]): Promise<RowScores[]> {
    const sent = rows.map(({ evidence, questions, pooling }) => ({ evidence, questions, pooling }))
    return await this.#thread.call("scoreRows", sent)
  }

  async scoreQuestions(past: Past, rows: readonly BranchRow[], offset = 0): Promise<BranchScores> {
    const sent = rows.map((row) =>
      row.map(({ stem, branches }) => ({ stem, branches: branches.map((branch) => branch.slice()) })),
    )
    return await this.#thread.call("scoreQuestions", { past: handle(past), rows: sent, offset })
  }

  async close(): Promise<void> {
    await this.#thread.close()
  }
}

/** Every past that is given to this graph was made by it. */
const handle = (past: Past): PastHandle => past as PastHandle
