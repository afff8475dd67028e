/** `npm run bench:quality`: the evaluation sets through the running server, both endpoints, beside the model card. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type EvalRow, readEvalSet } from "../src/cli/eval-rows.ts"
import { runRows } from "../src/cli/eval-run.ts"
import { drawTable } from "../src/cli/table.ts"
import { type Evaluation, evaluate } from "../src/scoring/evaluation.ts"
import { startServer } from "../test/server.ts"
import { listSets } from "./evaluation-rows.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, "..", "shared", "eval")
/** The first rows of a set, as in the card; sets of many options get fewer. */
const rowsStandard = 150
const optionsMany = 20
const rowsOfMany = 20
/** Evidence longer than this is cut, as it was for the card: it must fit the model's context. */
const charactersMax = 10_000

/** What the card calls each set. */
const titles: Readonly<Record<string, string>> = {
  banking77_test: "Banking77",
  boolq_dev: "BoolQ",
  clinc150_test: "CLINC150 with out-of-scope (kind seen)",
  feverous_dev: "FEVEROUS",
  goemotions_ekman: "GoEmotions, Ekman classes (kind seen)",
  imdb_test: "IMDB",
  mnli_matched_1k: "MultiNLI matched (kind seen)",
  prompt_injections: "deepset prompt injections",
  pubmedqa_labeled: "PubMedQA",
  rte: "RTE",
  sms_spam: "SMS spam",
  snips_validate: "SNIPS",
  snli_test: "SNLI test (kind seen)",
  sst2_dev: "SST-2 dev (kind seen)",
  strategyqa_facts: "StrategyQA with facts",
  trec_test: "TREC questions",
  xstest: "XSTest",
}

if (!existsSync(folder)) {
  console.log("The evaluation sets are not on this machine: expected them in ../shared/eval")
  process.exit(0)
}

const card = readCard()
const named = process.argv.slice(2).filter((argument) => !argument.startsWith("-"))
const server = await startServer({
  env: { UMPIRE_LIMITS_BURST: "1000000", UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000" },
})
try {
  const lines: string[][] = []
  for (const set of named.length > 0 ? named : listSets(folder)) {
    const line = await measure(set)
    // The whole takes minutes; whoever watches sees each set as it is done.
    console.error(line.join("  "))
    lines.push(line)
  }
  console.log(
    drawTable(
      ["set", "rows", "majority", "decisions", "systemone", "ECE", "macro-F1", "card", "points off"],
      lines,
    ),
  )
} finally {
  await server.stop()
}

async function measure(set: string): Promise<string[]> {
  const known = card.get(titles[set] ?? "")
  const { rows: all } = await readEvalSet(join(folder, `${set}.jsonl`), set, Infinity)
  const rowsMax = (all[0]?.classes.length ?? 0) > optionsMany ? rowsOfMany : rowsStandard
  const rows = all.slice(0, rowsMax).map(fitted)
  const decisions = await through("decisions", rows)
  const systemOne = await through("systemone", rows)
  const off = known === undefined ? "" : (100 * (decisions.accuracy - known)).toFixed(1)
  return [
    set,
    String(rows.length),
    decisions.majority.toFixed(3),
    decisions.accuracy.toFixed(3),
    systemOne.accuracy.toFixed(3),
    decisions.calibrationError.toFixed(3),
    decisions.macroF1.toFixed(3),
    known?.toFixed(3) ?? "not in it",
    off,
  ]
}

async function through(endpoint: "decisions" | "systemone", rows: readonly EvalRow[]): Promise<Evaluation> {
  const target = { url: server.url, key: server.key, model: "umpire-nano", endpoint, concurrency: 2 }
  return evaluate((await runRows(target, rows, () => undefined)).judged)
}

function fitted(row: EvalRow): EvalRow {
  return { ...row, text: row.text.trim().slice(0, charactersMax) }
}

/** Accuracy on the first rows, by title: the last column of the card's table of these samples. */
function readCard(): Map<string, number> {
  const lines = readFileSync(join(root, "model", "MODEL_CARD.md"), "utf8").matchAll(
    /^\| ([^|]+?) \| \d+ \| [\d.]+ \| [\d.]+ \| [\d.]+ \| [^|]+ \| ([\d.]+) \|$/gm,
  )
  return new Map([...lines].map(([, title = "", accuracy]) => [title, Number(accuracy)]))
}
