/**
 * Accuracy and calibration of models on labelled sets, side by side: `npm run bench:quality -- [options] [FOLDER...]`.
 *
 *   --model FILE       an .onnx or .gguf file; repeat it to compare (default: those that are shipped)
 *   --rows N           the first rows of each set (default 150); sets of many options get an eighth of them
 *   --calibrate FILE   write the temperature and bias of each kind of question that fit these sets best
 *
 * Of several models, it also says how far the answers of each are from those of the first, as between a file and the same
 * before quantisation.
 *
 * A folder holds sets as JSON Lines of {text, question, options, gold, scale?}; without one, ../shared/eval is measured.
 */
import { existsSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import { type EvalRow, readEvalSet } from "../src/cli/eval-rows.ts"
import { drawTable } from "../src/cli/table.ts"
import { admitAny, type ScoreEngine } from "../src/engine/engine.ts"
import { decodeDecisions } from "../src/gateway/classification/wire.ts"
import { openModelFile } from "../src/main/engines.ts"
import { readChoice, readPredicate } from "../src/scoring/answers.ts"
import { type LabelledMargins, fitCalibration } from "../src/scoring/fit-calibration.ts"
import { type Judged, evaluate } from "../src/scoring/evaluation.ts"
import { listSets } from "./evaluation-rows.ts"

const root = join(import.meta.dirname, "..")
const optionsMany = 20
/** Evidence longer than this is cut: it must fit the smallest context. */
const charactersMax = 6_000
const concurrency = 4

type Kind = "predicate" | "choice" | "score"
interface Scored {
  readonly row: EvalRow
  readonly margins: Float64Array
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    model: { type: "string", multiple: true },
    rows: { type: "string", default: "150" },
    calibrate: { type: "string" },
  },
})
const folders = positionals.length > 0 ? positionals : [join(root, "..", "shared", "eval")]
if (!folders.every(existsSync)) {
  console.log("The labelled sets are not on this machine: name a folder of them")
  process.exit(0)
}
const files =
  values.model ?? ["umpire-decide.onnx", "smollm2-135m-instruct.gguf"].map((n) => join(root, "model", n))

const lines = new Map<string, string[]>()
const labelled: Record<Kind, LabelledMargins[]> = { predicate: [], choice: [], score: [] }
const answers = new Map<string, number[][]>()
for (const file of files) await measureModel(file)
const columns = files.flatMap((file) => [basename(file), "ECE"])
console.log(drawTable(["set", "rows", "majority", ...columns], [...lines.values()]))
for (const file of files.slice(1)) printDifference(file)
if (values.calibrate !== undefined) writeCalibration(values.calibrate)

async function measureModel(file: string): Promise<void> {
  const engine = await openModelFile(file)
  try {
    for (const folder of folders)
      for (const set of listSets(folder)) await measureSet(engine, file, { folder, set })
  } finally {
    await engine.close()
  }
}

async function measureSet(
  engine: ScoreEngine,
  file: string,
  { folder, set }: { folder: string; set: string },
): Promise<void> {
  const { rows: all } = await readEvalSet(join(folder, `${set}.jsonl`), set, Infinity)
  const isMany = (all[0]?.classes.length ?? 0) > optionsMany
  const rows = all.slice(0, isMany ? Math.ceil(Number(values.rows) / 8) : Number(values.rows))
  const scored = await score(engine, rows)
  for (const one of scored) labelled[one.row.question.type].push(toLabelled(one))
  const judged = scored.map(judge)
  answers.set(file, [...(answers.get(file) ?? []), ...judged.map(({ probabilities }) => [...probabilities])])
  const { count, majority, accuracy, calibrationError } = evaluate(judged)
  const line = lines.get(set) ?? [set, String(count), majority.toFixed(3)]
  lines.set(set, [...line, accuracy.toFixed(3), calibrationError.toFixed(3)])
  // The whole takes minutes; each set is printed as it is done.
  console.error(basename(file), set, count, accuracy.toFixed(3), calibrationError.toFixed(3))
}

async function score(engine: ScoreEngine, rows: readonly EvalRow[]): Promise<Scored[]> {
  const scored: Scored[] = []
  const { signal } = new AbortController()
  let next = 0
  const work = async (): Promise<void> => {
    for (let index = next++; index < rows.length; index = next++) {
      const row = rows[index]
      if (!row) return
      const input = row.text.trim().slice(0, charactersMax)
      const body = JSON.stringify({ model: "bench", input, questions: [row.question] })
      const { evidence, branches } = decodeDecisions(Buffer.from(body))
      const asked = { organizationId: "bench", evidence, branches }
      const { margins } = await engine.score(asked, { signal, admit: admitAny })
      scored[index] = { row, margins }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return scored
}

function judge({ row: { classes, gold, question }, margins }: Scored): Judged {
  if (question.type !== "predicate")
    return { classes, gold, probabilities: readChoice(margins).probabilities }
  const yes = readPredicate(margins[0] ?? Number.NaN)
  return { classes, gold, probabilities: [yes, 1 - yes] }
}

function likeliest(row: readonly number[] = []): number {
  return row.indexOf(Math.max(...row))
}

function printDifference(file: string): void {
  const [first = "", second = []] = [files[0], answers.get(file)]
  const rows = answers.get(first) ?? []
  const apart = rows.map((row, index) =>
    Math.max(...row.map((p, at) => Math.abs(p - (second[index]?.[at] ?? Number.NaN)))),
  )
  const flips = rows.filter((row, index) => likeliest(row) !== likeliest(second[index])).length
  const far = apart.filter((difference) => difference > 0.03).length
  console.log(
    `${basename(file)} against ${basename(first)}: ${rows.length} rows, max |dp| ${Math.max(...apart).toFixed(4)}, ` +
      `${far} rows over 0.03, ${flips} answers flipped (${((100 * flips) / rows.length).toFixed(2)} %)`,
  )
}

function toLabelled({ row, margins }: Scored): LabelledMargins {
  if (row.question.type === "predicate")
    return { kind: "predicate", margins: [...margins], right: row.gold === "yes" ? 0 : null }
  return { kind: "options", margins: [...margins], right: row.classes.indexOf(row.gold) }
}

function writeCalibration(file: string): void {
  const fitted = Object.fromEntries(
    Object.entries(labelled).map(([kind, rows]) => [kind, fitCalibration(rows)]),
  )
  writeFileSync(file, `${JSON.stringify(fitted, null, 2)}\n`)
  console.log(fitted)
}
