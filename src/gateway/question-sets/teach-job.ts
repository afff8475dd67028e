/** Teaches the questions of a set: asks the model about every example, fits in a thread, and saves a new version. */
import { createHash } from "node:crypto"
import { Fault } from "../../contract/errors.ts"
import {
  type QuestionSetContent,
  type SetQuestion,
  questionSetLimits,
} from "../../contract/question-sets/content.ts"
import type { TeachResult } from "../../contract/question-sets/jobs.ts"
import type { EvidenceReading } from "../../engine/engine.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import { type PromiseOutcome, choosePromise } from "../../scoring/teach/promise.ts"
import type { TaughtQuestion, TaughtRow } from "../../scoring/teach/question.ts"
import { appendAudit } from "../../store/audit.ts"
import { encodeContent } from "../../store/question-sets/content.ts"
import { type Example, listExamples } from "../../store/question-sets/examples.ts"
import { lockHeldJob } from "../../store/question-sets/jobs.ts"
import {
  type QuestionSet,
  insertArtefact,
  insertVersion,
  lockSet,
  updateSet,
} from "../../store/question-sets/sets.ts"
import { type Question, branchCount, composeClassification } from "../classification/classification.ts"
import { findModel } from "../organization-access.ts"
import type { JobContext } from "./jobs.ts"
import { forEachText, scoreText } from "./score-texts.ts"
import { teachInThread } from "./teach-client.ts"
import { optionNames, toQuestion } from "./version.ts"

export interface TeachInput {
  readonly version: number
  readonly questions: readonly string[] | null
  readonly target_accuracy: number | null
}

/** Reading the examples takes about this share of the time. */
const readingShare = 0.8
const examplesPerPage = 500
/** Stands for no text: what the model answers to it, it answers without evidence. */
const emptyEvidence = " "

export async function runTeach(context: JobContext, input: TeachInput): Promise<TeachResult> {
  const { set, content } = await context.readVersion(input.version)
  const examples = await readExamples(context)
  const asked = content.questions.filter(({ name }) => input.questions?.includes(name) ?? true)
  const plans = asked.map((question) => planOf(question, examples))
  const taught = plans.filter(({ reason }) => reason === null)
  const readings = await readTexts(context, content.model, taught, examples)
  const outcomes: Outcome[] = []
  for (const [index, plan] of plans.entries()) {
    const from = readingShare + ((1 - readingShare) * index) / plans.length
    const artefact = await fit(context, plan, readings, (done) =>
      context.progress(from + ((1 - readingShare) * done) / plans.length),
    )
    outcomes.push(outcomeOf(plan, artefact, input))
  }
  const version = await save(context, set, content, { from: input.version, outcomes })
  return { version, questions: outcomes.map(toResult) }
}

interface ReadExample {
  readonly example: Example
  readonly labels: Readonly<Record<string, unknown>>
}

async function readExamples({ parts, job }: JobContext): Promise<ReadExample[]> {
  const all: ReadExample[] = []
  for (;;) {
    const page = await listExamples(parts.database, job.setId, all.at(-1)?.example.id ?? "", examplesPerPage)
    // Written by `control`.
    for (const example of page)
      all.push({ example, labels: JSON.parse(example.labels) as ReadExample["labels"] })
    if (page.length < examplesPerPage) return all
  }
}

interface LabelledExample {
  readonly example: Example
  /** Index of the right option. */
  readonly label: number
}

interface Plan {
  readonly given: SetQuestion
  readonly question: Question
  /** By the id of the example. */
  readonly examples: ReadonlyMap<string, LabelledExample>
  /** Why the question cannot be taught. */
  readonly reason: string | null
}

const trainingRowsMin = 2

function planOf(given: SetQuestion, all: readonly ReadExample[]): Plan {
  const question = toQuestion(given)
  const examples = new Map<string, LabelledExample>()
  let training = 0
  for (const { example, labels } of all) {
    const label = Object.hasOwn(labels, given.name) ? indexOf(question, labels[given.name]) : -1
    if (label < 0) continue
    examples.set(example.id, { example, label })
    if (example.split === "train") training++
  }
  const reason =
    training < trainingRowsMin
      ? `${examples.size} labelled examples, ${training} of them for training; at least ${trainingRowsMin} are needed`
      : null
  return { given, question, examples, reason }
}

