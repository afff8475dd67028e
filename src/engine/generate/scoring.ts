/** Decisions by a local language model: the evidence is evaluated once, and each branch after it up to where the answer starts. */
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Token } from "node-llama-cpp"
import { Fault } from "../../contract/errors.ts"
import { promptText } from "../branch.ts"
import type { EngineCall, EngineStats, Scored, ScoreWork } from "../engine.ts"
import { splitTemplate } from "../prompt.ts"
import { CONTROL_TOKEN, type LocalModel, type Slot, vocabularyOf } from "./local-model.ts"

/** Branches tokenised before other work of the process gets a turn. */
const branchesPerTurn = 64
/** Tokens of evidence evaluated before an abort is seen; the library's own batch. */
const chunkTokens = 512
/** Work that takes longer lets other organizations that wait go first. */
const turnMs = 1_000

export interface PreparedScoring {
  readonly organizationId: string
  readonly prefix: readonly Token[]
  readonly branches: readonly (readonly Token[])[]
  /** The prefix once, and every branch. */
  readonly inputTokens: number
}

export class Scoring {
  readonly #model: LocalModel
  readonly #head: readonly Token[]
  readonly #tail: readonly Token[]
  readonly #yes: readonly Token[]
  readonly #no: readonly Token[]
  readonly #stats = { runs: 0, tokensRun: 0, tokensReused: 0, cacheHits: 0, cacheMisses: 0 }

  /** Throws for a model whose template or vocabulary cannot ask and answer. */
  constructor(model: LocalModel) {
    const { template, bosText } = model.template
    const { texts, types } = vocabularyOf(model.model)
    const frame = splitTemplate({ template, bosText, eosText: "" })
    const { yes, no } = findAnswerTokens(texts, (token) => types[token] === CONTROL_TOKEN)
    this.#model = model
    this.#head = model.withBos(model.tokenize(frame.head, true))
    this.#tail = model.tokenize(frame.tail, true)
    // Token is a branded number; these are in the vocabulary.
    this.#yes = yes as Token[]
    this.#no = no as Token[]
  }

