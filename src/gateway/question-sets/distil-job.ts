/**
 * Distils: asks a larger model about texts, and keeps its answers as teacher labels of the set, each as soon as it is there. A text that
 * the model has answered, also as a shadow or a later stage of a cascade, is not asked again, but what it cost counts, so that a job that
 * is begun anew keeps within the same budget.
 */
import type { Model } from "../../base/catalog.ts"
import { mapConcurrent } from "../../base/lists.ts"
import { type Ticks, ticksOfUsd, usdText } from "../../base/money.ts"
import { utf8Bytes } from "../../contract/decisions.ts"
import { Fault, type FaultCode } from "../../contract/errors.ts"
import { questionSetLimits, type SetQuestion } from "../../contract/question-sets/content.ts"
import { type DistilResult, distilFailuresListed, distilLimits } from "../../contract/question-sets/distil.ts"
import type { TeacherLabel } from "../../contract/question-sets/examples.ts"
import { splitOf } from "../../scoring/teach/question.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import { lockOrganization } from "../../store/organizations.ts"
import {
  type StoredText,
  type TeacherLabels,
  askedHash,
  decodeTeacherLabels,
  findExamplesByHash,
  insertExamples,
  openInput,
  sealInput,
  tieExample,
  updateTeacherLabels,
} from "../../store/question-sets/examples.ts"
import { lockHeldJob } from "../../store/question-sets/jobs.ts"
import { checkStorage, countRows } from "../../store/question-sets/sets.ts"
import { listTeacherAnswers, type TeacherAnswer } from "../../store/question-sets/teacher-answers.ts"
import { composeClassification, type Question } from "../classification/classification.ts"
import { costOf } from "../meter.ts"
import type { JobContext } from "./jobs.ts"
import { keptTexts } from "./kept-texts.ts"
import { scoreText } from "./score-texts.ts"
import { stagesOf } from "./teach-job.ts"
import { marginsByQuestion } from "./teach-readings.ts"
import { labelOf } from "./teacher-answers.ts"
import { toQuestion } from "./version.ts"

export interface DistilInput {
  readonly version: number
  readonly model: string
  readonly questions: readonly string[] | null
  readonly budget_usd: string
  /** JSON of the texts, encrypted like those of examples; null: kept requests of the set. */
  readonly texts: StoredText | null
}

/** It answers slowly, and elsewhere. */
const textsAtOnce = 4
/** What is wrong with one text; whatever else is wrong would be so with the next one too. */
const ofOneText: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "context_length_exceeded",
  // As of one that its provider's filter blocks.
  "invalid_request",
  "inference_failed",
  "invalid_worker_response",
])

interface GivenText {
  /** From 1. */
  readonly row: number
  readonly text: string
  readonly hash: string
  /** Of a kept request. */
  readonly seqId: string | null
}

/** No text may begin that could cost more than is left of it. */
class Budget {
  readonly #most: Ticks
  #spent = 0n
  #reserved = 0n
  #settled = Promise.withResolvers<void>()
  isReached = false

  constructor(most: Ticks) {
    this.#most = most
  }

  get spent(): Ticks {
    return this.#spent
  }

  /** Of what was paid before. */
  count(ticks: Ticks): void {
    this.#spent += ticks
  }

  /** Waits for what texts that are asked about now give back. One that has `held` some waits for none: it could be for itself. */
  async reserve(ticks: Ticks, held: Ticks): Promise<void> {
    while (this.#spent + this.#reserved + ticks > this.#most) {
      const isReached = this.#spent + held + ticks > this.#most
      if (isReached) this.isReached = true
      if (isReached || held > 0n) throw new BudgetReached()
      await this.#settled.promise
    }
    this.#reserved += ticks
  }

  settle(reserved: Ticks, cost: Ticks): void {
    this.#reserved -= reserved
    this.#spent += cost
    this.#settled.resolve()
    this.#settled = Promise.withResolvers<void>()
  }
}

class BudgetReached extends Fault {
  constructor() {
    super("conflict", "Cannot ask the model: the budget of the job does not allow more")
  }
}

interface Distilling {
  readonly context: JobContext
  readonly model: Model
  readonly questions: readonly { readonly given: SetQuestion; readonly question: Question }[]
  readonly budget: Budget
}

