import { expect, test } from "vitest"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import { answerSet, compileVersion } from "./version.ts"

const hash = "a".repeat(64)

/** Doubles the margins, for a choice between these. */
const artefactOf = (options: readonly string[]): TaughtArtefact =>
  // What is read to apply it.
  ({
    kind: "choice",
    options,
    modelVersion: "m/1",
    vectorSize: 0,
    parameters: { temperature: 1, bias: 0, priorWeight: 2, optionBiases: [], weights: "" },
  }) as unknown as TaughtArtefact

function taughtWith(options: readonly string[], values: readonly string[]): boolean | undefined {
  const content: QuestionSetContent = {
    model: "m",
    calibration: null,
    questions: [
      {
        type: "choice",
        name: "team",
        instructions: "Which team?",
        choices: values.map((value) => ({ value })),
        threshold: null,
        below: "abstain",
        target_accuracy: null,
        calibration: null,
        artefact: hash,
      },
    ],
  }
  const identity = { setId: "qs_1", setName: "mail", number: 1, hash: "h" }
  const { questions } = compileVersion(identity, content, new Map([[hash, artefactOf(options)]]))
  const margins = Float64Array.from(values, (_, at) => at)
  return answerSet(questions, margins, { text: "", reading: { vector: null, modelVersion: "m/1" } })
    .verdicts[0]?.isTaught
}

test("what was taught is used for the options that it was taught with, and for no others", () => {
  expect(taughtWith(["a", "b"], ["a", "b"])).toBe(true)
  expect(taughtWith(["a", "b"], ["b", "a"])).toBe(false)
  expect(taughtWith(["a", "b"], ["a", "b", "c"])).toBe(false)
  expect(taughtWith(["a", "b", "c"], ["a", "b"])).toBe(false)
})
