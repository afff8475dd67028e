/**
 * How good the ready-made question sets, moderation and reranking are: `node bench/safety.ts [FOLDER [ROWS [PART]]]`. FOLDER has
 * public labelled sets (../shared/eval where it is not named); PART is sets, public, moderation or rerank. Only `sets` needs no folder.
 *
 * Sets: on the texts in safety-texts, of which every second one is held out: wordings and thresholds are chosen on the others. The
 * texts without a plus of the other sets are beside those of its own, for in life most texts are about something else. `found` and
 * `found wrongly` are those of the set as it stands; `at 1 %` and `at 5 %` what it would find with a threshold at which so many of
 * the other texts are found wrongly; `bias` is what to add to the set's own for 5 % on the texts that are not held out.
 *
 * Moderation: the share of harmful requests that is flagged, and of harmless texts of several kinds. Reranking: how often the
 * passage that belongs to a question is first, and the mean reciprocal rank, among ten passages of the set.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { drawTable } from "../src/cli/table.ts"
import { type ReadyMadeSet, readyMadeSets } from "../src/contract/guardrails/guardrails.ts"
import { moderationCategories } from "../src/contract/openai/moderations.ts"
import { type Branch, relevanceBranch } from "../src/engine/branch.ts"
import { admitAny, type ScoreEngine } from "../src/engine/engine.ts"
import { recognize } from "../src/gateway/guardrails/recognizers.ts"
import { moderationQuestions } from "../src/gateway/openai/moderate.ts"
import { openModelFile } from "../src/main/engines.ts"
import { readPredicate } from "../src/scoring/answers.ts"
import { type EvaluationRow, readSet } from "./evaluation-rows.ts"

const root = join(import.meta.dirname, "..")
const folder = process.argv[2] ?? join(root, "..", "shared", "eval")
/** Evidence longer than this is cut: it must fit the smallest context. */
const charactersMax = 3_000
/** Of each set. */
const rowsMax = Number(process.argv[3] ?? 400)
const concurrency = 4
const passages = 10
const queries = Math.ceil(rowsMax / 4)

const part = process.argv[4]
const isAsked = (name: string): boolean => part === undefined || part === name
const hasFolder = existsSync(folder)
if (!hasFolder) console.log("The public sets are not on this machine: name a folder of them")
const read = (set: string): EvaluationRow[] => readSet(folder, set, rowsMax)
const moderationBranches = moderationCategories.map((category) =>
  predicate(moderationQuestions[category].question),
)
const { signal } = new AbortController()
const engine = await openModelFile(join(root, "model", "umpire-decide.onnx"))
try {
  if (isAsked("sets"))
    console.log(
      drawTable(
        ["set", "held out", "found", "found wrongly", "at 1 %", "at 5 %", "bias"],
        await setLines(engine),
      ),
    )
  if (hasFolder && isAsked("public"))
    console.log(
      drawTable(["set", "texts", "rows", "right", "found", "found wrongly"], await publicLines(engine)),
    )
  if (isAsked("moderation")) {
    console.log(drawTable(["texts", "rows", "flagged", "most often"], await moderationLines(engine)))
    console.log(
      drawTable(["category", "threshold", "for one harmless text in 100"], await thresholdLines(engine)),
    )
  }
  if (hasFolder && isAsked("rerank"))
    console.log(drawTable(["questions", "rows", "first", "mean reciprocal rank"], await rerankLines(engine)))
} finally {
  await engine.close()
}

interface Text {
  readonly text: string
  readonly isYes: boolean
  readonly isHeldOut: boolean
}

/** A line begins with a plus where the set should find it, and else with a minus. */
function readTexts(set: string): Text[] {
  const lines = readFileSync(join(import.meta.dirname, "safety-texts", `${set}.txt`), "utf8").split("\n")
  const ofSign = (sign: string): Text[] =>
    lines
      .filter((line) => line.startsWith(`${sign} `))
      .map((line, at) => ({ text: line.slice(2), isYes: sign === "+", isHeldOut: at % 2 === 1 }))
  return [...ofSign("+"), ...ofSign("-")]
}

/** Of other sets too, but for one whose subject is that of none of them. */
function textsFor(set: string): Text[] {
  const others = readyMadeSets.filter(({ name }) => name !== set).flatMap(({ name }) => readTexts(name))
  return [...readTexts(set), ...(set === "off-topic" ? [] : others.filter(({ isYes }) => !isYes))]
}