export async function runDistil(context: JobContext, input: DistilInput): Promise<DistilResult> {
  const { content } = await context.readVersion(input.version)
  const asked = content.questions.filter(({ name }) => input.questions?.includes(name) ?? true)
  if (asked.length === 0) throw new Fault("conflict", "Cannot ask the model: the set has no questions")
  const { models, cascade } = await stagesOf(context, input.model)
  if (cascade)
    throw new Fault("conflict", `Cannot learn from ${input.model}: it is a cascade; name one of its models`)
  const questions = asked.map((given) => ({ given, question: toQuestion(given) }))
  const distilling = {
    context,
    model: models[0],
    questions,
    budget: new Budget(ticksOfUsd(input.budget_usd)),
  }
  const texts = input.texts
    ? givenTexts(context, input.texts)
    : eachOnce(await keptTexts(context, new Set(), distilLimits.textsMax))
  if (texts.length === 0)
    throw new Fault(
      "conflict",
      "Cannot ask the model: no request of the set is kept; keep evidence, or give texts",
    )
  const unlabelled = await withoutKnown(distilling, texts)
  await checkRoom(context, unlabelled, questions.length)
  const unknown = await withoutAnswered(distilling, input, unlabelled)
  const failed: DistilResult["failed"] = []
  const result = { labelled: 0, left: 0, failed, failed_count: 0 }
  let done = texts.length - unknown.length
  await mapConcurrent(
    unknown,
    { concurrency: textsAtOnce, signal: context.signal },
    async (one, _, signal) => {
      const reason = await label(distilling, one, signal)
      if (reason === null) result.labelled++
      else if (reason === "budget") result.left++
      else if (result.failed_count++ < distilFailuresListed) result.failed.push({ row: one.row, reason })
      context.progress(++done / texts.length)
    },
  )
  return {
    model: models[0].sku,
    texts: texts.length,
    known: texts.length - unknown.length,
    ...result,
    failed: result.failed.toSorted((a, b) => a.row - b.row),
    spent_usd: usdText(distilling.budget.spent),
  }
}

/** Each text once. */
function givenTexts({ deps, job: { id, setId } }: JobContext, stored: StoredText): GivenText[] {
  // Written by the handler that started the job.
  const texts = JSON.parse(openInput(deps.cipher, { id, setId, ...stored })) as readonly string[]
  return eachOnce(texts.map((text) => ({ text, hash: rowHash(text), seqId: null })))
}

function eachOnce(texts: readonly Omit<GivenText, "row">[]): GivenText[] {
  const byHash = new Map<string, GivenText>()
  for (const [at, one] of texts.entries())
    if (!byHash.has(one.hash)) byHash.set(one.hash, { row: at + 1, ...one })
  return [...byHash.values()]
}

/** Keeps what the model has answered about kept requests, and answers which texts it is still to be asked about. */
async function withoutAnswered(
  { context, model, questions, budget }: Distilling,
  { version }: DistilInput,
  texts: readonly GivenText[],
): Promise<GivenText[]> {
  const seqIds = texts.flatMap(({ seqId }) => seqId ?? [])
  if (seqIds.length === 0) return [...texts]
  const { deps, job } = context
  const named = { model: model.sku, seqIds }
  const stored = Map.groupBy(await listTeacherAnswers(deps.database, job.setId, named), ({ seqId }) => seqId)
  const isSame = await sameQuestions(context, version, [...stored.values()].flat())
  const left: GivenText[] = []
  for (const text of texts) {
    const answers = (stored.get(text.seqId ?? "") ?? []).filter(isSame)
    const labels = Object.fromEntries(
      questions.flatMap(({ given }): [string, TeacherLabel][] => {
        const answer = answers.findLast(({ question }) => question === given.name)
        return answer ? [[given.name, labelOfAnswer(answer, given)]] : []
      }),
    )
    const found = Object.keys(labels).length
    if (found > 0) {
      checkDisk(context, text, found)
      await save(context, text, labels)
    }
    if (found < questions.length) left.push(text)
    else budget.count(answers.reduce((sum, { costTicks }) => sum + costTicks, 0n))
  }
  return left
}

const labelOfAnswer = (
  { label, model, confidence, costTicks }: TeacherAnswer,
  given: SetQuestion,
): TeacherLabel => ({
  // Written by `teacherAnswers`.
  label: JSON.parse(label) as TeacherLabel["label"],
  model,
  confidence,
  cost_usd: usdText(costTicks),
  asked: askedHash(given),
})

/** Whether an answer is to a question as the version puts it. */
async function sameQuestions(
  context: JobContext,
  version: number,
  answers: readonly TeacherAnswer[],
): Promise<(answer: TeacherAnswer) => boolean> {
  const hashes = new Map<number, ReadonlyMap<string, string>>()
  for (const number of new Set([version, ...answers.map((one) => one.version)])) {
    const { content } = await context.readVersion(number)
    hashes.set(number, new Map(content.questions.map((one) => [one.name, askedHash(one)])))
  }
  const hashOf = (number: number, name: string) => hashes.get(number)?.get(name)
  return (answer) => hashOf(answer.version, answer.question) === hashOf(version, answer.question)
}

async function withoutKnown(
  { context: { deps, job }, model, questions, budget }: Distilling,
  texts: readonly GivenText[],
): Promise<GivenText[]> {
  const hashes = texts.map(({ hash }) => hash)
  const known = new Map(
    (await findExamplesByHash(deps.database, job.setId, hashes)).map((example) => [
      example.inputHash,
      decodeTeacherLabels(example.teacherLabels),
    ]),
  )
  return texts.filter(({ hash }) => {
    const labels = known.get(hash) ?? {}
    const own = questions.flatMap(({ given }) => {
      const label = Object.hasOwn(labels, given.name) ? labels[given.name] : undefined
      return label?.model === model.sku && label.asked === askedHash(given) ? [label] : []
    })
    budget.count(own.reduce((sum, { cost_usd }) => sum + ticksOfUsd(cost_usd ?? "0"), 0n))
    return own.length < questions.length
  })
}