/** -1 for a label that is no longer an answer: the question may have changed since. */
function indexOf(question: Question, label: unknown): number {
  switch (question.type) {
    case "predicate":
      return [true, false].findIndex((value) => value === label)
    case "choice":
      return question.options.findIndex(({ value }) => value === label)
    case "score":
      return typeof label === "number" && question.levels[label] ? label : -1
  }
}

interface Readings {
  /** By the id of an example, then by the name of a question. */
  readonly rows: ReadonlyMap<
    string,
    { readonly margins: ReadonlyMap<string, Float64Array>; readonly vector: Float32Array | null }
  >
  readonly empty: ReadonlyMap<string, Float64Array>
  readonly optionVectors: ReadonlyMap<string, readonly Float32Array[]>
  readonly modelVersion: string
}

async function readTexts(
  context: JobContext,
  sku: string,
  plans: readonly Plan[],
  examples: readonly ReadExample[],
): Promise<Readings> {
  const { parts, caller, signal } = context
  const model = findModel(parts.catalog, sku, "decisions")
  const versions = new Set<string>()
  const read = async (evidence: string, questions: readonly Question[]) => {
    const { branches } = composeClassification({
      wire: "decisions",
      model: sku,
      evidence,
      questions,
      questionNames: null,
    })
    const work = { evidence, branches, reading: { vector: true } }
    const { margins, reading } = await scoreText(parts, caller, model, work, signal)
    noteVersion(versions, reading)
    return { margins: byQuestion(questions, margins), vector: reading?.vector ?? null }
  }
  const wanted = examples
    .map(({ example }) => example)
    .filter(({ id }) => plans.some((plan) => plan.examples.has(id)))
  const texts = wanted.length + (plans.length > 0 ? 1 : 0)
  let done = 0
  const advance = (): void => context.progress((readingShare * ++done) / texts)
  const rows = await forEachText(wanted, 1, async (example) => {
    const questions = plans.filter((plan) => plan.examples.has(example.id)).map(({ question }) => question)
    const row = await read(example.input, questions)
    advance()
    return [example.id, row] as const
  })
  const empty =
    plans.length > 0
      ? await read(
          emptyEvidence,
          plans.map(({ question }) => question),
        )
      : null
  advance()
  const optionVectors = new Map<string, readonly Float32Array[]>()
  const hasVectors = rows.every(([, { vector }]) => vector !== null)
  for (const { question, given } of hasVectors ? plans : []) {
    if (question.type === "predicate") continue
    const vectors = await forEachText(optionTexts(question), 1, async (text) => (await read(text, [])).vector)
    if (vectors.every((vector) => vector !== null)) optionVectors.set(given.name, vectors)
  }
  const [modelVersion = "", ...others] = versions
  if (others.length > 0)
    throw new Fault("conflict", "Cannot teach the set: its model was replaced while it answered; teach again")
  return { rows: new Map(rows), empty: empty?.margins ?? new Map(), optionVectors, modelVersion }
}

function noteVersion(versions: Set<string>, reading: EvidenceReading | null): void {
  if (reading) versions.add(reading.modelVersion)
}

function byQuestion(questions: readonly Question[], margins: Float64Array): Map<string, Float64Array> {
  let start = 0
  return new Map(
    questions.map((question) => {
      const own = margins.slice(start, start + branchCount(question))
      start += own.length
      return [question.name ?? "", own]
    }),
  )
}

const described = (text: string, description: string): string =>
  description === "" ? text : `${text}: ${description}`

function optionTexts(question: Question): string[] {
  switch (question.type) {
    case "predicate":
      return []
    case "choice":
      return question.options.map(({ value, description }) => described(String(value), description))
    case "score":
      return question.levels.map(({ label, description }) => described(label, description))
  }
}

async function fit(
  { signal }: JobContext,
  { given, question, examples, reason }: Plan,
  readings: Readings,
  onProgress: (done: number) => void,
): Promise<TaughtArtefact | { readonly reason: string }> {
  if (reason !== null) return { reason }
  const rows = [...examples.values()].flatMap(({ example, label }): TaughtRow[] => {
    const read = readings.rows.get(example.id)
    const margins = read?.margins.get(given.name)
    if (!read || !margins) return []
    return [{ hash: example.inputHash, split: example.split, margins, vector: read.vector, label }]
  })
  const asked: TaughtQuestion = {
    kind: question.type,
    options: optionNames(question),
    optionVectors: readings.optionVectors.get(given.name) ?? null,
    emptyMargins: [...(readings.empty.get(given.name) ?? [])],
  }
  try {
    const { modelVersion } = readings
    return await teachInThread({ question: asked, rows, modelVersion }, signal, onProgress)
  } catch (error) {
    // Rows that cannot be used are said so; another question may have better ones.
    if (error instanceof Fault && error.code === "conflict") return { reason: error.message }
    throw error
  }
}

