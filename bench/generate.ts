/**
 * Local generation beside node-llama-cpp used directly, of 1 and of 4 streams: how long a stream waits for its first token,
 * in the mean, and tokens a second from the moment that all are asked for until the last has its end.
 */
import { type LlamaContextSequence, type LlamaModel, type Token, TokenBias } from "node-llama-cpp"
import { Agent, request } from "undici"
import type { GenerateWork, GenerationUsage } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { openLlama, threadsDefault } from "../src/engine/generate/local-model.ts"
import { defaultModelFile } from "../test/models.ts"
import { type TestServer, startServer } from "../test/server.ts"

const rounds = Number(process.env["UMPIRE_BENCH_ROUNDS"] ?? 9)
const warmRounds = 2
const streamCounts = [1, 4]
const outputTokens = 128
const contextTokens = 4096
const threads = Number(process.env["UMPIRE_ENGINE_THREADS"] ?? threadsDefault())
/** Each prompt begins with a number of its own, so that nothing of it is found cached. */
const questionOf = (number: number): string =>
  `${number}. ${"Write a long story about a river, a bridge and a town. ".repeat(12)}`
const promptOf = (question: string): string =>
  `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`
/** None of the tokens that end an answer is ever written: every side writes the same count. */
const endTokens = [0, 1, 2]
const endBias = -100
const endBiases = Object.fromEntries(endTokens.map((token) => [token, endBias]))

/** One stream as its reader saw it. */
interface Stream {
  readonly firstMs: number
  readonly endMs: number
  readonly tokens: number
}

/** Asks for one answer and reads it to its end. */
type Way = (question: string, index: number) => Promise<Stream>

interface Round {
  readonly firstMs: number
  readonly tokensPerSecond: number
}

async function measure(way: Way, streams: number): Promise<Round> {
  const startedMs = performance.now()
  const ended = await Promise.all(
    Array.from({ length: streams }, (_, index) => way(questionOf(++asked), index)),
  )
  for (const { tokens } of ended)
    if (tokens !== outputTokens)
      throw new Error(`an answer has ${tokens} tokens and should have ${outputTokens}`)
  const seconds = (Math.max(...ended.map(({ endMs }) => endMs)) - startedMs) / 1000
  return {
    firstMs: ended.reduce((sum, one) => sum + one.firstMs - startedMs, 0) / streams,
    tokensPerSecond: (streams * outputTokens) / seconds,
  }
}
let asked = 0

/** What a program would write that has the library and nothing else. */
function direct(model: LlamaModel, sequences: readonly LlamaContextSequence[]): Way {
  return async (question, index) => {
    const sequence = sequences[index]
    if (!sequence) throw new RangeError(`There is no sequence ${index}`)
    await sequence.clearHistory()
    const bias = new TokenBias(model.tokenizer)
    // `set` leaves such tokens out; they are the special ones of this model's vocabulary.
    const { _biases: biases } = bias as unknown as { readonly _biases: Map<Token, number> }
    for (const token of endTokens) biases.set(token as Token, endBias)
    const options = { temperature: 0, topK: 0, topP: 1, minP: 0, tokenBias: bias }
    let firstMs = 0
    let tokens = 0
    let text = ""
    for await (const token of sequence.evaluate(model.tokenize(promptOf(question), true), options)) {
      text += model.detokenize([token])
      if (++tokens === 1) firstMs = performance.now()
      if (tokens >= outputTokens) break
    }
    if (text === "") throw new Error("nothing was written")
    return { firstMs, endMs: performance.now(), tokens }
  }
}

