/**
 * Counts how often a choice answers differently because its options stand in another order.
 *
 *   node bench/order-invariance.ts --sets-folder FOLDER [--model FILE] [--sets trec_test,snips_validate]
 *     [--rows 50] [--shuffles 8] [--concurrency 1] [--control] [--letters]
 *
 * Every row is asked in its own order and then in shuffled ones, through the engine that the product serves with. With a
 * concurrency above one the batch mates of a request differ from run to run as well; `--control` asks in the same order
 * again and so shows what they alone do. `--letters` asks the same model in the common way instead, with all options in
 * one prompt under letters. Prints one JSON object.
 */
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { admitAny, type ScoreEngine } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { expandQuestion } from "../src/gateway/classification/classification.ts"
import { readChoice } from "../src/scoring/answers.ts"
import type { EvaluationRow } from "./evaluation-rows.ts"
import { isPredicate, listSets, readSet } from "./evaluation-rows.ts"
import { LabelReader } from "./label-reader.ts"

interface Reading {
  readonly winner: string
  /** By option. */
  readonly probabilities: ReadonlyMap<string, number>
}

interface Comparison {
  readonly flipped: boolean
  readonly difference: number
  /** The lead of the winner in the original order: a flip with a small lead is rounding. */
  readonly lead: number
}

const { values } = parseArgs({
  options: {
    "sets-folder": { type: "string" },
    model: {
      type: "string",
      default: fileURLToPath(new URL("../model/smollm2-135m-instruct.gguf", import.meta.url)),
    },
    sets: { type: "string" },
    rows: { type: "string", default: "50" },
    shuffles: { type: "string", default: "8" },
    concurrency: { type: "string", default: "1" },
    control: { type: "boolean", default: false },
    letters: { type: "boolean", default: false },
    threads: { type: "string" },
  },
})
const folder = values["sets-folder"]
if (folder === undefined)
  throw new Error("Cannot measure: no --sets-folder given; name a folder of JSON Lines")

const threads = values.threads === undefined ? {} : { threads: Number(values.threads) }
const engine = new LocalEngine({ modelFile: values.model, kind: "generation", ...threads })
const letters = values.letters
  ? await LabelReader.open(values.model, threads.threads ?? availableParallelism())
  : undefined
try {
  const startedMs = performance.now()
  const report: Record<string, ReturnType<typeof summarize>> = {}
  const all: Comparison[] = []
  for (const set of values.sets?.split(",") ?? listSets(folder)) {
    const rows = readSet(folder, set, Number(values.rows)).filter((row) => !isPredicate(row))
    if (rows.length === 0) continue
    const found = await overRows(rows, Number(values.concurrency), (row, place) =>
      compareOrders(engine, row, Number(values.shuffles), place),
    )
    all.push(...found.flat())
    report[set] = summarize(found.flat())
  }
  const seconds = Math.round((performance.now() - startedMs) / 100) / 10
  const { name } = await engine.facts()
  console.log(JSON.stringify({ name, ...values, report, total: summarize(all), seconds }, null, 2))
} finally {
  await letters?.close()
  await engine.close()
}

/** Runs the work over all rows, a few at a time; results in the order of the rows. */
async function overRows<Result>(
  rows: readonly EvaluationRow[],
  concurrency: number,
  work: (row: EvaluationRow, place: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const waiting = rows.entries()
  const worker = async (): Promise<void> => {
    for (const [place, row] of waiting) results[place] = await work(row, place)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return results
}

async function compareOrders(
  on: ScoreEngine,
  row: EvaluationRow,
  shuffles: number,
  seed: number,
): Promise<Comparison[]> {
  const random = randomFrom(seed)
  const original = await ask(on, row, row.options)
  const [first = 0, second = 0] = [...original.probabilities.values()].toSorted((a, b) => b - a)
  const comparisons: Comparison[] = []
  for (let turn = 0; turn < shuffles; turn++) {
    const other = await ask(on, row, values.control ? row.options : shuffled(row.options, random))
    const apart = row.options.map((option) =>
      Math.abs((original.probabilities.get(option) ?? NaN) - (other.probabilities.get(option) ?? NaN)),
    )
    comparisons.push({
      flipped: other.winner !== original.winner,
      difference: Math.max(...apart),
      lead: first - second,
    })
  }
  return comparisons
}

async function ask(on: ScoreEngine, row: EvaluationRow, options: readonly string[]): Promise<Reading> {
  if (letters !== undefined) return reading(options, await letters.read(row, options))
  const branches = expandQuestion({
    type: "choice",
    name: null,
    path: "questions[0]",
    instructions: row.question,
    options: options.map((value) => ({ value, description: "" })),
  })
  const signal = new AbortController().signal
  const work = { organizationId: "bench", evidence: row.text.trim(), branches }
  const { margins } = await on.score(work, { signal, admit: admitAny })
  return reading(options, readChoice(margins).probabilities)
}

function reading(options: readonly string[], probabilities: readonly number[]): Reading {
  const winner = probabilities.indexOf(Math.max(...probabilities))
  return {
    winner: options[winner] ?? "",
    probabilities: new Map(options.map((option, place) => [option, probabilities[place] ?? NaN])),
  }
}

function summarize(comparisons: readonly Comparison[]) {
  const flips = comparisons.filter(({ flipped }) => flipped)
  const differences = comparisons.map(({ difference }) => difference)
  return {
    shuffles: comparisons.length,
    flips: flips.length,
    identical: differences.filter((difference) => difference === 0).length,
    differenceMax: Math.max(0, ...differences),
    differenceMean: differences.reduce((sum, difference) => sum + difference, 0) / comparisons.length,
    /** A flip is excused by rounding only where this is inside the band of the differences. */
    flippedLeadMax: Math.max(0, ...flips.map(({ lead }) => lead)),
  }
}

function shuffled(options: readonly string[], random: () => number): string[] {
  const result = [...options]
  for (let last = result.length - 1; last > 0; last--) {
    const pick = Math.floor(random() * (last + 1))
    // Both places are inside the list.
    ;[result[last], result[pick]] = [result[pick] as string, result[last] as string]
  }
  return result
}

/** A small repeatable generator (mulberry32), so that a run can be repeated. */
function randomFrom(seed: number): () => number {
  let state = seed + 0x9e3779b9
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
