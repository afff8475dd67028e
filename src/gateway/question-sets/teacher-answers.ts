/** What larger models answered, as labels that a set can learn from. */
import type { TeacherLabel } from "../../contract/question-sets/examples.ts"
import { uncalibrated } from "../../scoring/calibration.ts"
import { answerConfidence } from "../../scoring/teach/apply.ts"
import { writeLogits } from "../../scoring/teach/logits.ts"
import type { TeacherAnswer } from "../../store/question-sets/teacher-answers.ts"
import type { Question } from "../classification/classification.ts"
import type { StagedAnswers } from "../decision-stages.ts"
import type { SetAnswer } from "./policy.ts"
import { type AskedQuestion, optionNames } from "./version.ts"

interface AnsweredQuestions extends Pick<StagedAnswers<SetAnswer>, "answers" | "answeredBy"> {
  readonly questions: readonly AskedQuestion[]
}

interface AnsweredRequest {
  readonly seqId: string
  readonly version: number
}

/** Those of a stage from `stageMin` on. */
export function teacherAnswers(
  { seqId, version }: AnsweredRequest,
  { questions, answers, answeredBy }: AnsweredQuestions,
  stageMin: number,
): TeacherAnswer[] {
  return questions.flatMap(({ question }, at): TeacherAnswer[] => {
    const [answer, by] = [answers[at], answeredBy[at]]
    if (!answer || !by || by.stage < stageMin) return []
    const { label, confidence } = labelOf(question, answer.ownMargins)
    return [
      {
        seqId,
        question: question.name ?? "",
        version,
        model: by.model.sku,
        label: JSON.stringify(label),
        confidence,
        costTicks: by.costTicks,
      },
    ]
  })
}

/** The most probable answer, as examples have it. */
export function labelOf(
  question: Question,
  margins: Float64Array,
): Pick<TeacherLabel, "label"> & { readonly confidence: number } {
  const logits = new Float64Array(optionNames(question).length)
  writeLogits(question.type, margins, uncalibrated, logits)
  const best = logits.indexOf(Math.max(...logits))
  const confidence = answerConfidence(question.type, margins)
  switch (question.type) {
    case "predicate":
      return { label: best === 0, confidence }
    case "choice":
      return { label: question.options[best]?.value ?? "", confidence }
    case "score":
      return { label: best, confidence }
  }
}
