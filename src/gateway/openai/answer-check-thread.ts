/** The thread that checks answers against JSON schemas. */
import { Ajv, type Options } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import { servePeer } from "../../base/peer/connection.ts"
import { accepts } from "../../engine/generate/schema/automaton.ts"
import { Budget } from "../../engine/generate/schema/budget.ts"
import { patternOf } from "../../engine/generate/schema/pattern.ts"
import type { CheckJob, CheckService } from "./answer-check.ts"

servePeer<CheckService>({ check: async (job) => violation(job) })

const options: Options = {
  strict: false,
  logger: false,
  validateSchema: false,
  validateFormats: false,
  // Fractions that are multiples of each other in decimals are often not so in binary.
  multipleOfPrecision: 9,
  code: { regExp: Object.assign(matcher, { code: "matcher" }) },
}

/** Patterns are matched in time that grows with the text alone, whoever wrote them. */
function matcher(pattern: string): { test(text: string): boolean; toString(): string } {
  const { automaton } = patternOf(pattern, new Budget())
  return { test: (text) => accepts(automaton, text), toString: () => pattern }
}

/** What is wrong with the text; null when the schema accepts it. */
function violation({ schema, text }: CheckJob): string | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return "it is not JSON"
  }
  try {
    const validate = compile(schema)
    if (validate(value)) return null
    const [first] = validate.errors ?? []
    return `${first?.instancePath || "it"} ${first?.message ?? "is not accepted"}`
  } catch {
    return "the schema cannot be checked"
  }
}

/** Lists of items are of the older drafts, which the newer ones refuse. */
function compile(schema: CheckJob["schema"]) {
  try {
    return new Ajv2020(options).compile(schema)
  } catch {
    return new Ajv(options).compile(schema)
  }
}