interface Outcome {
  readonly name: string
  readonly reason: string | null
  readonly artefact: { readonly hash: string; readonly body: string; readonly taught: TaughtArtefact } | null
  readonly threshold: number | null
  readonly promise: PromiseOutcome | null
}

function outcomeOf(
  { given }: Plan,
  found: TaughtArtefact | { readonly reason: string },
  { target_accuracy }: TeachInput,
): Outcome {
  const { name, threshold } = given
  if ("reason" in found) return { name, reason: found.reason, artefact: null, threshold, promise: null }
  const target = given.target_accuracy ?? target_accuracy
  const promise = target === null ? null : choosePromise(found.heldOutAnswers, target)
  const body = JSON.stringify(found)
  const hash = createHash("sha256").update(body).digest("hex")
  return {
    name,
    reason: null,
    artefact: { hash, body, taught: found },
    // What cannot be promised leaves the threshold as it was.
    threshold: promise?.threshold ?? threshold,
    promise,
  }
}

async function save(
  { parts, job, principal, signal }: JobContext,
  taughtSet: QuestionSet,
  content: QuestionSetContent,
  { from, outcomes }: { readonly from: number; readonly outcomes: readonly Outcome[] },
): Promise<number | null> {
  const taught = new Map(
    outcomes.filter(({ artefact }) => artefact).map((outcome) => [outcome.name, outcome]),
  )
  if (taught.size === 0) return null
  signal.throwIfAborted()
  const questions = content.questions.map((question): SetQuestion => {
    const outcome = taught.get(question.name)
    if (!outcome?.artefact) return question
    return { ...question, artefact: outcome.artefact.hash, threshold: outcome.threshold }
  })
  const { text, hash } = encodeContent({ ...content, questions })
  const now = new Date(parts.clock.nowMs())
  const { organizationId } = job
  return await parts.database.transaction(async (sql) => {
    const set = await lockSet(sql, organizationId, taughtSet.id)
    if (!set) throw new Fault("conflict", "Cannot save what was taught: the set was deleted meanwhile")
    // A gateway that was suspended may come back after its lease ended: then the other one saves.
    if (!(await lockHeldJob(sql, job)))
      throw new Fault("conflict", "Cannot save what was taught: another gateway has taken over the job")
    if (set.latest >= questionSetLimits.versionsMax)
      throw new Fault(
        "conflict",
        `Cannot save what was taught: the set has ${questionSetLimits.versionsMax} versions`,
      )
    for (const { name, artefact } of taught.values())
      if (artefact)
        await insertArtefact(sql, {
          setId: set.id,
          hash: artefact.hash,
          question: name,
          body: artefact.body,
          createdAt: now,
        })
    const number = set.latest + 1
    const note = `taught from version ${from}`
    const version = {
      setId: set.id,
      number,
      hash,
      content: text,
      note,
      createdBy: principal.userId,
      createdAt: now,
    }
    await insertVersion(sql, version)
    await updateSet(sql, set.id, { latest: number }, now)
    await appendAudit(sql, {
      id: parts.ids.next("aud"),
      organizationId,
      actorKind: principal.kind,
      actorId: principal.kind === "session" ? principal.userId : principal.id,
      action: "question_set.update",
      resourceType: "question_set",
      resourceId: set.id,
      before: { version: set.latest },
      after: { version: number, hash, job: job.id },
      at: now,
    })
    return number
  })
}

function toResult({ name, reason, artefact, threshold, promise }: Outcome): TeachResult["questions"][number] {
  const measured = artefact && (artefact.taught.heldOut ?? artefact.taught.crossValidated)
  return {
    name,
    artefact: artefact?.hash ?? null,
    reason,
    form: artefact?.taught.form ?? null,
    accuracy_before: measured?.before.accuracy.value ?? null,
    accuracy_after: measured?.after.accuracy.value ?? null,
    threshold,
    promise: promise && {
      target: promise.target,
      confidence: promise.confidence,
      promised: promise.isPromised,
      threshold: promise.threshold,
      coverage: promise.coverage,
      accuracy: promise.accuracy,
      accuracy_low: promise.accuracyLow,
      held_out_rows: promise.heldOutRows,
      rows_needed: promise.rowsNeeded,
      sentence: promise.sentence,
    },
  }
}
