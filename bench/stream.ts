/**
 * A stream of small decisions, 94 tokens with their question, through the encoders as a server runs them: decisions a second, latency,
 * and processor time of the engine's process. `npm run bench -- stream`, or
 * `node bench/stream.ts [--decisions N] [--concurrency N] [--threads N] [--compare] [MODEL...]`; `--compare` asks each alone as well, and
 * counts the answers that change; its texts have 20 to 120 words.
 */
import { readFileSync } from "node:fs"
import { availableParallelism, loadavg } from "node:os"
import { parseArgs } from "node:util"
import { drawTable } from "../src/cli/table.ts"
import { predicate } from "../src/engine/branch.ts"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { admitAny, type ScoreWork } from "../src/engine/engine.ts"
import { baseDecisionModelFile, decisionModelFile } from "../test/models.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    decisions: { type: "string", default: "300" },
    concurrency: { type: "string", default: "16" },
    threads: { type: "string", default: String(availableParallelism()) },
    compare: { type: "boolean", default: false },
  },
})
const [decisions, concurrency, threads] = [values.decisions, values.concurrency, values.threads].map(Number)
const models = positionals.length > 0 ? positionals : [decisionModelFile, baseDecisionModelFile]
const never = new AbortController().signal
/** Jiffies of Linux. */
const ticksPerSecond = 100
const lexicon =
  "the parcel came late and our driver left it in rain while a customer waited for an answer about money".split(
    " ",
  )

const textLength = (index: number): number => (values.compare ? 20 + ((index * 37) % 101) : 58)

/** The same texts for each model. */
function makeWorks(count: number): ScoreWork[] {
  let seed = 1
  const words = (length: number): string =>
    Array.from({ length }, () => lexicon[(seed = (seed * 48_271) % 2_147_483_647) % lexicon.length]).join(" ")
  return Array.from({ length: count }, (_, index) => ({
    organizationId: `bench${index % 4}`,
    evidence: words(textLength(index)),
    branches: [predicate(`Is it said that ${words(26)}?`)],
  }))
}

async function ask(engine: EncoderEngine, work: ScoreWork): Promise<{ margin: number; tokens: number }> {
  const { margins, inputTokens } = await engine.score(work, { signal: never, admit: admitAny })
  return { margin: margins[0] ?? Number.NaN, tokens: inputTokens }
}

interface Stream {
  readonly ms: number
  readonly latencies: readonly number[]
  readonly margins: readonly number[]
  readonly tokens: number
}

/** So many at a time. */
async function stream(engine: EncoderEngine, works: readonly ScoreWork[], atOnce: number): Promise<Stream> {
  const [latencies, margins]: [number[], number[]] = [[], []]
  let [next, tokens] = [0, 0]
  const start = performance.now()
  const caller = async (): Promise<void> => {
    for (let at = next++; at < works.length; at = next++) {
      const work = works[at]
      if (!work) return
      const asked = performance.now()
      const found = await ask(engine, work)
      latencies.push(performance.now() - asked)
      margins[at] = found.margin
      tokens += found.tokens
    }
  }
  await Promise.all(Array.from({ length: atOnce }, caller))
  return { ms: performance.now() - start, latencies, margins, tokens: tokens / works.length }
}

function processorMs({ pid }: EncoderEngine): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1000
}

const residentMib = ({ pid }: EncoderEngine): number => {
  const [, kib = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return Math.round(Number(kib) / 1024)
}

const quantile = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(share * (numbers.length - 1))] ?? Number.NaN

const probability = (margin: number): number => 1 / (1 + Math.exp(-margin))

function compared(alone: Stream, amid: Stream): string[] {
  const pairs = alone.margins.map((margin, at) => [margin, amid.margins[at] ?? Number.NaN] as const)
  const changed = pairs.filter(([one, other]) => one > 0 !== other > 0).length
  const difference = Math.max(...pairs.map(([one, other]) => Math.abs(probability(one) - probability(other))))
  return [`${changed} of ${pairs.length}`, difference.toExponential(1)]
}

console.log(
  `${threads} threads, ${concurrency} requests at a time; the load before it is ${loadavg()[0]?.toFixed(2)}`,
)
const lines: string[][] = []
for (const modelFile of models) {
  const engine = await startEncoderEngine({ modelFile, threads: threads ?? 1 })
  try {
    await stream(engine, makeWorks(20), concurrency ?? 1)
    const works = makeWorks(decisions ?? 1)
    const before = processorMs(engine)
    const amid = await stream(engine, works, concurrency ?? 1)
    const processor = (processorMs(engine) - before) / works.length
    const shown = [
      ((works.length / amid.ms) * 1000).toFixed(1),
      processor.toFixed(1),
      quantile(amid.latencies, 0.5).toFixed(0),
      quantile(amid.latencies, 0.99).toFixed(0),
      amid.tokens.toFixed(1),
      String(residentMib(engine)),
    ]
    const name = /[^/]+$/.exec(modelFile)?.[0] ?? modelFile
    lines.push([name, ...shown, ...(values.compare ? compared(await stream(engine, works, 1), amid) : [])])
  } finally {
    await engine.close()
  }
}
const columns = ["model", "a second", "processor ms each", "p50 ms", "p99 ms", "tokens", "MiB"]
console.log(drawTable([...columns, ...(values.compare ? ["answers changed", "most"] : [])], lines))
