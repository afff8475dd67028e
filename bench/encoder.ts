/**
 * The works of docs/speed.md as texts, through the encoder, through the language model and, where one is built, through a
 * `llama-server` with that model, each in a process of its own: `npm run bench -- encoder`, or
 * `node bench/encoder.ts [--rounds N] [--questions N] [--gpu] [--server PATH] [--slots N] [WORK...]`.
 */
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { drawTable } from "../src/cli/table.ts"
import { type Branch, predicate } from "../src/engine/branch.ts"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { admitAny, type ScoreEngine, type ScoreWork } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { openRemoteWorker } from "../src/engine/remote/remote-worker.ts"
import { findLlamaServer, howToBuild, startLlamaServer } from "../test/llama-server.ts"
import { decisionModelFile, defaultModelFile } from "../test/models.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "3" },
    questions: { type: "string", default: "4096" },
    gpu: { type: "boolean", default: false },
    server: { type: "string", default: findLlamaServer() ?? "" },
    slots: { type: "string", default: "1" },
  },
})
const never = new AbortController().signal
const lexicon =
  "the parcel came late and our driver left it in rain while a customer waited for an answer about money".split(
    " ",
  )

let seed = 1
/** Another text each time, so that nothing is found in a cache unless the work is about that. */
const words = (count: number): string =>
  Array.from(
    { length: count },
    () => lexicon[(seed = (seed * 48_271) % 2_147_483_647) % lexicon.length],
  ).join(" ")
const questions = (count: number): Branch[] =>
  Array.from({ length: count }, (_, index) => predicate(`Number ${index}: is it said that ${words(28)}?`))
const choice = (count: number): Branch[] =>
  Array.from({ length: count }, (_, index) => ({
    kind: "choice",
    question: "Which of the following topics does this message speak about most of all?",
    value: `${lexicon[index % lexicon.length]} request of type ${index}`,
    description: "",
  }))
let organizations = 0
const work = (evidenceWords: number, branches: Branch[]): ScoreWork => ({
  organizationId: `bench${organizations++}`,
  evidence: words(evidenceWords),
  branches,
})

interface Work {
  readonly title: string
  readonly make: () => ScoreWork[]
  readonly isInTurn?: boolean
}
const works: readonly Work[] = [
  { title: "A: 500 words, 64 questions", make: () => [work(500, questions(64))] },
  { title: "B: 190 words, a choice of 77", make: () => [work(190, choice(77))] },
  {
    title: "C: 1,500 words, 34 branches",
    make: () => [work(1500, [...questions(4), ...Array.from({ length: 6 }, () => choice(5)).flat()])],
  },
  { title: "C again", make: () => again },
  {
    title: "D: 200 requests of 58 words",
    make: () => Array.from({ length: 200 }, () => work(58, questions(1))),
  },
  {
    title: "D one after the other",
    make: () => Array.from({ length: 200 }, () => work(58, questions(1))),
    isInTurn: true,
  },
  {
    title: `E: 500 words, ${values.questions} questions`,
    make: () => [work(500, questions(Number(values.questions)))],
  },
]
const again = [work(1500, choice(34))]
const chosen = works.filter(
  ({ title }) => positionals.length === 0 || positionals.some((name) => title.startsWith(name)),
)

const startedMs = performance.now()
const encoder: EncoderEngine = await startEncoderEngine({
  modelFile: decisionModelFile,
  gpu: values.gpu,
})
const encoderMs = performance.now() - startedMs
const llama = new LocalEngine({ modelFile: defaultModelFile, kind: "generation", gpu: false })
await llama.load()
const llamaMs = performance.now() - startedMs - encoderMs
const server = values.server === "" ? null : await startServer(values.server)
const engines: [string, ScoreEngine][] = [
  ["encoder", encoder],
  ["language model", llama],
]
if (server) engines.push(["llama-server", server.scorer])
if (!server) console.log(`llama-server is not measured. ${howToBuild}`)
try {
  for (const [, engine] of engines) await run(engine, [work(50, questions(2))], false)
  console.log(`start ${encoderMs.toFixed(0)} ms and ${llamaMs.toFixed(0)} ms, memory at rest ${resident()}`)
  for (const [, engine] of engines) await run(engine, again, false)
  const lines: string[][] = []
  for (const one of chosen) {
    const line = await measure(one)
    console.error(line.join("  "))
    lines.push(line)
  }
  const others = engines.slice(1).map(([name]) => `times as fast as ${name}`)
  console.log(drawTable(["work", ...engines.map(([name]) => `${name} ms`), ...others], lines))
  console.log(`memory after it ${resident()}`)
} finally {
  await encoder.close()
  await llama.close()
  await server?.stop()
}

/** Asked as its dialect is, which counts the tokens of every text first: what a gateway in front of it does. */
async function startServer(program: string): Promise<{ scorer: ScoreEngine; stop: () => Promise<void> }> {
  const threads = String(availableParallelism())
  const context = String(4096 * Number(values.slots))
  const flags = ["-m", defaultModelFile, "-t", threads, "-tb", threads, "-np", values.slots, "-c", context]
  const running = await startLlamaServer(program, [...flags, "-fa", "on", "--kv-unified", "--no-webui"])
  const model = { name: "chat", contextTokensMax: 4096, quantization: "Q8_0", file: null }
  const remote = openRemoteWorker({ url: running.url }, "llama-server", {
    model,
    times: { firstByteMs: 3_600_000 },
  })
  const stop = async (): Promise<void> => {
    await remote.close()
    await running.kill()
  }
  return { scorer: remote.scorer, stop }
}

async function measure({ title, make, isInTurn = false }: Work): Promise<string[]> {
  const times = engines.map((): number[] => [])
  for (let round = 0; round < Number(values.rounds); round++) {
    const requests = make()
    for (const [index, [, engine]] of engines.entries())
      times[index]?.push(await run(engine, requests, isInTurn))
  }
  const medians = times.map((all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0)
  const [own = 0, ...others] = medians
  return [title, ...medians.map((ms) => ms.toFixed(0)), ...others.map((other) => (other / own).toFixed(2))]
}

async function run(engine: ScoreEngine, requests: readonly ScoreWork[], isInTurn: boolean): Promise<number> {
  const start = performance.now()
  const ask = async (one: ScoreWork): Promise<void> => {
    await engine.score(one, { signal: never, admit: admitAny })
  }
  if (isInTurn) for (const one of requests) await ask(one)
  else await Promise.all(requests.map(ask))
  return performance.now() - start
}

function resident(): string {
  return `${residentMib(encoder)} and ${residentMib(llama)} MiB`
}

function residentMib({ pid }: { readonly pid: number | undefined }): number {
  const [, kib = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return Math.round(Number(kib) / 1024)
}