interface Scored extends Text {
  /** The highest margin of a question, calibrated: the set finds it from 0 on. What is recognised is found whatever the model says. */
  readonly margin: number
}

async function scoreTexts(scorer: ScoreEngine, set: ReadyMadeSet, texts: readonly Text[]): Promise<Scored[]> {
  const branches = set.questions.map(({ instructions }) => predicate(instructions))
  return await inTurn(texts, async (one) => {
    if (recognize(one.text, set.recognizers).length > 0) return { ...one, margin: Infinity }
    const margins = Array.from(await marginsOf(scorer, one.text, branches), (margin, at) => {
      const { temperature, bias } = set.questions[at]?.calibration ?? { temperature: 1, bias: 0 }
      return margin / temperature + bias
    })
    return { ...one, margin: Math.max(...margins) }
  })
}

async function setLines(scorer: ScoreEngine): Promise<string[][]> {
  const lines: string[][] = []
  for (const set of readyMadeSets) {
    const scored = await scoreTexts(scorer, set, textsFor(set.name))
    const heldOut = scored.filter(({ isHeldOut }) => isHeldOut)
    const others = scored.filter(({ isHeldOut }) => !isHeldOut)
    lines.push([
      set.name,
      `${heldOut.filter(({ isYes }) => isYes).length} + ${heldOut.filter(({ isYes }) => !isYes).length}`,
      share(...foundFrom(heldOut, 0, true)),
      share(...foundFrom(heldOut, 0, false)),
      share(...foundFrom(heldOut, thresholdAt(heldOut, 0.01), true)),
      share(...foundFrom(heldOut, thresholdAt(heldOut, 0.05), true)),
      (-thresholdAt(others, 0.05)).toFixed(2),
    ])
    // The whole takes minutes; each set is printed as it is done.
    console.error(lines.at(-1)?.join("  "))
  }
  return lines
}

/** How many have this label and a margin from there on, and how many have the label. */
function foundFrom(rows: readonly Scored[], threshold: number, isYes: boolean): [number, number] {
  const own = rows.filter((row) => row.isYes === isYes)
  return [own.filter(({ margin }) => margin >= threshold).length, own.length]
}

/** The lowest at which at most this share of what should not be found is. */
function thresholdAt(rows: readonly Scored[], wrongShare: number): number {
  const margins = rows
    .filter(({ isYes }) => !isYes)
    .map(({ margin }) => margin)
    .toSorted((a, b) => b - a)
  const first = margins[Math.floor(margins.length * wrongShare)] ?? -Infinity
  return first + 1e-9
}

function textsOf(rows: readonly EvaluationRow[], gold?: string): string[] {
  return rows.filter((row) => gold === undefined || row.gold === gold).map(({ text }) => text)
}

async function publicLines(scorer: ScoreEngine): Promise<string[][]> {
  const injections = read("prompt_injections")
  const sets = [
    {
      set: "prompt-injection",
      from: "deepset prompt injections",
      yes: textsOf(injections, "yes"),
      no: textsOf(injections, "no"),
    },
    {
      set: "off-topic",
      from: "TREC questions against Banking77",
      yes: textsOf(read("trec_test")),
      no: textsOf(read("banking77_test")),
    },
  ]
  const lines: string[][] = []
  for (const { set, from, yes, no } of sets) {
    const made = readyMadeSets.find(({ name }) => name === set)
    if (!made) throw new Error(`There is no ready-made set ${set}`)
    const texts = [yes, no].flatMap((list, at) =>
      list.map((text) => ({ text, isYes: at === 0, isHeldOut: true })),
    )
    const scored = await scoreTexts(scorer, made, texts)
    const [[right], [wrong]] = [foundFrom(scored, 0, true), foundFrom(scored, 0, false)]
    lines.push([
      set,
      from,
      String(texts.length),
      share(right + no.length - wrong, texts.length),
      share(right, yes.length),
      share(wrong, no.length),
    ])
    console.error(lines.at(-1)?.join("  "))
  }
  return lines
}

