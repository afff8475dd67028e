/** Random schemas: whatever is written for one is accepted by it. */
import { expect, test } from "vitest"
import { checkRandomSchemas } from "./properties.ts"

test("every text written for 250 random schemas is accepted by ajv", () => {
  const { compiled, refused, texts, endless } = checkRandomSchemas(250, 26)
  expect(compiled + refused).toBe(250)
  // Random keywords often exclude each other; enough of them do not.
  expect(compiled).toBeGreaterThan(125)
  expect(endless).toBeLessThan(10)
  expect(texts).toBeGreaterThanOrEqual((compiled - endless) * 8)
})