function throughEngine(engine: LocalEngine): Way {
  const never = new AbortController().signal
  return async (question) => {
    const work: GenerateWork = {
      organizationId: "org_bench",
      messages: [{ role: "user", content: question }],
      tools: [],
      toolChoice: "auto",
      parallelToolCalls: true,
      format: { kind: "text" },
      sampling: {
        temperature: 0,
        topP: null,
        seed: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        logitBias: endBiases,
      },
      stop: [],
      topLogprobs: null,
      outputTokensMax: outputTokens,
      truncate: false,
      effort: null,
    }
    let firstMs = 0
    let tokens = 0
    const call = {
      signal: never,
      admit: async () => outputTokens,
      onUsage: (used: GenerationUsage) => void (tokens = used.outputTokens),
    }
    for await (const event of engine.generate(work, call))
      if (event.kind === "text") firstMs ||= performance.now()
    return { firstMs, endMs: performance.now(), tokens }
  }
}

/** Everything that a client pays for: the key, the meter, the ledger's lease, the events over HTTP. */
function throughServer(server: TestServer, agent: Agent): Way {
  return async (question) => {
    const { body } = await request(`${server.url}/v1/chat/completions`, {
      dispatcher: agent,
      method: "POST",
      headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "umpire-chat",
        messages: [{ role: "user", content: question }],
        stream: true,
        stream_options: { include_usage: true },
        temperature: 0,
        logit_bias: endBiases,
        max_completion_tokens: outputTokens,
      }),
    })
    let firstMs = 0
    let text = ""
    for await (const chunk of body) {
      text += String(chunk)
      if (firstMs === 0 && /"content":"[^"]/.test(text)) firstMs = performance.now()
    }
    return { firstMs, endMs: performance.now(), tokens: Number(/"completion_tokens":(\d+)/.exec(text)?.[1]) }
  }
}

const { llama, model } = await openLlama({ modelFile: defaultModelFile, threads, gpu: false })
const engine = new LocalEngine({
  modelFile: defaultModelFile,
  kind: "generation",
  memoryBytes: 512 * 1024 * 1024,
  waitingMax: 10,
  gpu: false,
  threads,
})
const server = await startServer({ env: { UMPIRE_ENGINE_THREADS: String(threads) } })
const agent = new Agent()

for (const streams of streamCounts) {
  const context = await model.createContext({ sequences: streams, contextSize: contextTokens, threads })
  const sequences = Array.from({ length: streams }, () => context.getSequence())
  const ways = {
    "node-llama-cpp directly": direct(model, sequences),
    "Umpire's engine": throughEngine(engine),
    "Umpire over HTTP": throughServer(server, agent),
  }
  const measured = await interleaved(ways, streams)
  await context.dispose()
  report(measured, streams)
}
await agent.close()
await server.stop()
await engine.close()
await llama.dispose()

async function interleaved(
  ways: Readonly<Record<string, Way>>,
  streams: number,
): Promise<Map<string, Round[]>> {
  const measured = new Map<string, Round[]>()
  for (let round = -warmRounds; round < rounds; round++)
    for (const [name, way] of Object.entries(ways)) {
      const one = await measure(way, streams)
      if (round >= 0) measured.set(name, [...(measured.get(name) ?? []), one])
    }
  return measured
}

function report(measured: ReadonlyMap<string, readonly Round[]>, streams: number): void {
  const rows = [...measured].map(([name, all]) => ({
    name,
    first: median(all.map(({ firstMs }) => firstMs)),
    speed: median(all.map(({ tokensPerSecond }) => tokensPerSecond)),
  }))
  const base = rows[0]
  console.log(
    `\n${streams} stream${streams === 1 ? "" : "s"}: prompt ${model.tokenize(promptOf(questionOf(100)), true).length} tokens, ${outputTokens} written, ${threads} threads, medians of ${rounds} interleaved rounds`,
  )
  console.table(
    Object.fromEntries(
      rows.map(({ name, first, speed }) => [
        name,
        {
          "first token ms": first.toFixed(1),
          "of direct": (first / (base?.first ?? NaN)).toFixed(3),
          "tokens/s": speed.toFixed(1),
          "of direct ": (speed / (base?.speed ?? NaN)).toFixed(3),
        },
      ]),
    ),
  )
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
