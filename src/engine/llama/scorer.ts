/** One model ready to score: turns texts into tokens, checks that they fit, and hands them to the scheduler. */
import { availableParallelism } from "node:os"
import { Fault } from "../../contract/errors.ts"
import type { EngineCall, ModelFacts, Scored, ScoreWork } from "../engine.ts"
import { findAnswerTokens } from "./answer-tokens.ts"
import { LlamaContext, LlamaModel } from "./binding.ts"
import { readGguf } from "./gguf.ts"
import type { LlamaBackend } from "./library.ts"
import { splitTemplate } from "./prompt.ts"
import type { ScoreJob, SchedulerStats } from "./scheduler.ts"
import { Scheduler } from "./scheduler.ts"
import { buildTrie } from "./trie.ts"

const DEFAULT_MEMORY_BYTES = 512 * 1024 * 1024
const DEFAULT_CACHE_BYTES = 512 * 1024 * 1024
/** Branches tokenised before other work gets a turn. */
const BRANCHES_PER_TURN = 64

export interface ScorerOptions {
  /** Path of a GGUF file. */
  readonly modelFile: string
  /** Path of a LoRA adapter of the model. */
  readonly adapterFile?: string
  readonly backend?: LlamaBackend
  /** A folder with a build of llama.cpp to use instead of an installed package. */
  readonly libraryDir?: string
  readonly threads?: number
  /** Memory for the key-value cells of running requests; at least one full context is always allocated. */
  readonly memoryBytes?: number
  /** Memory for the evaluated prefixes of finished requests; 0 keeps none. */
  readonly cacheBytes?: number
  /** Shortens the context below what the model was trained for. */
  readonly contextTokensMax?: number
  /** Tokens of one decode, instead of the size that was measured as best for where the model runs. */
  readonly batchTokensMax?: number
  /** Keeps evaluated prefixes near the cells, as is best on a GPU; absent, it is done there and nowhere else. */
  readonly keepsOnDevice?: boolean
  /** Requests that may wait for cells before further ones are refused as `overloaded`. */
  readonly waitingMax?: number
}

/** Work whose branches are texts, without the template's own tokens; each ends in a question answered yes or no. */
export interface TextWork extends Omit<ScoreWork, "branches"> {
  readonly branches: readonly string[]
}

/** A job with the count that its caller is told. */
export interface PreparedJob extends ScoreJob {
  readonly inputTokens: number
}

export class Scorer {
  readonly facts: ModelFacts
  readonly context: LlamaContext
  readonly model: LlamaModel
  readonly #scheduler: Scheduler
  readonly #head: Int32Array
  readonly #tail: Int32Array

  private constructor(parts: {
    facts: ModelFacts
    context: LlamaContext
    model: LlamaModel
    scheduler: Scheduler
    head: Int32Array
    tail: Int32Array
  }) {
    this.facts = parts.facts
    this.context = parts.context
    this.model = parts.model
    this.#scheduler = parts.scheduler
    this.#head = parts.head
    this.#tail = parts.tail
  }

  static async open(options: ScorerOptions): Promise<Scorer> {
    const summary = await readGguf(options.modelFile)
    const model = await LlamaModel.load({
      file: options.modelFile,
      backend: options.backend ?? "auto",
      ...(options.libraryDir === undefined ? {} : { libraryDir: options.libraryDir }),
    })
    const frame = splitTemplate({
      template: summary.chatTemplate,
      bosText: model.bosToken >= 0 ? model.tokenText(model.bosToken) : "",
      eosText: "",
    })
    const cacheBytesMax = options.cacheBytes ?? DEFAULT_CACHE_BYTES
    const onDevice = options.keepsOnDevice ?? model.onGpu
    const context = await LlamaContext.create(model, findAnswerTokens(model), {
      threads: options.threads ?? availableParallelism(),
      memoryBytes: options.memoryBytes ?? DEFAULT_MEMORY_BYTES,
      keyValueWidth: summary.keyValueWidth,
      deviceStatesBytes: onDevice ? cacheBytesMax : 0,
      ...(options.adapterFile === undefined ? {} : { adapterFile: options.adapterFile }),
      ...(options.contextTokensMax === undefined ? {} : { contextTokensMax: options.contextTokensMax }),
      ...(options.batchTokensMax === undefined ? {} : { batchTokensMax: options.batchTokensMax }),
    })
    const scheduler = new Scheduler(context, {
      cacheBytesMax,
      retainsLast: onDevice && cacheBytesMax > 0,
      ...(options.waitingMax === undefined ? {} : { waitingMax: options.waitingMax }),
    })
    const { name, parameterCount, quantization } = summary
    return new Scorer({
      facts: { name, contextTokensMax: context.contextTokensMax, parameterCount, quantization },
      context,
      model,
      scheduler,
      head: withBos(model, await model.tokenize(frame.head, true)),
      tail: await model.tokenize(frame.tail, true),
    })
  }

  async score(work: TextWork, { admit, signal }: EngineCall): Promise<Scored> {
    const job = await this.prepare(work, signal)
    await admit(job.inputTokens)
    return { margins: await this.run(job, signal), inputTokens: job.inputTokens }
  }

  /** Text that a caller sent is tokenised with special tokens off, so that it cannot close the user's turn. */
  async prepare(work: TextWork, signal: AbortSignal): Promise<PreparedJob> {
    const prefix = joined(this.#head, await this.model.tokenize(work.evidence, false))
    const suffixes: Int32Array[] = []
    let inputTokens = prefix.length
    for (const [index, branch] of work.branches.entries()) {
      if (index % BRANCHES_PER_TURN === BRANCHES_PER_TURN - 1) await nextTurn()
      signal.throwIfAborted()
      const suffix = joined(await this.model.tokenize(branch, false), this.#tail)
      this.#checkLength(prefix.length, suffix.length)
      suffixes.push(suffix)
      inputTokens += suffix.length
    }
    return { organizationId: work.organizationId, prefix, branches: buildTrie(suffixes), inputTokens }
  }

  #checkLength(prefixTokens: number, suffixTokens: number): void {
    const found = prefixTokens + suffixTokens
    const most = this.context.contextTokensMax
    if (found <= most) return
    throw new Fault(
      "context_length_exceeded",
      `Cannot score the request: the input with its longest question has ${found} tokens ` +
        `and the context of the model holds ${most}; shorten the input or the question`,
    )
  }

  run(job: ScoreJob, signal: AbortSignal): Promise<Float64Array> {
    return this.#scheduler.submit(job, signal)
  }

  stats(): SchedulerStats {
    return this.#scheduler.stats()
  }

  /** How long the present decode has run; 0 between decodes. */
  decodingMs(): number {
    return this.context.decodingMs()
  }

  /** Waits for what runs, then frees native memory. */
  async close(): Promise<void> {
    await this.#scheduler.idle()
    this.context.close()
    this.model.close()
  }
}

function withBos(model: LlamaModel, head: Int32Array): Int32Array {
  if (!model.addsBos || head[0] === model.bosToken) return head
  return joined(Int32Array.of(model.bosToken), head)
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  const both = new Int32Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