async function moderationLines(scorer: ScoreEngine): Promise<string[][]> {
  const heldOut = readTexts("toxicity").filter(({ isYes, isHeldOut }) => isYes && isHeldOut)
  const sets: [string, readonly { readonly text: string }[]][] = [
    ["our own, harmless", harmlessTexts(true)],
    ["our own, toxic", heldOut],
  ]
  if (hasFolder) {
    const xstest = read("xstest")
    sets.push(
      ["XSTest, harmful", xstest.filter(({ gold }) => gold === "yes")],
      ["XSTest, harmless", xstest.filter(({ gold }) => gold === "no")],
    )
  }
  const lines: string[][] = []
  for (const [name, rows] of sets) {
    const scored = await inTurn(
      rows,
      async ({ text }) => await probabilities(scorer, text, moderationBranches),
    )
    const counts = moderationCategories.map(
      (category, at) =>
        scored.filter((row) => (row[at] ?? 0) >= moderationQuestions[category].threshold).length,
    )
    const flagged = scored.filter((row) =>
      row.some((p, at) => p >= moderationQuestions[moderationCategories[at] ?? "hate"].threshold),
    ).length
    const often = moderationCategories
      .map((category, at) => [category, counts[at] ?? 0] as const)
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, 4)
      .map(([category, count]) => `${category} ${count}`)
    lines.push([name, String(rows.length), share(flagged, rows.length), often.join(", ")])
    console.error(lines.at(-1)?.join("  "))
  }
  return lines
}

/** Of all sets: none of them is anything that moderation should find. */
function harmlessTexts(isHeldOut: boolean): Text[] {
  const texts = readyMadeSets.flatMap(({ name }) => readTexts(name))
  return texts.filter((text) => !text.isYes && text.isHeldOut === isHeldOut)
}

/** The thresholds as they are, and as they would be at the same rate of false alarms, on the texts that are not held out. */
async function thresholdLines(scorer: ScoreEngine): Promise<string[][]> {
  const scored = await inTurn(
    harmlessTexts(false),
    async ({ text }) => await probabilities(scorer, text, moderationBranches),
  )
  return moderationCategories.map((category, at) => {
    const sorted = scored.map((row) => row[at] ?? 0).toSorted((a, b) => b - a)
    const fitted = Math.max(0.5, sorted[Math.floor(sorted.length / 100)] ?? 1)
    return [category, moderationQuestions[category].threshold.toFixed(2), fitted.toFixed(2)]
  })
}

async function rerankLines(scorer: ScoreEngine): Promise<string[][]> {
  const lines: string[][] = []
  for (const set of ["boolq_dev", "pubmedqa_labeled"]) {
    const rows = read(set)
    const asked = rows.slice(0, queries)
    const ranks = await inTurn(asked, async ({ question }, at) => {
      // The passage of the question, and those of the questions after it.
      const texts = Array.from({ length: passages }, (_, step) => rows[(at + step) % rows.length]?.text ?? "")
      const scores: number[] = []
      for (const text of texts)
        scores.push((await probabilities(scorer, text, [relevanceBranch(question)]))[0] ?? 0)
      return scores.filter((score) => score > (scores[0] ?? 0)).length + 1
    })
    const reciprocal = ranks.reduce((sum, rank) => sum + 1 / rank, 0) / ranks.length
    const first = ranks.filter((rank) => rank === 1).length
    lines.push([set, String(ranks.length), share(first, ranks.length), reciprocal.toFixed(3)])
    console.error(lines.at(-1)?.join("  "))
  }
  return lines
}

function predicate(question: string): Branch {
  return { kind: "predicate", question, yesMeans: "", noMeans: "" }
}

async function marginsOf(
  scorer: ScoreEngine,
  text: string,
  branches: readonly Branch[],
): Promise<Float64Array> {
  const work = { organizationId: "bench", evidence: text.trim().slice(0, charactersMax), branches }
  const { margins } = await scorer.score(work, { signal, admit: admitAny })
  return margins
}

async function probabilities(
  scorer: ScoreEngine,
  text: string,
  branches: readonly Branch[],
): Promise<number[]> {
  return Array.from(await marginsOf(scorer, text, branches), readPredicate)
}

async function inTurn<Item, Result>(
  items: readonly Item[],
  work: (item: Item, at: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const run = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as Item, at)
  }
  await Promise.all(Array.from({ length: concurrency }, run))
  return results
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(1)} %`
}
