/** Random weights under grammars of random schemas: the full count. */
import { expect, test } from "vitest"
import { drawAnswers } from "./schema-drawing.ts"

const partsCount = 20
const schemasPerPart = 1000

test(`every answer of a model with random weights to ${partsCount * schemasPerPart} random schemas is accepted by ajv`, async () => {
  let answered = 0
  for (let part = 0; part < partsCount; part++) {
    const counts = await drawAnswers(schemasPerPart, 2026 + part * schemasPerPart)
    expect(counts.answered + counts.refused).toBe(schemasPerPart)
    answered += counts.answered
    process.stdout.write(`part ${part + 1} of ${partsCount}, all valid: ${JSON.stringify(counts)}\n`)
  }
  expect(answered).toBeGreaterThan((partsCount * schemasPerPart) / 2)
})
