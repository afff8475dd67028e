/** Compiles random schemas and checks what their grammars write: shared by the short test and the long one. */
import type { ValidateFunction } from "ajv"
import fc from "fast-check"
import { expect } from "vitest"
import { SchemaError } from "../src/budget.ts"
import { schemaGrammar } from "../src/compile.ts"
import { randomSchema } from "./random-schemas.ts"
import { randomNumbers, sampleText, validatorOf } from "./sampling.ts"

const textsPerSchema = 8
const charactersMax = 120

interface Counts {
  compiled: number
  refused: number
  texts: number
  /** Refer to themselves in a way that ajv does not end with. */
  endless: number
}

/** Every text that is written for a schema is accepted by it; a schema that is not compiled is refused as invalid. */
export function checkRandomSchemas(count: number, seed: number): Counts {
  const counts: Counts = { compiled: 0, refused: 0, texts: 0, endless: 0 }
  const random = randomNumbers(seed)
  for (const schema of fc.sample(randomSchema, { numRuns: count, seed })) {
    let grammar
    try {
      grammar = schemaGrammar(schema, { strict: true })
    } catch (error) {
      expect(error, JSON.stringify(schema)).toBeInstanceOf(SchemaError)
      counts.refused++
      continue
    }
    counts.compiled++
    const validate = validatorOf(schema)
    for (let index = 0; index < textsPerSchema; index++) {
      const text = sampleText(grammar, random, charactersMax)
      const isValid = outcome(validate, JSON.parse(text))
      if (isValid === null) {
        counts.endless++
        break
      }
      counts.texts++
      if (!isValid) expect.fail(`${text} for ${JSON.stringify(schema)}: ${JSON.stringify(validate.errors)}`)
    }
  }
  return counts
}

function outcome(validate: ValidateFunction, value: unknown): boolean | null {
  try {
    return validate(value)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}
