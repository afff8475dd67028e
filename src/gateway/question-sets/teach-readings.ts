/** Asks the model about every example of a set that is taught; of a cascade, every stage. */
import type { Model } from "../../base/catalog.ts"
import { mapConcurrent } from "../../base/lists.ts"
import { utf8Bytes } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import type { SetQuestion } from "../../contract/question-sets/content.ts"
import { type Branch, promptText } from "../../engine/branch.ts"
import type { EvidenceReading } from "../../engine/engine.ts"
import type { Example, TeacherLabels } from "../../store/question-sets/examples.ts"
import { type Question, branchCount, composeClassification } from "../classification/classification.ts"
import { costOf } from "../meter.ts"
import type { JobContext } from "./jobs.ts"
import { scoreText } from "./score-texts.ts"
import type { TeacherTally } from "./teacher-report.ts"

export interface ReadExample {
  readonly example: Example
  readonly labels: Readonly<Record<string, unknown>>
  readonly teacherLabels: TeacherLabels
}

export interface LabelledExample {
  readonly example: Example
  /** Index of the right option. */
  readonly label: number
  /** Another model's answer stands in where no person has labelled. */
  readonly isTeacher: boolean
}

export interface Plan {
  readonly given: SetQuestion
  readonly question: Question
  /** By the id of the example. */
  readonly examples: ReadonlyMap<string, LabelledExample>
  readonly teacher: TeacherTally
  /** Why the question cannot be taught. */
  readonly reason: string | null
}

/** Stands for no text: what the model answers to it, it answers without evidence. */
const emptyEvidence = " "

export interface ReadRow {
  /** By the name of a question. */
  readonly margins: ReadonlyMap<string, Float64Array>
  readonly vector: Float32Array | null
  /** What the tokens cost, in ticks: of the evidence, and of each question. */
  readonly cost: { readonly evidence: number; readonly questions: ReadonlyMap<string, number> }
  readonly ms: number
}

/** What one model says of the examples. */
export interface StageReadings {
  readonly model: Model
  readonly modelVersion: string
  /** By the id of an example. */
  readonly rows: ReadonlyMap<string, ReadRow>
}

export interface Readings {
  /** More than one of a cascade. */
  readonly stages: readonly [StageReadings, ...StageReadings[]]
  /** Of the first stage, by the name of a question. */
  readonly empty: ReadonlyMap<string, Float64Array>
  readonly optionVectors: ReadonlyMap<string, readonly Float32Array[]>
}

/** `onProgress` is told the share that is done. */
export async function readTexts(
  context: JobContext,
  models: readonly [Model, ...Model[]],
  plans: readonly Plan[],
  examples: readonly ReadExample[],
  onProgress: (done: number) => void,
): Promise<Readings> {
  const wanted = examples
    .map(({ example }) => example)
    .filter(({ id }) => plans.some((plan) => plan.examples.has(id)))
  // Later stages are blended by people's labels alone.
  const judged = wanted.filter(({ id }) => plans.some((plan) => plan.examples.get(id)?.isTeacher === false))
  const texts = wanted.length + judged.length * (models.length - 1) + (plans.length > 0 ? 1 : 0)
  let done = 0
  const advance = (): void => onProgress(++done / texts)
  const [first, ...others] = models
  const reader = new StageReader(context, first, true)
  const rows = await reader.readAll(wanted, plans, advance)
  const questions = plans.map(({ question }) => question)
  const empty = plans.length > 0 ? await reader.read(emptyEvidence, questions) : null
  advance()
  const optionVectors = new Map<string, readonly Float32Array[]>()
  const hasVectors = [...rows.values()].every(({ vector }) => vector !== null)
  for (const { question, given } of hasVectors ? plans : []) {
    if (question.type === "predicate") continue
    const vectors = await mapConcurrent(
      optionTexts(question),
      { concurrency: 1 },
      async (text) => (await reader.read(text, [])).vector,
    )
    if (vectors.every((vector) => vector !== null)) optionVectors.set(given.name, vectors)
  }
  const later: StageReadings[] = []
  for (const model of others) {
    const next = new StageReader(context, model, false)
    later.push({ model, rows: await next.readAll(judged, plans, advance), modelVersion: next.modelVersion })
  }
  const firstStage = { model: first, rows, modelVersion: reader.modelVersion }
  return { stages: [firstStage, ...later], empty: empty?.margins ?? new Map(), optionVectors }
}

export class StageReader {
  readonly #context: JobContext
  readonly #model: Model
  readonly #wantsVectors: boolean
  readonly #versions = new Set<string>()

  constructor(context: JobContext, model: Model, wantsVectors: boolean) {
    this.#context = context
    this.#model = model
    this.#wantsVectors = wantsVectors
  }

  get modelVersion(): string {
    const [modelVersion = "", ...others] = this.#versions
    if (others.length > 0)
      throw new Fault(
        "conflict",
        `Cannot teach the set: the model ${this.#model.sku} was replaced while it answered; teach again`,
      )
    return modelVersion
  }

  async readAll(
    examples: readonly Example[],
    plans: readonly Plan[],
    onRead: () => void,
  ): Promise<Map<string, ReadRow>> {
    const rows = await mapConcurrent(examples, { concurrency: 1 }, async (example) => {
      const questions = plans.filter((plan) => plan.examples.has(example.id)).map(({ question }) => question)
      const row = await this.read(example.input, questions)
      onRead()
      return [example.id, row] as const
    })
    return new Map(rows)
  }

  async read(evidence: string, questions: readonly Question[]): Promise<ReadRow> {
    const { deps, caller, signal } = this.#context
    const model = this.#model
    const { branches } = composeClassification({
      wire: "decisions",
      model: model.sku,
      evidence,
      questions,
      questionNames: null,
    })
    const work = { evidence, branches, reading: { vector: this.#wantsVectors } }
    const startedMs = deps.clock.monotonicMs()
    const { margins, reading, usage } = await scoreText(deps, caller, model, work, signal)
    const ms = deps.clock.monotonicMs() - startedMs
    noteVersion(this.#versions, reading)
    // Time differs from run to run, and what is taught must not.
    const tokensCost = Number(costOf(model.prices, { ...usage, executionMs: 0 }))
    return {
      margins: marginsByQuestion(questions, margins),
      vector: reading?.vector ?? null,
      cost: shareCost(tokensCost, evidence, questions, branches),
      ms,
    }
  }
}

/** By bytes: what each part of a request has of its tokens is not told. */
function shareCost(
  cost: number,
  evidence: string,
  questions: readonly Question[],
  branches: readonly Branch[],
): ReadRow["cost"] {
  let start = 0
  const bytes = questions.map((question) => {
    const own = branches.slice(start, start + branchCount(question))
    start += own.length
    return own.reduce((sum, branch) => sum + utf8Bytes(promptText(branch)), 0)
  })
  const evidenceBytes = utf8Bytes(evidence)
  const total = bytes.reduce((sum, own) => sum + own, evidenceBytes)
  const shares = questions.map(
    ({ name }, at) => [name ?? "", (cost * (bytes[at] ?? 0)) / Math.max(1, total)] as const,
  )
  return { evidence: (cost * evidenceBytes) / Math.max(1, total), questions: new Map(shares) }
}

function noteVersion(versions: Set<string>, reading: EvidenceReading | null): void {
  if (reading) versions.add(reading.modelVersion)
}

/** By the name of each. */
export function marginsByQuestion(
  questions: readonly Question[],
  margins: Float64Array,
): Map<string, Float64Array> {
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