  stats(): EngineStats {
    // What was evaluated stays in the cells of its slot, which are there anyway.
    return { ...this.#stats, tokensRunMax: this.#stats.runs * chunkTokens, cacheBytes: 0 }
  }

  async score(work: ScoreWork, { admit, signal }: EngineCall): Promise<Scored> {
    const prepared = await this.prepare(work, signal)
    await admit(prepared.inputTokens)
    return { margins: await this.run(prepared, signal), inputTokens: prepared.inputTokens }
  }

  /** Text that a caller sent is tokenised with special tokens off, so that it cannot close the user's turn. */
  async prepare(
    { organizationId, evidence, branches }: ScoreWork,
    signal: AbortSignal,
  ): Promise<PreparedScoring> {
    const { tokenCharactersMax } = this.#model
    // What cannot fit is not tokenised: others of the process would wait for it.
    this.#checkLength(Math.ceil(evidence.length / tokenCharactersMax), "at least ")
    const prefix = [...this.#head, ...this.#model.tokenize(evidence, false)]
    const suffixes: Token[][] = []
    let inputTokens = prefix.length
    for (const [index, branch] of branches.entries()) {
      if (index % branchesPerTurn === branchesPerTurn - 1) await nextTurn()
      signal.throwIfAborted()
      const suffix = [...this.#model.tokenize(promptText(branch), false), ...this.#tail]
      this.#checkLength(prefix.length + suffix.length)
      suffixes.push(suffix)
      inputTokens += suffix.length
    }
    return { organizationId, prefix, branches: suffixes, inputTokens }
  }

  #checkLength(found: number, about = ""): void {
    const most = this.#model.contextTokensMax
    if (found <= most) return
    throw new Fault(
      "context_length_exceeded",
      `Cannot score the request: the input with its longest question has ${about}${found} tokens ` +
        `and the context of the model holds ${most}; shorten the input or the question`,
    )
  }

  /** One margin per branch. Aborting ends it before its next decode. */
  async run(
    { organizationId, prefix, branches }: PreparedScoring,
    signal: AbortSignal,
  ): Promise<Float64Array> {
    const margins = new Float64Array(branches.length)
    const left = inTokenOrder(branches)
    while (left.length > 0) {
      const slot = await this.#model.acquire(organizationId, prefix, signal)
      try {
        await this.#readEvidence(slot, prefix, signal)
        await this.#answer(slot, prefix, left, { margins, signal })
      } catch (error) {
        if (!signal.aborted) slot.stale = true
        throw error
      } finally {
        this.#model.release(slot)
      }
    }
    return margins
  }

  /** Of evidence that is held in part whole chunks are kept, so that the rest is evaluated in the shapes of a first request. */
  async #readEvidence(slot: Slot, prefix: readonly Token[], signal: AbortSignal): Promise<void> {
    const { sequence } = slot
    const shared = slot.stale ? 0 : sequence.compareContextTokens([...prefix]).firstDifferentIndex
    const wanted = shared === prefix.length ? shared : shared - (shared % chunkTokens)
    const kept = await this.#model.keep(slot, prefix.slice(0, wanted))
    this.#stats[kept > 0 ? "cacheHits" : "cacheMisses"]++
    this.#stats.tokensReused += kept
    for (let start = kept; start < prefix.length; start += chunkTokens) {
      signal.throwIfAborted()
      const chunk = prefix.slice(start, start + chunkTokens)
      await sequence.evaluateWithoutGeneratingNewTokens(chunk)
      this.#ran(chunk.length)
    }
    // Does nothing for models that can go back to any token.
    await sequence.takeCheckpoint()
  }

  /** Takes what it has answered off the list; stops early when it has had its turn. */
  async #answer(
    slot: Slot,
    prefix: readonly Token[],
    left: BranchPlace[],
    { margins, signal }: { readonly margins: Float64Array; readonly signal: AbortSignal },
  ): Promise<void> {
    const startedMs = performance.now()
    for (let next = left.at(-1); next; next = left.at(-1)) {
      signal.throwIfAborted()
      const margin = await this.#margin(slot, [...prefix, ...next.tokens])
      for (const place of next.places) margins[place] = margin
      left.pop()
      const hadItsTurn = performance.now() - startedMs >= turnMs
      if (hadItsTurn && this.#model.isWantedBeside(slot.organizationId ?? "")) return
    }
  }

  /** What the branch before has in common with this one is kept. */
  async #margin({ sequence }: Slot, tokens: readonly Token[]): Promise<number> {
    await sequence.adaptStateToTokens(tokens.slice(0, -1), false)
    const rest = tokens.slice(sequence.nextTokenIndex, -1)
    const last = tokens.slice(-1).map((token): [Token, object] => {
      const filter = { tokens: [...this.#yes, ...this.#no] }
      return [token, { generateNext: { logits: { filter } } }]
    })
    const output = await sequence.controlledEvaluate([...rest, ...last])
    this.#ran(rest.length + 1)
    const logits = output.at(-1)?.next.logits
    if (!logits) throw new Error("node-llama-cpp answered no logits")
    return logSumExp(this.#yes, logits) - logSumExp(this.#no, logits)
  }

  #ran(tokens: number): void {
    this.#stats.runs++
    this.#stats.tokensRun += tokens
  }
}

interface BranchPlace {
  readonly tokens: readonly Token[]
  /** Of equal branches, which are asked once. */
  readonly places: number[]
}

/** In an order that does not depend on the one in which they came, and with common beginnings side by side. */
function inTokenOrder(branches: readonly (readonly Token[])[]): BranchPlace[] {
  const distinct = new Map<string, BranchPlace>()
  for (const [place, tokens] of branches.entries()) {
    const known = distinct.get(tokens.join())
    if (known) known.places.push(place)
    else distinct.set(tokens.join(), { tokens, places: [place] })
  }
  return [...distinct.values()].toSorted((a, b) => compareTokens(a.tokens, b.tokens))
}

function compareTokens(a: readonly Token[], b: readonly Token[]): number {
  const differing = a.findIndex((token, index) => token !== b[index])
  // Past the end of the shorter list there is no token, which sorts first.
  return differing < 0 ? a.length - b.length : (a[differing] ?? -1) - (b[differing] ?? -1)
}

function logSumExp(tokens: readonly Token[], logits: ReadonlyMap<Token, number>): number {
  const values = tokens.map((token) => logits.get(token) ?? -Infinity)
  const peak = Math.max(...values)
  return peak + Math.log(values.reduce((sum, value) => sum + Math.exp(value - peak), 0))
}

interface AnswerTokens {
  readonly yes: readonly number[]
  readonly no: readonly number[]
}

/** Every token that is one spelling of the word, with or without the space that starts a word in that vocabulary. */
export function findAnswerTokens(
  texts: readonly string[],
  isControlToken: (token: number) => boolean,
): AnswerTokens {
  const yes: number[] = []
  const no: number[] = []
  for (const [token, text] of texts.entries()) {
    const word = spelledWord(text)
    if (word === undefined || isControlToken(token)) continue
    if (word === "yes") yes.push(token)
    else no.push(token)
  }
  if (yes.length === 0 || no.length === 0) {
    throw new Error(
      `Cannot read answers from this model: its vocabulary has ${yes.length} tokens for yes and ${no.length} for no; ` +
        "use a model in which each is one token",
    )
  }
  return { yes, no }
}

// Byte-level vocabularies write a leading space as "Ġ", SentencePiece ones as "▁".
const SPELLING = /^[Ġ▁ ]?(yes|Yes|YES|no|No|NO)$/

function spelledWord(text: string): "yes" | "no" | undefined {
  const word = SPELLING.exec(text)?.[1]?.toLowerCase()
  return word === "yes" || word === "no" ? word : undefined
}
