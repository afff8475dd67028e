/** A version of a question set, ready to be asked: its questions, and what is made of their margins. */
import { compileRule, type RuleEvidence, ruleEvidenceLater } from "../../base/evidence-rules.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type QuestionSetContent,
  ruleAnswer,
  type SetQuestion,
} from "../../contract/question-sets/content.ts"
import type { EvidenceReading, ScoreWork } from "../../engine/engine.ts"
import { type Calibration, calibrateMargins } from "../../scoring/calibration.ts"
import { type Taught, loadArtefact } from "../../scoring/teach/apply.ts"
import type { TaughtArtefact, TaughtCascade } from "../../scoring/teach/artefact.ts"
import { featuresLater } from "../../scoring/teach/features.ts"
import { taughtVector } from "../../scoring/teach/question.ts"
import { addVotes, type VotingRule, votesOf } from "../../scoring/teach/rules.ts"
import {
  type AbstentionRule,
  branchCount,
  type Classification,
  composeClassification,
  type Question,
  type Verdict,
  verdictOf,
} from "../classification/classification.ts"

export interface AskedQuestion extends AbstentionRule {
  readonly question: Question
  readonly calibration: Calibration | null
  readonly taught: LoadedArtefact | null
  /** What was fitted to the stages of a cascade. */
  readonly cascade: TaughtCascade | null
  readonly rules: readonly AskedRule[]
}

interface LoadedArtefact {
  readonly modelVersion: string
  readonly taught: Taught
  /** Of the rules, as labels weighed them. */
  readonly ruleWeights: readonly number[]
}

export interface AskedVersion {
  readonly setId: string
  readonly setName: string
  readonly number: number
  readonly hash: string
  readonly model: string
  /** None: the set calibrates the questions that a request brings. */
  readonly questions: readonly AskedQuestion[]
  readonly calibration: Calibration | null
  /** Versions of models that its questions were taught on, the most frequent first. */
  readonly taughtOn: readonly string[]
}

/** `artefacts` are those that the content names, by hash. */
export function compileVersion(
  identity: Pick<AskedVersion, "setId" | "setName" | "number" | "hash">,
  content: QuestionSetContent,
  artefacts: ReadonlyMap<string, TaughtArtefact>,
): AskedVersion {
  const { model, calibration } = content
  const questions = content.questions.map((question): AskedQuestion => {
    const asked = toQuestion(question)
    const named = question.artefact ? artefacts.get(question.artefact) : undefined
    const artefact = named && isTaughtFor(asked, named) ? named : null
    return {
      question: asked,
      threshold: question.threshold,
      below: question.below,
      calibration: question.calibration ?? calibration,
      taught: artefact && {
        modelVersion: artefact.modelVersion,
        taught: loadArtefact(artefact),
        ruleWeights: (artefact.rules ?? []).map(({ weight }) => weight),
      },
      cascade: artefact?.cascade ?? null,
      rules: rulesOf(question, optionNames(asked).length),
    }
  })
  return { ...identity, model, questions, calibration, taughtOn: taughtOn(questions) }
}

function taughtOn(questions: readonly AskedQuestion[]): string[] {
  const versions = questions.flatMap(({ taught }) => taught?.modelVersion ?? [])
  const counted = [...Map.groupBy(versions, (version) => version)]
  return counted.toSorted(([, a], [, b]) => b.length - a.length).map(([version]) => version)
}

/** A version may name what was taught before the options changed: it would move the answers of others. */
function isTaughtFor(question: Question, { kind, options }: TaughtArtefact): boolean {
  const names = optionNames(question)
  return (
    kind === question.type &&
    names.length === options.length &&
    names.every((name, at) => name === options[at])
  )
}

/** What the answers are called in an artefact. */
export function optionNames(question: Question): string[] {
  switch (question.type) {
    case "predicate":
      return ["yes", "no"]
    case "choice":
      return question.options.map(({ value }) => String(value))
    case "score":
      return question.levels.map(({ label }) => label)
  }
}

export function toQuestion(given: SetQuestion): Question {
  const stem = { name: given.name, path: `question ${given.name}`, instructions: given.instructions }
  switch (given.type) {
    case "predicate":
      return { type: "predicate", ...stem, yesMeans: "", noMeans: "" }
    case "choice":
      return {
        type: "choice",
        ...stem,
        options: given.choices.map(({ value, description }) => ({ value, description: description ?? "" })),
      }
    case "score":
      return {
        type: "score",
        ...stem,
        levels: given.levels.map(({ label, description }) => ({ label, description: description ?? "" })),
      }
  }
}

/** What a request asks of a version: all of its questions, some by name, or questions of the request's own. */
interface SetQuestions {
  readonly questions: readonly AskedQuestion[]
  readonly classification: Classification
  /** What the engine is asked for beside the margins. */
  readonly reading: ScoreWork["reading"]
}