/** Of an answer, as it is stored. */
const answerBytes = 300
const storedBytes = ({ text }: GivenText, answers: number): number => utf8Bytes(text) + answers * answerBytes

/** Before a text is asked about: an answer that is paid for is kept. */
function checkDisk({ deps }: JobContext, text: GivenText, answers: number): void {
  if (deps.hasRowSpace(storedBytes(text, answers))) return
  throw new Fault(
    "storage_full",
    "Cannot keep the answers: the disk has no room for them; begin the job again when the operator has made some",
  )
}

/** Before anything is spent: texts that are known already are counted twice. */
async function checkRoom(
  { deps, job }: JobContext,
  texts: readonly GivenText[],
  questions: number,
): Promise<void> {
  const bytes = texts.reduce((sum, text) => sum + storedBytes(text, questions), 0)
  await checkStorage(deps.database, job, "answers", { rows: texts.length, bytes })
  const { examples } = await countRows(deps.database, job.setId)
  if (examples + texts.length > questionSetLimits.examplesMax) throw noRoom()
}

const noRoom = (): Fault =>
  new Fault(
    "conflict",
    `Cannot keep the answers: a set has at most ${questionSetLimits.examplesMax} examples`,
  )

/** Null where the text is labelled; else why not. */
async function label(distilling: Distilling, text: GivenText, signal: AbortSignal): Promise<string | null> {
  const { context, questions, budget } = distilling
  // What is left may still pay for a shorter text, but a job that picks short ones is not worth it.
  if (budget.isReached) return "budget"
  try {
    checkDisk(context, text, questions.length)
    await save(context, text, await ask(distilling, text, signal))
    return null
  } catch (error) {
    if (error instanceof BudgetReached) return "budget"
    if (error instanceof Fault && ofOneText.has(error.code)) return error.message
    throw error
  }
}

async function ask(
  { context: { deps, caller }, model, questions, budget }: Distilling,
  { text }: GivenText,
  signal: AbortSignal,
): Promise<TeacherLabels> {
  const plain = questions.map(({ question }) => question)
  const asked = {
    wire: "decisions",
    model: model.sku,
    evidence: text,
    questions: plain,
    questionNames: null,
  } as const
  const { branches } = composeClassification(asked)
  /** Every try that is paid counts, of those that a full worker ended too. */
  let [reserved, cost] = [0n, 0n]
  const admits = async (most: Ticks): Promise<void> => {
    await budget.reserve(cost + most - reserved, reserved)
    reserved = cost + most
  }
  const onUnusable = (ticks: Ticks): void => void (cost += ticks)
  try {
    const work = { evidence: text, branches, reading: undefined }
    const { margins, usage } = await scoreText(deps, { ...caller, admits, onUnusable }, model, work, signal)
    const answerCost = costOf(model.prices, usage)
    cost += answerCost
    const own = marginsByQuestion(plain, margins)
    const each = usdText(answerCost / BigInt(questions.length))
    const labels = questions.map(({ given, question }): [string, TeacherLabel] => [
      given.name,
      {
        ...labelOf(question, own.get(given.name) ?? new Float64Array()),
        model: model.sku,
        cost_usd: each,
        asked: askedHash(given),
      },
    ])
    return Object.fromEntries(labels)
  } finally {
    budget.settle(reserved, cost)
  }
}

/** Under the lock of the organization, as all that adds examples. */
async function save(
  { deps, job }: JobContext,
  { text, hash, seqId }: GivenText,
  answers: TeacherLabels,
): Promise<void> {
  const at = new Date(deps.clock.nowMs())
  await deps.database.transaction(async (sql) => {
    await lockOrganization(sql, job.organizationId)
    if (!(await lockHeldJob(sql, job)))
      throw new Fault("conflict", "Cannot keep the answers: another gateway has taken over the job")
    const [known] = await findExamplesByHash(sql, job.setId, [hash])
    if (known)
      await updateTeacherLabels(sql, known.id, { ...decodeTeacherLabels(known.teacherLabels), ...answers })
    else {
      const { examples } = await countRows(sql, job.setId)
      if (examples >= questionSetLimits.examplesMax) throw noRoom()
      const place = { id: deps.ids.next("ex"), setId: job.setId }
      await insertExamples(sql, [
        {
          ...place,
          ...sealInput(deps.cipher, place, text),
          inputHash: hash,
          split: splitOf(hash),
          labels: "{}",
          teacherLabels: JSON.stringify(answers),
          source: "teacher",
          createdAt: at,
          updatedAt: at,
        },
      ])
      if (seqId !== null) await tieExample(sql, place.id, seqId)
    }
  })
}
