/** Asks two versions of a set about the same texts, or one about its frozen cases, and says where the answers differ. */
import { mapConcurrent } from "../../base/lists.ts"
import type { CheckResult, CompareResult } from "../../contract/question-sets/jobs.ts"
import {
  type Example,
  listCases,
  listExamples,
  openInput,
  decodeLabels,
} from "../../store/question-sets/examples.ts"
import { listArtefacts } from "../../store/question-sets/sets.ts"
import { askVersion, textsAtOnce } from "./score-texts.ts"
import type { JobContext } from "./jobs.ts"
import type { Verdict } from "../classification/classification.ts"
import type { AskedVersion } from "./version.ts"
import { readArtefact } from "../../scoring/teach/artefact.ts"

export interface CompareInput {
  readonly from: number
  readonly to: number
}

export interface CheckInput {
  readonly version: number
  readonly against: number | null
}

const examplesMax = 1000
const listedMax = 100

interface Text {
  readonly id: string
  readonly input: string
  /** Null of a case that is no example too. */
  readonly example: Pick<Example, "split" | "updatedAt"> | null
  readonly labels: Readonly<Record<string, string | boolean | number>>
}

export async function runCompare(context: JobContext, { from, to }: CompareInput): Promise<CompareResult> {
  const { database, cipher } = context.deps
  const examples = await listExamples(database, context.job.setId, "", examplesMax)
  const byHash = new Map(examples.map((example) => [example.inputHash, example]))
  const frozen = await readCases(context, byHash)
  const known = new Set(frozen.map(({ input }) => input))
  const others = examples
    .map((example) => ({
      id: example.id,
      input: openInput(cipher, example),
      example,
      labels: decodeLabels(example.labels),
    }))
    .filter(({ input }) => !known.has(input))
  const pairs = await askBoth(context, { from, to }, [...frozen, ...others])
  return await differenceOf(context, { from, to }, pairs)
}

export async function runCheck(context: JobContext, { version, against }: CheckInput): Promise<CheckResult> {
  const texts = await readCases(context, new Map())
  const pairs = await askBoth(context, { from: against ?? version, to: version }, texts)
  const judged = pairs.flatMap(({ text, after }) =>
    after.flatMap((verdict) => {
      const expected = labelOf(text, verdict)
      return expected === null ? [] : [{ id: text.id, expected, verdict }]
    }),
  )
  const failures = judged.filter(
    ({ expected, verdict }) => !verdict.isAbstention && verdict.value !== expected,
  )
  const abstained = judged.filter(({ verdict }) => verdict.isAbstention).length
  return {
    version,
    against,
    cases: texts.length,
    passed: judged.length - failures.length - abstained,
    failed: failures.length,
    abstained,
    failures: failures.slice(0, listedMax).map(({ id, expected, verdict }) => ({
      id,
      question: verdict.name,
      expected,
      verdict: shown(verdict),
      confidence: verdict.confidence,
    })),
    difference: against === null ? null : await differenceOf(context, { from: against, to: version }, pairs),
  }
}

async function readCases({ deps, job }: JobContext, examples: ReadonlyMap<string, Example>): Promise<Text[]> {
  const cases = await listCases(deps.database, job.setId)
  return cases.map((one) => ({
    id: one.id,
    input: openInput(deps.cipher, one),
    example: examples.get(one.inputHash) ?? null,
    labels: decodeLabels(one.expected),
  }))
}

interface Pair {
  readonly text: Text
  readonly before: readonly Verdict[]
  readonly after: readonly Verdict[]
}

async function askBoth(
  context: JobContext,
  { from, to }: CompareInput,
  texts: readonly Text[],
): Promise<Pair[]> {
  const old = (await context.readVersion(from)).asked
  const current = from === to ? old : (await context.readVersion(to)).asked
  let done = 0
  return await mapConcurrent(texts, { concurrency: textsAtOnce }, async (text) => {
    const after = await ask(context, current, text.input)
    const before = current === old ? after : await ask(context, old, text.input)
    context.progress(++done / texts.length)
    return { text, before, after }
  })
}