export function selectQuestions(version: AskedVersion, request: Classification): SetQuestions {
  const asked = version.questions.length === 0 ? ownQuestions(version, request) : named(version, request)
  const { wire, model, evidence } = request
  const questions = asked.map(({ question }) => question)
  const taught = asked.flatMap((one) => one.taught ?? [])
  return {
    questions: asked,
    classification: composeClassification({ wire, model, evidence, questions, questionNames: null }),
    reading: taught.length > 0 ? { vector: taught.some((one) => one.taught.needsVector) } : undefined,
  }
}

function ownQuestions({ setName, calibration }: AskedVersion, request: Classification): AskedQuestion[] {
  if (request.questionNames?.[0] !== undefined) throw noSuchQuestion(setName, request.questionNames[0])
  return request.questions.map((question) => ({
    question,
    threshold: null,
    below: "abstain",
    calibration,
    taught: null,
    cascade: null,
    rules: [],
  }))
}

function named(
  version: AskedVersion,
  { questions, questionNames }: Classification,
): readonly AskedQuestion[] {
  if (questions.length > 0)
    throw new Fault(
      "invalid_request",
      `Cannot classify: the question set ${version.setName} has questions of its own; name them or send none`,
      { param: "questions" },
    )
  const names = questionNames ?? []
  if (names.length === 0) return version.questions
  return names.map((name) => {
    const found = version.questions.find(({ question }) => question.name === name)
    if (!found) throw noSuchQuestion(version.setName, name)
    return found
  })
}

const noSuchQuestion = (set: string, name: string): Fault =>
  new Fault(
    "invalid_request",
    `Cannot classify: the question set ${set} has no question ${JSON.stringify(name.slice(0, 64))}`,
    { param: "questions" },
  )

interface SetAnswer {
  /** Of all branches, calibrated. */
  readonly margins: Float64Array
  readonly verdicts: readonly Verdict[]
}

interface ReadEvidence {
  readonly text: string
  /** What the engine says of it; null where it says nothing. */
  readonly reading: EvidenceReading | null
}

export function answerSet(
  asked: readonly AskedQuestion[],
  margins: Float64Array,
  { text, reading }: ReadEvidence,
): SetAnswer {
  const calibrated = new Float64Array(margins.length)
  const features = featuresLater(text)
  const evidence = ruleEvidenceLater(text)
  const apply = (taught: Taught, own: Float64Array): Float64Array => {
    const vector = reading?.vector ? taughtVector(taught.kind, reading.vector) : null
    return taught.apply(own, { features, vector })
  }
  let start = 0
  const verdicts = asked.map((one) => {
    const end = start + branchCount(one.question)
    const loaded = usable(one, reading)
    const taught = loaded?.taught ?? null
    const given = margins.subarray(start, end)
    const own = voteRules(one.question, one.rules, taught ? given : calibrateOwn(given, one.calibration), {
      evidence,
      weights: loaded?.ruleWeights ?? null,
    })
    const read = taught ? apply(taught, own) : own
    calibrated.set(read, start)
    start = end
    return verdictOf(one, read, taught !== null)
  })
  return { margins: calibrated, verdicts }
}

/** What was fitted to one version of a model says nothing about another. */
function usable({ taught }: AskedQuestion, reading: EvidenceReading | null): LoadedArtefact | null {
  if (!taught || taught.modelVersion !== reading?.modelVersion) return null
  return taught.taught.needsVector && !reading.vector ? null : taught
}

const calibrateOwn = (margins: Float64Array, calibration: Calibration | null): Float64Array =>
  calibration ? calibrateMargins(margins, calibration) : margins

/** A rule of a question, ready to be asked of evidence. */
interface AskedRule extends VotingRule {
  isMet(evidence: RuleEvidence): boolean
}

export function rulesOf(question: SetQuestion, count: number): AskedRule[] {
  return (question.rules ?? []).map((rule) => {
    const answer = ruleAnswer(question, rule)
    const isFor = (option: number): boolean =>
      option === answer ||
      (rule.compare === "at_least" && option > answer) ||
      (rule.compare === "at_most" && option < answer)
    return {
      speaksFor: Array.from({ length: count }, (_, option) => isFor(option)),
      weight: rule.weight,
      isMet: compileRule(rule.when),
    }
  })
}

/** Which of the rules a text meets. */
export function metBy(rules: readonly AskedRule[], text: string): boolean[] {
  const evidence = ruleEvidenceLater(text)
  return rules.map((rule) => rule.isMet(evidence()))
}

/** Margins with what the rules say of the evidence. */
export function voteRules(
  { type }: Pick<Question, "type">,
  rules: readonly AskedRule[],
  margins: Float64Array,
  { evidence, weights }: { evidence: () => RuleEvidence; weights: readonly number[] | null },
): Float64Array {
  if (rules.length === 0) return margins
  const met = rules.map((rule) => rule.isMet(evidence()))
  if (!met.includes(true)) return margins
  return addVotes(type, margins, votesOf(rules, weights ?? rules.map(({ weight }) => weight), met))
}
