/** Teaches the questions of a set: asks the model about every example, fits in a process of its own, and saves a new version. */
import { createHash } from "node:crypto"
import type { Model } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type QuestionSetContent,
  type SetQuestion,
  questionSetLimits,
} from "../../contract/question-sets/content.ts"
import { choosingNothing } from "../../base/virtual-models.ts"
import type { CascadeRule } from "../../contract/platform/virtual-models.ts"
import type { TeacherReport } from "../../contract/question-sets/distil.ts"
import type { TaughtQuestionCascade, TeachResult } from "../../contract/question-sets/jobs.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import { type LabelsNeeded, labelsNeeded } from "../../scoring/teach/learning-curve.ts"
import { type PromiseOutcome, choosePromise } from "../../scoring/teach/promise.ts"
import { type TaughtQuestion, taughtVector } from "../../scoring/teach/question.ts"
import type { RuledRow } from "../../scoring/teach/rules.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import { appendAudit } from "../../store/audit.ts"
import {
  type Example,
  askedHash,
  decodeLabels,
  decodeTeacherLabels,
  listExamples,
  openInput,
} from "../../store/question-sets/examples.ts"
import { endJob, lockHeldJob, succeeded } from "../../store/question-sets/jobs.ts"
import {
  encodeContent,
  insertArtefact,
  insertVersion,
  lockSet,
  type QuestionSet,
  updateSet,
} from "../../store/question-sets/sets.ts"
import type { Question } from "../classification/classification.ts"
import { UNCALIBRATED } from "../score.ts"
import type { JobContext } from "./jobs.ts"
import { metBy, rulesOf, optionNames, toQuestion } from "./version.ts"
import { type FittedStages, type Found, fitCascade } from "./teach-cascade.ts"
import { teachInProcess } from "./teach-client.ts"
import {
  type LabelledExample,
  type Plan,
  type ReadExample,
  type Readings,
  readTexts,
} from "./teach-readings.ts"
import { TeacherTally, teacherReport } from "./teacher-report.ts"

export interface TeachInput {
  readonly version: number
  readonly questions: readonly string[] | null
  readonly target_accuracy: number | null
  /** A third of the rows is measured on and not learnt from. Absent in jobs of an earlier version. */
  readonly hold_out?: boolean
}

/** Reading the examples takes about this share of the time. */
const readingShare = 0.8
const examplesPerPage = 500

export async function runTeach(context: JobContext, input: TeachInput): Promise<TeachResult> {
  const { set, content } = await context.readVersion(input.version)
  const examples = await readExamples(context)
  const asked = content.questions.filter(({ name }) => input.questions?.includes(name) ?? true)
  const { models, cascade } = await stagesOf(context, content.model)
  // Thresholds of a cascade are fitted too: what it promises is tested on rows that they were not fitted to.
  const holdsOut = input.hold_out === true || cascade !== null
  const plans = asked.map((question) => planOf(question, examples, holdsOut))
  const taught = plans.filter(({ reason }) => reason === null)
  const readings = await readTexts(context, models, taught, examples, (done) =>
    context.progress(readingShare * done),
  )
  const found: Found[] = []
  for (const [index, plan] of plans.entries()) {
    const from = readingShare + ((1 - readingShare) * index) / plans.length
    found.push(
      await fit(context, plan, {
        readings,
        holdsOut,
        onProgress: (done) => context.progress(from + ((1 - readingShare) * done) / plans.length),
      }),
    )
  }
  const fitted = cascade && (await fitCascade(context, { cascade, plans, found, readings, input }))
  const outcomes = plans.map((plan, at) =>
    outcomeOf(plan, fitted?.found[at] ?? found[at], { input, readings }),
  )
  return await save(context, set, content, { from: input.version, outcomes, fitted })
}

/** The models that live requests ask: the first of each stage, for the others of a fallback stand in for it. */
export async function stagesOf(
  { deps, caller: { organizationId } }: JobContext,
  name: string,
): Promise<{ readonly models: readonly [Model, ...Model[]]; readonly cascade: CascadeRule | null }> {
  const { stages, cascade, isSplit } = await deps.models.resolve({
    organizationId,
    name,
    wanted: "decisions",
    ...choosingNothing,
  })
  if (isSplit)
    throw new Fault(
      "conflict",
      `Cannot teach the set: its model ${name} splits requests between models or chooses one by language, and what is taught fits one of them; name that one`,
    )
  const [first, ...later] = stages
  return { models: [first[0], ...later.map(([model]) => model)], cascade }
}

