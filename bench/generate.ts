/** Local generation through Umpire's engine process beside node-llama-cpp used directly: first token and tokens a second. */
import { availableParallelism } from "node:os"
import { LlamaLogLevel, type Token, getLlama } from "node-llama-cpp"
import type { GenerateWork } from "../src/engine/generate/generate.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { defaultModelFile } from "../test/models.ts"

const rounds = Number(process.env["UMPIRE_BENCH_ROUNDS"] ?? 7)
const outputTokens = 128
const threads = Number(process.env["UMPIRE_ENGINE_THREADS"] ?? availableParallelism())
const question = "Write a long story about a river, a bridge and a town. ".repeat(12)
const prompt = `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`
/** Any token but the end is as likely to be written: both sides write the same count. */
const noEnd = { "2": -100 }

interface Measured {
  readonly firstMs: number
  readonly tokensPerSecond: number
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN

async function measure(stream: AsyncIterable<unknown>): Promise<Measured> {
  const startedMs = performance.now()
  let firstMs = 0
  let count = 0
  for await (const _ of stream) {
    if (count === 0) firstMs = performance.now() - startedMs
    if (++count >= outputTokens) break
  }
  const seconds = (performance.now() - startedMs - firstMs) / 1000
  return { firstMs, tokensPerSecond: (count - 1) / seconds }
}

const llama = await getLlama({
  gpu: false,
  build: "never",
  skipDownload: true,
  progressLogs: false,
  logLevel: LlamaLogLevel.error,
  maxThreads: threads,
})
const model = await llama.loadModel({ modelPath: defaultModelFile })
const context = await model.createContext({ sequences: 1, contextSize: 4096, threads })
const sequence = context.getSequence()
const engine = new LocalEngine({
  modelFile: defaultModelFile,
  kind: "generation",
  memoryBytes: 512 * 1024 * 1024,
  waitingMax: 10,
  gpu: false,
  threads,
})
const never = new AbortController().signal

async function* direct(): AsyncGenerator<string> {
  await sequence.clearHistory()
  const tokens = model.tokenize(prompt, true)
  const written: Token[] = []
  const { TokenBias } = await import("node-llama-cpp")
  const bias = new TokenBias(model.tokenizer).set(2 as Token, { logit: -100 })
  for await (const token of sequence.evaluate(tokens, {
    temperature: 0,
    topK: 0,
    topP: 1,
    minP: 0,
    tokenBias: bias,
  })) {
    written.push(token)
    yield model.detokenize([token])
  }
}

async function* throughEngine(round: number): AsyncGenerator {
  const work: GenerateWork = {
    // Another organization each time: nothing is found cached.
    organizationId: `org_${round}`,
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
      logitBias: noEnd,
    },
    stop: [],
    topLogprobs: null,
    outputTokensMax: outputTokens,
    truncate: false,
    effort: null,
  }
  const prepared = await engine.prepare(work, never)
  for await (const event of prepared.run(outputTokens, never)) if (event.kind === "text") yield event
}

await measure(direct())
await measure(throughEngine(-1))
const directly: Measured[] = []
const engined: Measured[] = []
for (let round = 0; round < rounds; round++) {
  directly.push(await measure(direct()))
  engined.push(await measure(throughEngine(round)))
}
const first = [
  median(directly.map(({ firstMs }) => firstMs)),
  median(engined.map(({ firstMs }) => firstMs)),
] as const
const speed = [
  median(directly.map((one) => one.tokensPerSecond)),
  median(engined.map((one) => one.tokensPerSecond)),
] as const
console.log(
  `prompt ${model.tokenize(prompt, true).length} tokens, ${outputTokens} written, ${threads} threads, medians of ${rounds} interleaved rounds`,
)
console.table({
  "node-llama-cpp directly": { "first token ms": first[0].toFixed(1), "tokens/s": speed[0].toFixed(1) },
  "Umpire's engine": { "first token ms": first[1].toFixed(1), "tokens/s": speed[1].toFixed(1) },
  ratio: { "first token ms": (first[1] / first[0]).toFixed(3), "tokens/s": (speed[1] / speed[0]).toFixed(3) },
})
await engine.close()
await llama.dispose()
