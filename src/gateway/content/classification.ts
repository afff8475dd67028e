/** What is kept of a classification: its questions, its verdicts, and the answers that people should look at. */
import type { ContentAnswer, ContentQuestion } from "../../contract/content.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { fitsUtf8, isBlank } from "../../contract/decisions.ts"
import type { ReviewRequest } from "../../store/content/record.ts"
import type { Classification, Question } from "../classification/classification.ts"
import type { FoundSet } from "../question-sets/sets.ts"
import { type AskedQuestion, type Verdict, answerSet } from "../question-sets/version.ts"
import type { AskedContent, ContentEnd } from "./keeper.ts"
import { isSampled } from "./sample.ts"

/** What was asked, as it is kept. */
export const askedContent = ({
  evidence,
  questions,
}: Pick<Classification, "evidence" | "questions">): AskedContent => ({
  evidence,
  questions: contentQuestions(questions),
  input: null,
})

const contentQuestions = (questions: readonly Question[]): ContentQuestion[] =>
  questions.map((question) => ({
    name: question.name,
    type: question.type,
    instructions: question.instructions,
    options: optionsOf(question),
  }))

function optionsOf(question: Question): ContentQuestion["options"] {
  switch (question.type) {
    case "predicate":
      return []
    case "choice":
      return question.options.map(({ value, description }) => ({ value, description }))
    case "score":
      return question.levels.map(({ label, description }, level) => ({
        value: level,
        description: description === "" ? label : `${label}: ${description}`,
      }))
  }
}

/** The verdicts of questions that no set asked: the most probable answers. */
export function plainEnd(model: string, questions: readonly Question[], margins: Float64Array): ContentEnd {
  const asked = questions.map((question) => ({
    question,
    threshold: null,
    below: "abstain" as const,
    calibration: null,
    taught: null,
    cascade: null,
  }))
  const { verdicts } = answerSet(asked, margins, null)
  return { model, questionSet: null, answers: answersOf(verdicts, asked), review: null, output: null }
}

interface SetAnswered {
  readonly found: FoundSet
  readonly sequenceId: string
  readonly evidence: string
  readonly questions: readonly AskedQuestion[]
  readonly verdicts: readonly Verdict[]
}

export function setEnd(answered: SetAnswered): ContentEnd {
  const { found, questions, verdicts } = answered
  const { setId, setName, number, model } = found.version
  return {
    model,
    questionSet: { id: setId, name: setName, version: number },
    answers: answersOf(verdicts, questions),
    review: reviewOf(answered),
    output: null,
  }
}

const answersOf = (verdicts: readonly Verdict[], questions: readonly AskedQuestion[]): ContentAnswer[] =>
  verdicts.map((verdict, at) => ({
    name: questions[at]?.question.name ?? null,
    verdict: verdict.value,
    abstained: verdict.isAbstention,
    confidence: verdict.confidence,
    threshold: questions[at]?.threshold ?? null,
  }))

/** Null where nothing is doubtful and the sample leaves it out. */
function reviewOf({ found, sequenceId, evidence, questions, verdicts }: SetAnswered): ReviewRequest | null {
  const { version, reviewSampleRate } = found
  // A label becomes an example, which must be one.
  if (version.questions.length === 0 || !isExample(evidence)) return null
  const items = verdicts.flatMap(({ name, isAbstention, confidence }, at): ReviewRequest["items"] => {
    const threshold = questions[at]?.threshold ?? null
    if (isAbstention) return [{ question: name, reason: "abstained" }]
    if (threshold !== null && confidence < threshold) return [{ question: name, reason: "low_confidence" }]
    return isSampled("audit", `${sequenceId} ${name}`, reviewSampleRate)
      ? [{ question: name, reason: "audit" }]
      : []
  })
  return items.length === 0 ? null : { set_id: version.setId, version: version.number, items }
}

export const isExample = (evidence: string): boolean =>
  !isBlank(evidence) && !evidence.includes("\0") && fitsUtf8(evidence, questionSetLimits.inputBytesMax)
