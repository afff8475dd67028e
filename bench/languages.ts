/**
 * How well decision models read other languages than English, on kept-back texts of the banks: `npm run bench -- languages [--model=FILE ...]
 * [--language=en ...]`.
 *
 * By language: yes/no questions, choices and scales asked in the language of the text and in English, and how often the right one of two
 * texts that differ in little has the higher margin. English is that of the kept-back contrast groups, which are harder than everyday
 * texts. A model may be an .onnx or a .gguf file; those that are shipped are measured otherwise.
 */
import { createHash } from "node:crypto"
import { readFileSync, readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import { z } from "zod"
import { LIMITS } from "../src/contract/decisions.ts"
import { drawTable } from "../src/cli/table.ts"
import { type ScoreEngine, admitAny } from "../src/engine/engine.ts"
import { decodeDecisions } from "../src/gateway/classification/wire.ts"
import { openModelFile } from "../src/main/engines.ts"
import { readChoice } from "../src/scoring/answers.ts"

/** As `model/recipe/languages.py` and `model/recipe/decisions/contrast.py` have it: what no training reads. */
const neverTrained = ["sv", "vi"]
const englishSets = ["time", "quantity", "roles", "refusal", "scales"]
const keptBackOneIn = 8
const concurrency = 2
const english = "en"

/** One right answer per text; null where the text does not tell. */
const Questions = z.object({
  questions: z.array(z.tuple([z.string(), z.array(z.boolean().nullable())])),
  choices: z.array(z.tuple([z.string(), z.array(z.string()), z.array(z.number().nullable())])).default([]),
  scales: z
    .array(z.tuple([z.string(), z.array(z.string()), z.array(z.number().nullable())]))
    .transform((scales) => scales.filter(([, levels]) => levels.length <= LIMITS.levelsMax))
    .default([]),
})
const Group = Questions.extend({
  set: z.string(),
  texts: z.array(z.string()).min(1),
  english: Questions.optional(),
})
type Group = z.infer<typeof Group>

const columns = ["yes/no", "choices", "scales", "pairs", "yes/no in English", "choices in English"] as const
type Column = (typeof columns)[number]
/** Right and all answers. */
type Counts = Record<Column, [right: number, all: number]>

const { values } = parseArgs({
  options: { model: { type: "string", multiple: true }, language: { type: "string", multiple: true } },
})
const root = join(import.meta.dirname, "..", "model")
const files =
  values.model ?? ["umpire-decide-small.onnx", "umpire-decide.onnx"].map((name) => join(root, name))

function readGroups(): Map<string, Group[]> {
  const folder = join(root, "banks", "languages")
  const found = readdirSync(folder)
    .toSorted()
    .map((name): [string, Group[]] => {
      const language = basename(name, ".jsonl")
      const isWhole = neverTrained.includes(language)
      return [language, readLines(join(folder, name)).filter((group) => isWhole || isDrawn(group))]
    })
  const own = readLines(join(root, "banks", "contrast.jsonl")).filter(
    (group) => englishSets.includes(group.set) && isDrawn(group),
  )
  const all: [string, Group[]][] = [[english, own], ...found]
  return new Map(all.filter(([language]) => values.language?.includes(language) ?? true))
}

const readLines = (file: string): Group[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => Group.parse(JSON.parse(line)))

const isDrawn = ({ texts: [first = ""] }: Group): boolean =>
  createHash("sha256").update(first).digest().readUInt32BE() % keptBackOneIn === 0

async function measureModel(file: string): Promise<void> {
  const engine = await openModelFile(file)
  const measured = new Map<string, Counts>()
  try {
    for (const [language, own] of groups) {
      measured.set(language, await measure(engine, own))
      // The whole takes minutes; each language is noted as it is done.
      console.error(basename(file), language)
    }
  } finally {
    await engine.close()
  }
  const trained = [...measured].filter(([name]) => name !== english && !neverTrained.includes(name))
  const strange = [...measured].filter(([name]) => neverTrained.includes(name))
  const rows: [string, number, Counts | undefined][] = [
    ...[...measured].map(([name, counts]): [string, number, Counts] => [
      name,
      groups.get(name)?.length ?? 0,
      counts,
    ]),
    ["trained on", count(trained), sum(trained.map(([, counts]) => counts))],
    ["never trained on", count(strange), sum(strange.map(([, counts]) => counts))],
  ]
  console.log(`\n${basename(file)}`)
  const shown = rows.map(([name, size, counts]) => [
    name,
    String(size),
    ...columns.map((one) => share(counts?.[one])),
  ])
  const base = measured.get(english)
  const relative = rows
    .slice(-2)
    .map(([name, , counts]) => [
      `${name}, English = 1`,
      "",
      ...columns.map((one) => ratio(counts?.[one], base?.[one.endsWith("in English") ? plain(one) : one])),
    ])
  console.log(drawTable(["language", "groups", ...columns], [...shown, ...relative]))
}

const plain = (column: Column): Column => (column.startsWith("yes/no") ? "yes/no" : "choices")

const count = (some: readonly [string, Counts][]): number =>
  some.reduce((total, [name]) => total + (groups.get(name)?.length ?? 0), 0)

const sum = (all: readonly Counts[]): Counts => {
  const total = noCounts()
  for (const counts of all)
    for (const column of columns)
      total[column] = [total[column][0] + counts[column][0], total[column][1] + counts[column][1]]
  return total
}

const noCounts = (): Counts => ({
  "yes/no": [0, 0],
  choices: [0, 0],
  scales: [0, 0],
  pairs: [0, 0],
  "yes/no in English": [0, 0],
  "choices in English": [0, 0],
})

const share = ([right, all]: readonly [number, number] = [0, 0]): string =>
  all === 0 ? "" : (right / all).toFixed(3)

const ratio = (own: readonly [number, number] = [0, 0], base: readonly [number, number] = [0, 0]): string =>
  own[1] === 0 || base[0] === 0 ? "" : (own[0] / own[1] / (base[0] / base[1])).toFixed(2)

async function measure(engine: ScoreEngine, own: readonly Group[]): Promise<Counts> {
  const counts = noCounts()
  let next = 0
  const work = async (): Promise<void> => {
    for (let group = own[next++]; group; group = own[next++]) await measureGroup(engine, group, counts)
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return counts
}

async function measureGroup(engine: ScoreEngine, group: Group, counts: Counts): Promise<void> {
  const { texts, english: asked } = group
  const own = await marginsOf(engine, texts, group)
  const note = (column: Column, isRight: boolean): void => {
    const [right, all] = counts[column]
    counts[column] = [right + Number(isRight), all + 1]
  }
  noteAnswers(group, own, { predicates: "yes/no", choices: "choices", scales: "scales" }, note)
  for (const [row, [, answers]] of group.questions.entries())
    for (const [yes, isYes] of answers.entries())
      for (const [no, isNo] of answers.entries())
        if (isYes === true && isNo === false)
          note("pairs", (own[yes]?.[row]?.[0] ?? 0) > (own[no]?.[row]?.[0] ?? 0))
  if (!asked) return
  const inEnglish = await marginsOf(engine, texts, asked)
  const named = { predicates: "yes/no in English", choices: "choices in English", scales: null } as const
  noteAnswers(asked, inEnglish, named, note)
}

/** By text and question: yes/no questions, then choices, then scales. */
type Margins = readonly (readonly Float64Array[])[]
type Asked = z.infer<typeof Questions>

function noteAnswers(
  { questions, choices, scales }: Asked,
  margins: Margins,
  named: { readonly predicates: Column; readonly choices: Column; readonly scales: Column | null },
  note: (column: Column, isRight: boolean) => void,
): void {
  for (const found of margins.entries()) {
    const [text, own] = found
    for (const [row, [, right]] of questions.entries()) {
      const holds = right[text] ?? null
      if (holds !== null) note(named.predicates, (own[row]?.[0] ?? 0) > 0 === holds)
    }
    const options = [
      ...choices.map(([, , right]) => [named.choices, right[text] ?? null] as const),
      ...scales.map(([, , right]) => [named.scales, right[text] ?? null] as const),
    ]
    for (const [at, [column, right]] of options.entries()) {
      const answered = own[questions.length + at]
      if (right !== null && column !== null && answered) note(column, readChoice(answered).winner === right)
    }
  }
}

async function marginsOf(engine: ScoreEngine, texts: readonly string[], asked: Asked): Promise<Margins> {
  const { signal } = new AbortController()
  const questions = [
    ...asked.questions.map(([instructions]) => ({ type: "predicate", instructions })),
    ...asked.choices.map(([instructions, options]) => ({
      type: "choice",
      instructions,
      choices: options.map((value) => ({ value })),
    })),
    ...asked.scales.map(([instructions, levels]) => ({
      type: "score",
      instructions,
      levels: levels.map((label) => ({ label })),
    })),
  ]
  const sizes = [
    ...asked.questions.map(() => 1),
    ...[...asked.choices, ...asked.scales].map(([, options]) => options.length),
  ]
  return await Promise.all(
    texts.map(async (input) => {
      const body = JSON.stringify({ model: "bench", input, questions })
      const { evidence, branches } = decodeDecisions(Buffer.from(body))
      const { margins } = await engine.score(
        { organizationId: "bench", evidence, branches },
        { signal, admit: admitAny },
      )
      let at = 0
      return sizes.map((size) => margins.slice(at, (at += size)))
    }),
  )
}

const groups = readGroups()
for (const file of files) await measureModel(file)
