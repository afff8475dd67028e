/**
 * Generates the answers as JSON with a grammar, on the same model through node-llama-cpp: what users do today. In a process
 * of its own, as the product has it: scorer and writer each load a llama.cpp, and one process is for one of them.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import type { Llama, LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp"
import { LlamaGrammar, LlamaGrammarEvaluationState } from "node-llama-cpp"
import { openLlama } from "../src/engine/generate/local-model.ts"
import type { WayOptions } from "./ways.ts"
import type { TokenWork } from "./works.ts"
import { timed } from "./works.ts"

const CONTEXT_TOKENS = 4096

/** What a generated answer is to look like, from the least that could do to what the scorer's caller gets. */
const jsonForms = {
  "JSON, one list of true and false": { perRequest: 64, item: '("true" | "false")' },
  "JSON, a request per question": { perRequest: 1, item: '"{\\"probability\\":0." [0-9] [0-9] "}"' },
  "JSON, the answers of the API": {
    perRequest: 32,
    item: '"{\\"type\\":\\"predicate\\",\\"name\\":\\"q" [0-9] [0-9] "\\",\\"probability\\":0." [0-9] [0-9] "}"',
  },
} as const

/** The evidence is evaluated once, also where the questions take several requests. */
class JsonWriter {
  readonly #llama: Llama
  readonly #model: LlamaModel
  readonly #sequence: LlamaContextSequence

  private constructor(llama: Llama, model: LlamaModel, sequence: LlamaContextSequence) {
    this.#llama = llama
    this.#model = model
    this.#sequence = sequence
  }

  static async open({ modelFile, threads, backend }: WayOptions): Promise<JsonWriter> {
    const { llama, model } = await openLlama({ modelFile, threads, gpu: backend !== "cpu" })
    const context = await model.createContext({
      sequences: 1,
      contextSize: CONTEXT_TOKENS,
      threads,
      flashAttention: true,
    })
    return new JsonWriter(llama, model, context.getSequence())
  }

  /** Milliseconds, and how many tokens were written. */
  async write({ prefix, branches }: TokenWork, form: keyof typeof jsonForms) {
    const { perRequest, item } = jsonForms[form]
    let written = 0
    await this.#sequence.clearHistory()
    const ms = await timed(async () => {
      for (let first = 0; first < branches.length; first += perRequest) {
        const questions = branches.slice(first, first + perRequest)
        const kept = first === 0 ? 0 : prefix.length
        const { nextTokenIndex } = this.#sequence
        if (nextTokenIndex > kept) {
          await this.#sequence.eraseContextTokenRanges([{ start: kept, end: nextTokenIndex }])
        }
        const asked = [...(kept === 0 ? prefix : []), ...questions.flatMap((question) => [...question])]
        written += await this.#generate(asked as Token[], gbnf(item, questions.length))
      }
    })
    return { ms, written }
  }

  async #generate(prompt: Token[], grammar: string): Promise<number> {
    const state = new LlamaGrammarEvaluationState({
      model: this.#model,
      grammar: new LlamaGrammar(this.#llama, { grammar }),
    })
    let count = 0
    for await (const _ of this.#sequence.evaluate(prompt, { temperature: 0, grammarEvaluationState: state }))
      count++
    return count
  }

  async close(): Promise<void> {
    await this.#llama.dispose()
  }
}

const gbnf = (item: string, count: number): string =>
  `root ::= "[" item${count > 1 ? ` ("," item){${count - 1}}` : ""} "]"\nitem ::= ${item}\n`

/** What is asked of the process, which answers in kind and ends. */
interface WriteQuestion {
  readonly options: WayOptions
  readonly work: { readonly prefix: readonly number[]; readonly branches: readonly (readonly number[])[] }
}

export type Written = Readonly<Record<string, { readonly ms: number; readonly written: number }>>

/** All forms of one work. */
export async function writeJson(options: WayOptions, { prefix, branches }: TokenWork): Promise<Written> {
  const child = fork(import.meta.filename)
  const question: WriteQuestion = {
    options,
    work: { prefix: [...prefix], branches: branches.map((branch) => [...branch]) },
  }
  child.send(question)
  const exit = once(child, "exit").then(([code]) => {
    throw new Error(`Cannot measure generated JSON: its process ended with ${String(code)}`)
  })
  const [written] = (await Promise.race([once(child, "message"), exit])) as [Written]
  exit.catch(() => undefined)
  return written
}

async function answer({ options, work }: WriteQuestion): Promise<Written> {
  const writer = await JsonWriter.open(options)
  const one: TokenWork = {
    prefix: Int32Array.from(work.prefix),
    branches: work.branches.map((branch) => Int32Array.from(branch)),
  }
  const written: Record<string, { ms: number; written: number }> = {}
  for (const form of Object.keys(jsonForms) as (keyof typeof jsonForms)[])
    written[form] = await writer.write(one, form)
  await writer.close()
  return written
}

if (process.argv[1] === import.meta.filename)
  process.once("message", (question: WriteQuestion) => {
    void answer(question).then((written) => process.send?.(written, () => process.disconnect()))
  })
