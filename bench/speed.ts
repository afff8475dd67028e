/**
 * The works that we exist for, done by the embedded scorer, by the ways that a user would take instead, and by the machine
 * at its best: one run, one table a work with ratios, and a plot of how cost grows in bench/out/speed.svg.
 *
 * node bench/speed.ts [--model=default|qwen05-q8|file.gguf] [--works=ABCDE] [--rounds=N] [--threads=N] [--no-plot]
 *   [--server=path of llama-server] [--slots=1,8] [--backend=cpu|cuda|auto] [--library=folder] [--batch=N]
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { LlamaBackend } from "../src/engine/llama/library.ts"
import { findLlamaServer, howToBuild } from "../test/llama-server.ts"
import { defaultModelFile, randomModel } from "../test/models.ts"
import { printEquality } from "./equality.ts"
import type { Chart } from "./growth-plot.ts"
import { drawCharts } from "./growth-plot.ts"
import { writeJson } from "./json-writer.ts"
import { LlamaServer } from "./llama-server.ts"
import type { WayOptions } from "./ways.ts"
import { Ways } from "./ways.ts"
import type { NamedWork, TokenWork, WorkName } from "./works.ts"
import { median, randomTokens, tokensIn, works } from "./works.ts"

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "default" },
    works: { type: "string", default: "ABCDE" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(availableParallelism()) },
    "no-plot": { type: "boolean", default: false },
    server: { type: "string", default: findLlamaServer() ?? "" },
    slots: { type: "string", default: "1,8" },
    backend: { type: "string", default: "cpu" },
    library: { type: "string" },
    batch: { type: "string" },
  },
})
const rounds = Number(values.rounds)
const options: WayOptions = {
  modelFile:
    values.model === "default"
      ? defaultModelFile
      : values.model === "qwen05-q8"
        ? randomModel("qwen05-q8")
        : values.model,
  threads: Number(values.threads),
  // An unknown name finds no package, which is told.
  backend: values.backend as LlamaBackend,
  ...(values.library === undefined ? {} : { libraryDir: values.library }),
  ...(values.batch === undefined ? {} : { batchTokensMax: Number(values.batch) }),
}

/** Milliseconds of every round, by way; the first is the scorer's own. */
type Times = Record<string, number[]>
type Measure = (ways: Ways, work: NamedWork) => Promise<Times>

const measures: Readonly<Record<WorkName, Measure>> = {
  A: async (ways, work) =>
    await inRounds(work, {
      scorer: (one) => ways.shared(one),
      "plain prompt (the limit)": (one) => ways.plain(one),
      "branch after branch": (one) => ways.inTurn(one),
      "whole prompts (4 run, scaled)": (one) => ways.naive(one),
    }),
  B: async (ways, work) =>
    await inRounds(work, {
      scorer: (one) => ways.shared(one),
      "without shared stems": (one) => ways.apart(one),
      "plain prompt (the limit)": (one) => ways.plain(one),
      "branch after branch": (one) => ways.inTurn(one),
      "whole prompts (4 run, scaled)": (one) => ways.naive(one),
    }),
  C: async (ways, work) => {
    const again: number[] = []
    const times = await inRounds(work, {
      scorer: async (one) => {
        const [first, second] = await ways.twice(one)
        again.push(second)
        return first
      },
      "plain prompt (the limit)": (one) => ways.plain(one),
      "branch after branch": (one) => ways.inTurn(one),
      "whole prompts (4 run, scaled)": (one) => ways.naive(one),
    })
    return { scorer: times["scorer"] ?? [], "scorer, same evidence again": again, ...times }
  },
  D: measureCrowd,
  E: async (ways, work) =>
    await inRounds(
      work,
      {
        scorer: (one) => ways.shared(one),
        "plain prompt (3072 tokens, scaled)": (one) => ways.plain(one),
        "branch after branch (64 run, scaled)": (one) => ways.inTurn(one),
        "whole prompts (4 run, scaled)": (one) => ways.naive(one),
      },
      1,
    ),
}

async function main(): Promise<void> {
  const ways = await Ways.open(options)
  const { parameterCount, quantization } = ways.scorer.facts
  const place = ways.scorer.model.onGpu ? "GPU" : `${options.threads} threads`
  console.log(
    `${values.model}: ${parameterCount} parameters, ${quantization}, ${place}, medians of ${rounds} rounds`,
  )
  await printEquality(ways)
  for (const [name, work] of Object.entries(works(1)) as [WorkName, NamedWork][]) {
    if (!values.works.includes(name)) continue
    // The first decodes of a context are slow: memory is touched for the first time.
    await ways.together(work.make().slice(0, 1).map(shortened))
    const times = await measures[name](ways, work)
    if (name === "A") Object.assign(times, await measureJson(work))
    if (values.server !== "" && name !== "E") Object.assign(times, await measureServer(work))
    printTimes(`${name}: ${work.title}`, tokensIn(work.make()), times)
  }
  if (values.server === "") console.log(`\n  llama-server was not measured. ${howToBuild}`)
  if (!values["no-plot"]) await plotGrowth(ways)
  await ways.close()
}

/** Rounds are interleaved: other work on the machine disturbs all ways alike. */
async function inRounds(
  work: NamedWork,
  ways: Readonly<Record<string, (one: TokenWork) => Promise<number>>>,
  count = rounds,
): Promise<Times> {
  const times: Times = {}
  for (let round = 0; round < count; round++) {
    for (const [way, run] of Object.entries(ways)) {
      for (const one of work.make()) (times[way] ??= []).push(await run(one))
    }
  }
  return times
}

