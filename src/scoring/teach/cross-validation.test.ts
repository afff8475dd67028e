import { describe, expect, test } from "vitest"
import type { Form } from "./artefact.ts"
import { type Scores, chooseCandidate } from "./cross-validation.ts"

const candidates = (["zero_shot", "temperature", "option_bias", "head", "head"] as const).map(
  (form: Form) => ({
    form,
    strength: 0,
  }),
)
const ROWS = 100

/** Scores of a form: its losses around a mean, and which of the rows that zero-shot gets wrong it gets right, and the reverse. */
function scores(loss: number, { won = 0, lost = 0 } = {}): Scores {
  return {
    losses: Float64Array.from({ length: ROWS }, (_, row) => loss + (row % 2 === 0 ? 0.1 : -0.1)),
    // Zero-shot gets the first half right.
    hits: Float64Array.from({ length: ROWS }, (_, row) => {
      if (row < ROWS / 2) return row < lost ? 0 : 1
      return row < ROWS / 2 + won ? 1 : 0
    }),
  }
}
const chosenForm = (...given: readonly Scores[]): string =>
  `${candidates[chooseCandidate(candidates, given)]?.form}`

/** A head that changes so many answers to right and to wrong ones, and whose loss is less on most rows, but not surely. */
function chosenOver(won: number, lost: number): string {
  const head: Scores = {
    ...scores(0, { won, lost }),
    losses: Float64Array.from({ length: ROWS }, (_, row) => (row % 20 === 0 ? 4 : 0.3)),
  }
  return chosenForm(scores(0.7), scores(0.6), scores(0.6), head, head)
}

/** The same where its loss is surely less. */
function chosenSurely(won: number, lost: number): string {
  const head = scores(0.2, { won, lost })
  return chosenForm(scores(0.7), scores(0.6), scores(0.6), head, head)
}

describe("the form that is chosen", () => {
  test("is the temperature as soon as it lowers the loss, for it changes no answer", () => {
    const none = scores(1)
    expect(chosenForm(scores(0.7), scores(0.699), none, none, none)).toBe("temperature")
    expect(chosenForm(scores(0.7), scores(0.7), none, none, none)).toBe("zero_shot")
  })

  test("changes answers only where significantly more of them become right", () => {
    // Of three changed answers all are right with probability 1/8 by chance; of two, 1/4.
    expect(chosenOver(3, 0)).toBe("head")
    expect(chosenOver(2, 0)).toBe("temperature")
    // 22/128 and 37/256.
    expect(chosenOver(5, 2)).toBe("temperature")
    expect(chosenOver(6, 2)).toBe("head")
    expect(chosenOver(5, 10)).toBe("temperature")
  })

  test("changes answers where its loss is surely less, if more of them become right", () => {
    expect(chosenSurely(1, 0)).toBe("head")
    expect(chosenSurely(5, 4)).toBe("head")
    expect(chosenSurely(4, 4)).toBe("temperature")
    expect(chosenSurely(4, 5)).toBe("temperature")
  })

  test("is none that could change answers and was not seen to change one for the better", () => {
    expect(chosenForm(scores(0.7), scores(0.6), scores(0.6), scores(0.6), scores(0.2))).toBe("temperature")
  })

  test("is the simplest within one standard error of the best", () => {
    const better = { won: 20 }
    const noisy: Scores = {
      ...scores(0, better),
      losses: Float64Array.from({ length: ROWS }, (_, row) => (row % 2 === 0 ? 0.9 : -0.1)),
    }
    const biased = scores(0.42, better)
    expect(chosenForm(scores(0.7), scores(0.6), biased, scores(0.41, better), noisy)).toBe("option_bias")
    expect(chosenForm(scores(0.7), scores(0.6), biased, scores(0.3, better), noisy)).toBe("head")
  })

  test("has of its strengths the one of the least loss", () => {
    const better = { won: 20 }
    const given = [scores(0.7), scores(0.6), scores(0.6), scores(0.3, better), scores(0.2, better)]
    expect(chooseCandidate(candidates, given)).toBe(4)
  })
})
