/** The ways of doing one work that the scorer is compared with: what users do today, and what the machine could do at best. */
import { findAnswerTokens } from "../src/engine/llama/answer-tokens.ts"
import { LlamaContext } from "../src/engine/llama/binding.ts"
import { readGguf } from "../src/engine/llama/gguf.ts"
import type { LlamaBackend } from "../src/engine/llama/library.ts"
import { Scorer } from "../src/engine/llama/scorer.ts"
import type { TokenTrie } from "../src/engine/llama/trie.ts"
import { evaluatePlainly, scoreInTurn, scoreNaively } from "../test/naive-scorer.ts"
import type { TokenWork } from "./works.ts"
import { jobOf, timed } from "./works.ts"

export interface WayOptions {
  readonly modelFile: string
  readonly threads: number
  readonly backend: LlamaBackend
  readonly libraryDir?: string
  readonly batchTokensMax?: number
}

const never = new AbortController().signal
/** Whole prompts are slow and all alike: some are run and the time is scaled. */
const NAIVE_BRANCHES = 4
const IN_TURN_BRANCHES = 64
const PLAIN_TOKENS = 3072
const CONTEXT_TOKENS = 4096

/** The embedded scorer in this process, and the simpler ways on a context of their own. Times are milliseconds. */
export class Ways {
  readonly scorer: Scorer
  /** For the simpler ways, which start from empty cells. */
  readonly plainContext: LlamaContext
  #organizations = 0

  private constructor(scorer: Scorer, plain: LlamaContext) {
    this.scorer = scorer
    this.plainContext = plain
  }

  static async open(options: WayOptions): Promise<Ways> {
    const { modelFile, threads, batchTokensMax } = options
    const scorer = await Scorer.open(options)
    const plain = await LlamaContext.create(scorer.model, findAnswerTokens(scorer.model), {
      threads,
      ...(batchTokensMax === undefined ? {} : { batchTokensMax }),
      memoryBytes: 0,
      contextTokensMax: CONTEXT_TOKENS,
      keyValueWidth: (await readGguf(modelFile)).keyValueWidth,
    })
    return new Ways(scorer, plain)
  }

  /** Another organization each time, so that no evidence is found in the cache. */
  #job(work: TokenWork) {
    return { ...jobOf(work), organizationId: `bench${this.#organizations++}` }
  }

  /** All requests at one time, as one organization would send them; answers how long each of them took. */
  async together(requests: readonly TokenWork[]): Promise<readonly number[]> {
    const jobs = requests.map((request) => ({
      ...jobOf(request),
      organizationId: `crowd${this.#organizations}`,
    }))
    this.#organizations++
    return await Promise.all(jobs.map((job) => timed(() => this.scorer.run(job, never))))
  }

  shared(work: TokenWork): Promise<number> {
    const job = this.#job(work)
    return timed(() => this.scorer.run(job, never))
  }

  /** The same evidence twice: what the first time cost, and the second. */
  async twice(work: TokenWork): Promise<readonly [first: number, second: number]> {
    const job = this.#job(work)
    const first = await timed(() => this.scorer.run(job, never))
    return [first, await timed(() => this.scorer.run(job, never))]
  }

  async oneAfterTheOther(requests: readonly TokenWork[]): Promise<number> {
    const jobs = requests.map((request) => this.#job(request))
    return await timed(async () => {
      for (const job of jobs) await this.scorer.run(job, never)
    })
  }

  /** Evidence shared, but every option's question evaluated whole. */
  apart(work: TokenWork): Promise<number> {
    const job = { ...this.#job(work), branches: unsharedTrie(work.branches) }
    return timed(() => this.scorer.run(job, never))
  }

  async inTurn({ prefix, branches }: TokenWork): Promise<number> {
    const some = branches.slice(0, IN_TURN_BRANCHES)
    const start = await timed(() => scoreInTurn(this.plainContext, prefix, some.slice(0, 1)))
    if (branches.length <= IN_TURN_BRANCHES)
      return await timed(() => scoreInTurn(this.plainContext, prefix, some))
    const all = await timed(() => scoreInTurn(this.plainContext, prefix, some))
    return start + ((all - start) / (some.length - 1)) * (branches.length - 1)
  }

  async naive({ prefix, branches }: TokenWork): Promise<number> {
    const some = branches.slice(0, NAIVE_BRANCHES)
    return (
      ((await timed(() => scoreNaively(this.plainContext, prefix, some))) / some.length) * branches.length
    )
  }

  /** The limit: the same count of tokens as one prompt (or several, where it exceeds the context), nothing asked. */
  async plain({ prefix, branches }: TokenWork): Promise<number> {
    const tokens = [prefix, ...branches].flatMap((part) => [...part])
    const some = tokens.slice(0, PLAIN_TOKENS)
    return ((await timed(() => evaluatePlainly(this.plainContext, some))) / some.length) * tokens.length
  }

  async close(): Promise<void> {
    this.plainContext.close()
    await this.scorer.close()
  }
}

/** A tree whose branches share nothing. */
function unsharedTrie(branches: readonly Int32Array[]): TokenTrie {
  const ends: { node: number; branches: number[] }[] = []
  let nodes = 0
  for (const [index, branch] of branches.entries()) {
    nodes += branch.length
    ends.push({ node: nodes - 1, branches: [index] })
  }
  return {
    tokens: Int32Array.from(branches.flatMap((branch) => [...branch])),
    depths: Int32Array.from(branches.flatMap((branch) => [...branch.keys()].map((index) => index + 1))),
    ends,
    branchCount: branches.length,
    depthMax: Math.max(...branches.map((branch) => branch.length)),
  }
}
