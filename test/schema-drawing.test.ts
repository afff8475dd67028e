/** Random weights under grammars of random schemas: short form. */
import { expect, test } from "vitest"
import { drawAnswers } from "./schema-drawing.ts"

test("every answer of a model with random weights to 200 random schemas is accepted by ajv", async () => {
  const { answered, refused, whole, endless } = await drawAnswers(200, 26)
  expect(answered + refused).toBe(200)
  expect(answered).toBeGreaterThan(100)
  // Some answers end by themselves, others at the limit.
  expect(whole).toBeGreaterThan(20)
  expect(endless).toBeLessThan(10)
}, 300_000)
