/** Random weights under grammars of random schemas: short form. */
import { expect, test } from "vitest"
import { drawAnswers } from "./schema-drawing.ts"

test("every answer of a model with random weights to 100 random schemas is accepted by ajv", async () => {
  const { answered, refused, whole, endless } = await drawAnswers(100, 26)
  expect(answered + refused).toBe(100)
  expect(answered).toBeGreaterThan(50)
  // Some answers end by themselves, others at the limit.
  expect(whole).toBeGreaterThan(10)
  expect(endless).toBeLessThan(5)
})
