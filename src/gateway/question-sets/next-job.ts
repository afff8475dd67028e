/** Proposes which texts to label next: reads candidates and labelled examples, chooses in a process of its own, and asks reviewers. */
import { ruleEvidenceLater } from "../../base/evidence-rules.ts"
import { mapConcurrent } from "../../base/lists.ts"
import { Fault } from "../../contract/errors.ts"
import type { SetQuestion } from "../../contract/question-sets/content.ts"
import type { NextResult } from "../../contract/question-sets/jobs.ts"
import { taughtVector } from "../../scoring/teach/question.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import type { UnlabelledRow } from "../../scoring/teach/next.ts"
import type { RuledRow } from "../../scoring/teach/rules.ts"
import { insertProposedItems } from "../../store/content/review.ts"
import { type StoredText, openInput } from "../../store/question-sets/examples.ts"
import type { Question } from "../classification/classification.ts"
import type { JobContext } from "./jobs.ts"
import { type KeptText, keptTexts } from "./kept-texts.ts"
import { rulesOf, voteRules, optionNames } from "./version.ts"
import { textsAtOnce } from "./score-texts.ts"
import { chooseNextInProcess } from "./teach-client.ts"
import { planOf, readExamples, stagesOf } from "./teach-job.ts"
import { type LabelledExample, type Plan, type ReadRow, StageReader } from "./teach-readings.ts"

export interface NextInput {
  readonly version: number
  readonly question: string
  readonly count: number
  readonly candidates_max: number
  /** JSON of the texts, encrypted like those of examples; null: kept requests of the set. */
  readonly texts: StoredText | null
}

/** Labelled texts that are read again; the newest count. */
const labelledMax = 500
const readingShare = 0.95

interface Candidate extends Omit<KeptText, "seqId"> {
  /** From 1, of the texts that were given. */
  readonly row: number | null
  readonly seqId: string | null
}

export async function runNext(context: JobContext, input: NextInput): Promise<NextResult> {
  const { content } = await context.readVersion(input.version)
  const given = content.questions.find(({ name }) => name === input.question)
  if (!given) throw new Fault("conflict", `Cannot propose texts: the question ${input.question} is gone`)
  const plan = planOf(given, await readExamples(context), false)
  const labelled = labelledBy(plan)
  const known = new Set(labelled.map(({ example }) => example.inputHash))
  const found = input.texts
    ? givenTexts(context, input.texts)
    : (await keptTexts(context, known, input.candidates_max)).map((one) => ({ row: null, ...one }))
  const candidates = unlabelled(found, known, input.candidates_max)
  if (candidates.length === 0) throw nothingToChoose(input)
  const { models } = await stagesOf(context, content.model)
  const reader = new StageReader(context, models[0], true)
  const rows = await readRows(context, reader, plan, candidates)
  const choices = await chooseNextInProcess(
    { question: askedOf(plan.question), count: input.count, ...rows },
    context.signal,
  )
  const picked = choices.flatMap(({ index, answer, confidence }) => {
    const candidate = candidates[index]
    return candidate ? [{ candidate, answer: valueOf(plan.question, answer), confidence }] : []
  })
  await askReviewers(
    context,
    given,
    input.version,
    picked.flatMap(({ candidate }) => candidate.seqId ?? []),
  )
  return {
    question: given.name,
    candidates: candidates.length,
    labelled: labelled.length,
    rows: picked.map(({ candidate, answer, confidence }) => ({
      row: candidate.row,
      seq_id: candidate.seqId,
      answer,
      confidence,
    })),
  }
}

/** By people: what another model has answered may still be worth a label. */
const labelledBy = ({ examples }: Plan): LabelledExample[] =>
  [...examples.values()].filter(({ isTeacher }) => !isTeacher)

function givenTexts({ deps, job: { id, setId } }: JobContext, stored: StoredText): Candidate[] {
  // Written by the handler that started the job.
  const texts = JSON.parse(openInput(deps.cipher, { id, setId, ...stored })) as readonly string[]
  return texts.map((text, at) => ({ row: at + 1, seqId: null, text, hash: rowHash(text) }))
}

/** Each text once. */
function unlabelled(found: readonly Candidate[], known: ReadonlySet<string>, max: number): Candidate[] {
  const byHash = new Map<string, Candidate>()
  for (const one of found) if (!known.has(one.hash) && !byHash.has(one.hash)) byHash.set(one.hash, one)
  return [...byHash.values()].slice(0, max)
}

function nothingToChoose({ texts }: NextInput): Fault {
  return new Fault(
    "conflict",
    texts
      ? "Cannot propose texts: all of those that were given are labelled"
      : "Cannot propose texts: no unlabelled request of the set is kept; keep evidence, or give texts",
  )
}

interface ReadTexts {
  readonly labelled: readonly RuledRow[]
  readonly candidates: readonly UnlabelledRow[]
}

async function readRows(
  context: JobContext,
  reader: StageReader,
  plan: Plan,
  candidates: readonly Candidate[],
): Promise<ReadTexts> {
  const { given, question } = plan
  const newest = labelledBy(plan)
    .toSorted((a, b) => (a.example.id < b.example.id ? 1 : -1))
    .slice(0, labelledMax)
  const rules = rulesOf(given, optionNames(question).length)
  let done = 0
  const read = async (hash: string, text: string): Promise<UnlabelledRow> => {
    const row: ReadRow = await reader.read(text, [question])
    context.progress((readingShare * ++done) / (newest.length + candidates.length))
    const margins = voteRules(question, rules, row.margins.get(given.name) ?? new Float64Array(), {
      evidence: ruleEvidenceLater(text),
      weights: null,
    })
    return { hash, text, margins, vector: row.vector && taughtVector(question.type, row.vector) }
  }
  const pace = { concurrency: textsAtOnce, signal: context.signal }
  return {
    labelled: await mapConcurrent(newest, pace, async ({ example, label }): Promise<RuledRow> => ({
      ...(await read(example.inputHash, example.input)),
      split: "train",
      label,
      // Their votes are in the margins.
      met: [],
    })),
    candidates: await mapConcurrent(candidates, pace, async ({ hash, text }) => await read(hash, text)),
  }
}

const askedOf = (question: Question) => ({
  kind: question.type,
  options: optionNames(question),
  optionVectors: null,
  emptyMargins: null,
})

/** As verdicts have it. */
function valueOf(question: Question, answer: number): NextResult["rows"][number]["answer"] {
  switch (question.type) {
    case "predicate":
      return answer === 0 ? "yes" : "no"
    case "choice":
      return question.options[answer]?.value ?? ""
    case "score":
      return answer
  }
}

/** What a person labels next stands first in the queue, the best of it foremost. */
async function askReviewers(
  { deps: { database, ids, clock }, job }: JobContext,
  { name: question }: SetQuestion,
  version: number,
  seqIds: readonly string[],
): Promise<void> {
  await insertProposedItems(
    database,
    seqIds.toReversed().map((seqId) => ({
      id: ids.next("rev"),
      setId: job.setId,
      organizationId: job.organizationId,
      seqId,
      question,
      version,
      reason: "label_next",
      secondLook: false,
      createdAt: new Date(clock.nowMs()),
    })),
  )
}
