import { expect, test } from "vitest"
import { readStages } from "./stages.ts"

test("stages are read from their header", () => {
  const stages = readStages(
    "small;result=success;questions=3;tokens=100;ms=4.1, gro%C3%9F;result=success;questions=1;tokens=50;ms=120",
  )
  expect(stages).toEqual([
    { model: "small", result: "success", questions: 3, tokens: 100 },
    { model: "groß", result: "success", questions: 1, tokens: 50 },
  ])
  expect(readStages(null)).toEqual([])
})