const ask = async (
  { deps, caller, signal }: JobContext,
  version: AskedVersion,
  evidence: string,
): Promise<readonly Verdict[]> => {
  const text = { evidence, questionNames: [], key: evidence }
  const { answers } = await askVersion(deps, caller, version, text, signal)
  return answers.map(({ verdict }) => verdict)
}

async function differenceOf(
  context: JobContext,
  { from, to }: CompareInput,
  pairs: readonly Pair[],
): Promise<CompareResult> {
  const lessons = [await lessonsOf(context, from), await lessonsOf(context, to)]
  const isLearnt: IsLearnt = ({ example }, question) =>
    example !== null && lessons.some((lesson) => learntFrom(lesson.get(question), example))
  const compared = pairs.flatMap(({ text, before, after }) =>
    after.flatMap((now) => {
      const was = before.find(({ name }) => name === now.name)
      return was ? [{ text, was, now }] : []
    }),
  )
  const flips = compared.filter(({ was, now }) => was.value !== now.value)
  const names = [...new Set(compared.map(({ now }) => now.name))]
  return {
    from,
    to,
    texts: pairs.length,
    questions: names.map((name) =>
      shiftOf(
        name,
        compared.filter(({ now }) => now.name === name),
        isLearnt,
      ),
    ),
    flips: flips.slice(0, listedMax).map(({ text, was, now }) => ({
      id: text.id,
      question: now.name,
      before: shown(was),
      after: shown(now),
      confidence_before: was.confidence,
      confidence_after: now.confidence,
    })),
  }
}

function shiftOf(
  name: string,
  compared: readonly { readonly text: Text; readonly was: Verdict; readonly now: Verdict }[],
  isLearnt: IsLearnt,
): CompareResult["questions"][number] {
  const known = compared.filter(({ text, now }) => labelOf(text, now) !== null)
  const labelled = known.filter(({ text }) => !isLearnt(text, name))
  const shifts = compared.map(({ was, now }) => Math.abs(now.confidence - was.confidence))
  return {
    name,
    texts: compared.length,
    flips: compared.filter(({ was, now }) => was.value !== now.value).length,
    mean_shift: shifts.reduce((sum, shift) => sum + shift, 0) / Math.max(1, shifts.length),
    abstained_before: compared.filter(({ was }) => was.isAbstention).length,
    abstained_after: compared.filter(({ now }) => now.isAbstention).length,
    right_before: labelled.filter(({ text, was }) => was.value === labelOf(text, was)).length,
    right_after: labelled.filter(({ text, now }) => now.value === labelOf(text, now)).length,
    labelled: labelled.length,
    learnt: known.length - labelled.length,
  }
}

type IsLearnt = (text: Text, question: string) => boolean

/** When a question was taught, and whether a part of the examples was held out. */
interface Lesson {
  readonly at: Date
  readonly heldOut: boolean
}

async function lessonsOf(context: JobContext, version: number): Promise<ReadonlyMap<string, Lesson>> {
  const { content } = await context.readVersion(version)
  const hashes = content.questions.flatMap(({ artefact }) => artefact ?? [])
  const artefacts = await listArtefacts(context.deps.database, context.job.setId, hashes)
  return new Map(
    artefacts.map(({ question, createdAt, body }) => {
      const { rows } = readArtefact(body)
      return [question, { at: createdAt, heldOut: rows.heldOut > 0 }]
    }),
  )
}

/** A text that a version was taught with says nothing of how it does on others. */
const learntFrom = (
  lesson: Lesson | undefined,
  { split, updatedAt }: NonNullable<Text["example"]>,
): boolean => lesson !== undefined && updatedAt <= lesson.at && !(lesson.heldOut && split === "held_out")

/** As a verdict says it; null where the text has no label for the question. */
function labelOf({ labels }: Text, { name, isPredicate }: Verdict): string | boolean | number | null {
  const label = Object.hasOwn(labels, name) ? labels[name] : undefined
  if (label === undefined) return null
  return isPredicate ? (label === true ? "yes" : "no") : label
}

const shown = ({ value }: Verdict): string | boolean | number => value ?? "abstain"
