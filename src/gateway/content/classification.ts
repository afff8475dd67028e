/** What is kept of a classification: its questions and its verdicts. */
import type { ContentAnswer, ContentQuestion } from "../../contract/content.ts"
import { type Classification, type Question, marginsOf } from "../classification/classification.ts"
import { type Verdict, verdictOf } from "../classification/verdict.ts"
import type { AskedContent, ContentEnd } from "./keeper.ts"

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
  const asked = questions.map((question) => ({ question, threshold: null, below: "answer" as const }))
  const at = questions.map((_, index) => index)
  const own = marginsOf(questions, at, margins)
  const verdicts = asked.map((one, index) => verdictOf(one, own[index] as Float64Array, false))
  return { model, questionSet: null, answers: contentAnswers(verdicts, asked), review: null, output: null }
}

export const contentAnswers = (
  verdicts: readonly Verdict[],
  questions: readonly { readonly question: Question; readonly threshold: number | null }[],
): ContentAnswer[] =>
  verdicts.map((verdict, at) => ({
    name: questions[at]?.question.name ?? null,
    verdict: verdict.value,
    abstained: verdict.isAbstention,
    confidence: verdict.confidence,
    threshold: questions[at]?.threshold ?? null,
  }))