async function measureCrowd(ways: Ways, work: NamedWork): Promise<Times> {
  const times = {
    scorer: [] as number[],
    "all about one evidence": [] as number[],
    "one after the other": [] as number[],
    "plain prompt (the limit)": [] as number[],
  }
  let spread = 0
  for (let round = 0; round < rounds; round++) {
    const latencies = await ways.together(work.make())
    times.scorer.push(Math.max(...latencies))
    spread = Math.max(spread, percentile(latencies, 0.99) / mean(latencies))
    const [first, ...others] = work.make()
    const same = [first, ...others].flatMap((one) => (one && first ? [{ ...one, prefix: first.prefix }] : []))
    times["all about one evidence"].push(Math.max(...(await ways.together(same))))
    times["one after the other"].push(await ways.oneAfterTheOther(work.make()))
    const whole = work.make().flatMap(({ prefix, branches }) => [prefix, ...branches])
    times["plain prompt (the limit)"].push(await ways.plain({ prefix: new Int32Array(0), branches: whole }))
  }
  console.log(`\n  D: p99 of the latencies is at most ${spread.toFixed(2)} x their mean`)
  return times
}

async function measureJson(work: NamedWork): Promise<Times> {
  const [one] = work.make()
  if (one === undefined) return {}
  const forms = Object.entries(await writeJson(options, one))
  return Object.fromEntries(forms.map(([form, { ms, written }]) => [`${form}: ${written} tokens`, [ms]]))
}

async function measureServer(work: NamedWork): Promise<Times> {
  const times: Times = {}
  for (const slots of values.slots.split(",").map(Number)) {
    const server = await LlamaServer.start(values.server, slots, options)
    try {
      await server.answer(work.make().slice(0, 1).map(shortened))
      for (let round = 0; round < Math.min(rounds, 2); round++) {
        ;(times[`llama-server, ${slots} slots`] ??= []).push(await server.answer(work.make()))
      }
    } finally {
      await server.stop()
    }
  }
  return times
}

function printTimes(title: string, tokens: number, times: Times): void {
  const own = median(times["scorer"] ?? [])
  console.log(`\n  ${title} (${tokens} tokens)`)
  for (const [way, all] of Object.entries(times)) {
    const ms = median(all)
    const speed = `${((tokens / ms) * 1000).toFixed(0)}/s`
    const ratio = way === "scorer" ? "" : `${(ms / own).toFixed(2)} x the scorer`
    console.log(`    ${way.padEnd(46)}${ms.toFixed(0).padStart(8)} ms ${speed.padStart(9)}  ${ratio}`)
  }
}

async function plotGrowth(ways: Ways): Promise<void> {
  const random = randomTokens(2)
  const request = (prefix: number, branches: number): TokenWork => ({
    prefix: random(prefix),
    branches: Array.from({ length: branches }, () => random(40)),
  })
  const byWays = async (xs: readonly number[], make: (x: number) => TokenWork): Promise<Chart["ways"]> => {
    const times: Times = {}
    for (const x of xs) {
      ;(times["scorer"] ??= []).push(await ways.shared(make(x)))
      ;(times["whole prompts"] ??= []).push(await ways.naive(make(x)))
      ;(times["branch after branch"] ??= []).push(await ways.inTurn(make(x)))
      ;(times["plain prompt"] ??= []).push(await ways.plain(make(x)))
    }
    return times
  }
  const prefixes = [64, 256, 1024, 3072]
  const branches = [1, 4, 16, 64, 256]
  const crowds = [1, 4, 16, 64]
  const crowd: Times = { scorer: [], "one after the other": [] }
  for (const size of crowds) {
    const make = () => Array.from({ length: size }, () => request(60, 1))
    crowd["scorer"]?.push(Math.max(...(await ways.together(make()))))
    crowd["one after the other"]?.push(await ways.oneAfterTheOther(make()))
  }
  const charts: Chart[] = [
    {
      title: "16 questions of 40 tokens",
      xTitle: "tokens of evidence",
      xs: prefixes,
      ways: await byWays(prefixes, (x) => request(x, 16)),
    },
    {
      title: "512 tokens of evidence",
      xTitle: "questions of 40 tokens",
      xs: branches,
      ways: await byWays(branches, (x) => request(512, x)),
    },
    { title: "60 tokens and one question each", xTitle: "requests at one time", xs: crowds, ways: crowd },
  ]
  const folder = join(import.meta.dirname, "out")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "speed.svg"), drawCharts(charts))
  console.log("\n  how cost grows: bench/out/speed.svg")
  for (const { title, xTitle, xs, ways: lines } of charts) {
    console.log(`\n  ${title}: ms by ${xTitle} (${xs.join(", ")})`)
    for (const [way, times] of Object.entries(lines)) {
      console.log(`    ${way.padEnd(22)}${times.map((ms) => ms.toFixed(0).padStart(8)).join("")}`)
    }
  }
}

const shortened = ({ prefix, branches }: TokenWork): TokenWork => ({ prefix, branches: branches.slice(0, 8) })

const mean = (all: readonly number[]): number => all.reduce((sum, value) => sum + value, 0) / all.length

function percentile(all: readonly number[], share: number): number {
  return all.toSorted((a, b) => a - b)[Math.ceil(all.length * share) - 1] ?? Number.NaN
}

await main()
