/** Checks answers against JSON schemas, in a thread: the schemas are the callers'. */
import { Script, createContext } from "node:vm"
import { Budget, accepts, patternOf } from "@umpire/schema-grammar"
import { Ajv, type Options, type ValidateFunction } from "ajv"
import AjvDraft04 from "ajv-draft-04"
import { Ajv2020 } from "ajv/dist/2020.js"
import { parsedJson } from "../../base/json.ts"
import type { CheckJob, CheckProblem } from "./answer-check.ts"

/** References that double at each step make a small schema take for ever. Of wall time: a large schema takes a second of an idle processor. */
const CHECK_MS_MAX = 5000
const call = new Script("check()")

const options: Options = {
  strict: false,
  logger: false,
  validateSchema: false,
  validateFormats: false,
  // Fractions that are multiples of each other in decimals are often not so in binary.
  multipleOfPrecision: 9,
  code: { regExp: Object.assign(matcher, { code: "matcher" }) },
}

/** Patterns are matched in time linear in the text, whatever the pattern. */
function matcher(pattern: string): { test(text: string): boolean; toString(): string } {
  const { automaton } = patternOf(pattern, new Budget())
  return { test: (text) => accepts(automaton, text), toString: () => pattern }
}

/** What is wrong with the text; null when the schema accepts it. */
export function answerProblem({ schema, text }: CheckJob): CheckProblem | null {
  const value = parsedJson(text)
  if (value === undefined) return violation("it is not JSON")
  const check = (): CheckProblem | null => {
    const validate = compile(schema)
    if (validate(value)) return null
    const [first] = validate.errors ?? []
    return violation(`${first?.instancePath || "it"} ${first?.message ?? "is not accepted"}`)
  }
  try {
    // What the script calls ends with it; it answers what `check` answers.
    return call.runInContext(createContext({ check }), { timeout: CHECK_MS_MAX }) as CheckProblem | null
  } catch (error) {
    // An error of the context's own realm, which is no instance of this one's Error.
    const isLate = Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
    const why = isLate
      ? `the check takes more than ${CHECK_MS_MAX} ms`
      : "the validator does not take the schema"
    return { isViolation: false, text: why }
  }
}

const violation = (text: string): CheckProblem => ({ isViolation: true, text })

/** Lists of items and limits that are booleans are of the older drafts, which the newer ones refuse. */
const validators = [Ajv2020, Ajv, AjvDraft04.default] as const

function compile(schema: CheckJob["schema"]): ValidateFunction {
  let refusal: unknown
  for (const Validator of validators)
    try {
      return new Validator(options).compile(schema)
    } catch (error) {
      refusal ??= error
    }
  throw refusal
}