const openExample = (cipher: ContentCipher, example: Example): Example => ({
  ...example,
  input: openInput(cipher, example),
  sealed: false,
})

export async function readExamples({ deps, job }: JobContext): Promise<ReadExample[]> {
  const all: ReadExample[] = []
  for (;;) {
    const page = await listExamples(deps.database, job.setId, all.at(-1)?.example.id ?? "", examplesPerPage)
    for (const example of page)
      all.push({
        example: openExample(deps.cipher, example),
        labels: decodeLabels(example.labels),
        teacherLabels: decodeTeacherLabels(example.teacherLabels),
      })
    if (page.length < examplesPerPage) return all
  }
}

const trainingRowsMin = 2

export function planOf(given: SetQuestion, all: readonly ReadExample[], holdsOut: boolean): Plan {
  const question = toQuestion(given)
  const examples = new Map<string, LabelledExample>()
  const teacher = new TeacherTally()
  const asked = askedHash(given)
  let [labelled, training] = [0, 0]
  for (const { example, labels, teacherLabels } of all) {
    const person = Object.hasOwn(labels, given.name) ? indexOf(question, labels[given.name]) : -1
    const stored = Object.hasOwn(teacherLabels, given.name) ? teacherLabels[given.name] : undefined
    const answer = stored?.asked === asked ? stored : undefined
    if (stored && !answer) teacher.outdated++
    const taught = answer ? indexOf(question, answer.label) : -1
    if (answer && taught >= 0) teacher.count(answer, taught, person < 0 ? null : person)
    if (person >= 0) {
      examples.set(example.id, { example, label: person, isTeacher: false })
      labelled++
      if (!holdsOut || example.split === "train") training++
    } else if (taught >= 0) examples.set(example.id, { example, label: taught, isTeacher: true })
  }
  const reason =
    training < trainingRowsMin
      ? `${labelled} examples that people labelled, ${training} of them for training; at least ${trainingRowsMin} are needed`
      : null
  return { given, question, examples, teacher, reason }
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

interface FitOptions {
  readonly readings: Readings
  readonly holdsOut: boolean
  readonly onProgress: (done: number) => void
}

async function fit(
  { signal }: JobContext,
  { given, question, examples, reason }: Plan,
  { readings, holdsOut, onProgress }: FitOptions,
): Promise<Found> {
  if (reason !== null) return { reason }
  const [first, ...others] = readings.stages
  const options = optionNames(question)
  const rules = rulesOf(given, options.length)
  const rows = [...examples.values()].flatMap(({ example, label, isTeacher }): RuledRow[] => {
    const read = first.rows.get(example.id)
    const margins = read?.margins.get(given.name)
    if (!read || !margins) return []
    const vector = read.vector && taughtVector(question.type, read.vector)
    const later = others.flatMap((stage) => stage.rows.get(example.id)?.margins.get(given.name) ?? [])
    const split = holdsOut && !isTeacher ? example.split : "train"
    const { inputHash: hash, input: text } = example
    const row = { hash, split, margins, vector, text, label, met: metBy(rules, text) }
    return [{ ...row, ...(isTeacher && { isTeacher }), ...(later.length > 0 && { later }) }]
  })
  const asked: TaughtQuestion = {
    kind: question.type,
    options,
    optionVectors:
      readings.optionVectors.get(given.name)?.map((vector) => taughtVector(question.type, vector)) ?? null,
    emptyMargins: [...(readings.empty.get(given.name) ?? [])],
  }
  try {
    const { modelVersion } = first
    const votes = rules.map(({ speaksFor, weight }) => ({ speaksFor, weight }))
    return await teachInProcess({ question: asked, rows, modelVersion, rules: votes }, signal, onProgress)
  } catch (error) {
    // Rows that cannot be used are said so; another question may have better ones.
    if (error instanceof Fault && error.code === "conflict") return { reason: error.message }
    throw error
  }
}

interface Outcome {
  readonly name: string
  readonly rules: TeachResult["questions"][number]["rules"]
  readonly reason: string | null
  readonly artefact: { readonly hash: string; readonly body: string; readonly taught: TaughtArtefact } | null
  readonly threshold: number | null
  readonly promise: PromiseOutcome | null
  readonly needed: LabelsNeeded | null
  readonly teacher?: TeacherReport | undefined
}

interface Taught {
  readonly input: TeachInput
  readonly readings: Readings
}

function outcomeOf(plan: Plan, found: Found | undefined, { input, readings }: Taught): Outcome {
  const { given } = plan
  const { name, threshold } = given
  if (!found || "reason" in found)
    return {
      name,
      rules: undefined,
      reason: found?.reason ?? "",
      artefact: null,
      threshold,
      promise: null,
      needed: null,
    }
  const taught = found.artefact
  const target = given.target_accuracy ?? input.target_accuracy
  // A chat model that no check has calibrated promises nothing.
  const tested = taught.modelVersion.endsWith(`/${UNCALIBRATED}`) ? [] : taught.heldOutAnswers
  const promise = target === null ? null : choosePromise(tested, target)
  const body = JSON.stringify(taught)
  const hash = createHash("sha256").update(body).digest("hex")
  return {
    name,
    rules: taught.rules?.map((rule, at) => ({ when: given.rules?.[at]?.when ?? "", ...rule })),
    reason: null,
    artefact: { hash, body, taught },
    // What cannot be promised leaves the threshold as it was.
    threshold: promise?.threshold ?? threshold,
    promise,
    needed: target === null ? null : labelsNeeded(taught.learning ?? [], target),
    teacher: teacherReport({
      tally: plan.teacher,
      taught,
      promise,
      rows: [...plan.examples.keys()].flatMap((id) => readings.stages[0].rows.get(id) ?? []),
      question: name,
    }),
  }
}

interface Ended {
  readonly from: number
  readonly outcomes: readonly Outcome[]
  readonly fitted: FittedStages | null
}

/** In one transaction with the end of the job: a gateway that dies after it leaves nothing to be done, and saved, again. */
async function save(
  { deps, job, principal, signal }: JobContext,
  taughtSet: QuestionSet,
  content: QuestionSetContent,
  { from, outcomes, fitted }: Ended,
): Promise<TeachResult> {
  const taught = new Map(
    outcomes.filter(({ artefact }) => artefact).map((outcome) => [outcome.name, outcome]),
  )
  const resultOf = (version: number | null): TeachResult => ({
    version,
    questions: outcomes.map((outcome) => toResult(outcome, fitted?.questions.get(outcome.name))),
    ...(fitted ? { cascade: fitted.report } : {}),
  })
  if (taught.size === 0) return resultOf(null)
  signal.throwIfAborted()
  const questions = content.questions.map((question): SetQuestion => {
    const outcome = taught.get(question.name)
    if (!outcome?.artefact) return question
    return { ...question, artefact: outcome.artefact.hash, threshold: outcome.threshold }
  })
  const { text, hash } = encodeContent({ ...content, questions })
  const now = new Date(deps.clock.nowMs())
  const { organizationId } = job
  return await deps.database.transaction(async (sql) => {
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
          modelVersion: artefact.taught.modelVersion,
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
      id: deps.ids.next("aud"),
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
    const result = resultOf(number)
    await endJob(sql, job, succeeded(result), now)
    return result
  })
}

function toResult(
  { name, rules, reason, artefact, threshold, promise, needed, teacher }: Outcome,
  cascade: TaughtQuestionCascade | undefined,
): TeachResult["questions"][number] {
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
      rows: promise.rows,
      rows_needed: promise.rowsNeeded,
      sentence: promise.sentence,
    },
    labels_needed: needed && {
      target: needed.target,
      reached: needed.isReached,
      low: needed.low,
      high: needed.high,
      sentence: needed.sentence,
    },
    ...(teacher ? { teacher } : {}),
    ...(rules ? { rules } : {}),
    ...(cascade ? { cascade } : {}),
  }
}
