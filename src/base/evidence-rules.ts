/**
 * Rules over the fields of evidence, in CEL. What a rule may use is bounded so that it runs on the thread that answers requests: no
 * loops, no regular expressions, few functions that walk through a text or make a longer one, and texts and lists of bounded length.
 * Fifty rules of the slowest kind take some 0.1 s.
 */
import { type CelInput, CelScalar, celEnv, parse, plan } from "@bufbuild/cel"
import { strings } from "@bufbuild/cel/ext"
import type { Expr } from "@bufbuild/cel-spec/cel/expr/syntax_pb.js"
import { CelMistake, checkTypes } from "./cel-check.ts"

/** Of evidence; what is longer has no fields, and its text is cut. */
const jsonCharactersMax = 64 * 1024
/** Of the evidence, and of each text among its fields. */
const textCharactersMax = 8_000
/** Of the fields of JSON, lists and objects counted with what they hold; what comes after them is not there. */
const valuesMax = 1_000
const fieldsMax = 64
const depthMax = 8
const fieldLine = /^[ \t]*([\p{L}\p{N}][\p{L}\p{N} _-]{0,31})[ \t]*[:=][ \t]*(\S.{0,255})$/gmu

const environment = celEnv({
  variables: { input: CelScalar.DYN, text: CelScalar.STRING },
  funcs: strings,
})

const functions = new Set([
  ..."_&&_ _||_ !_ _==_ _!=_ _<_ _<=_ _>_ _>=_ @in _+_ _-_ _*_ _/_ _%_ -_ _[_] _?_:_".split(" "),
  ..."contains startsWith endsWith size lowerAscii upperAscii trim int double string bool".split(" "),
])

/** Each call takes some 50 ns for each character of a text. */
const walking = new Set("_+_ size lowerAscii upperAscii trim".split(" "))
const walkingMax = 8

export interface RuleEvidence {
  /** The fields of JSON evidence, or of lines such as `Tier: gold`. */
  readonly input: CelInput
  readonly text: string
}

/** What is wrong with a rule, in a clause for people; null: nothing. */
export function findRuleFlaw(rule: string): string | null {
  try {
    compileRule(rule)
    return null
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^<input>:/, "") : "it cannot be read"
  }
}

/** Throws Error with a clause for people. A rule that fails for some evidence, a field that is not there say, is not met by it. */
export function compileRule(rule: string): (evidence: RuleEvidence) => boolean {
  const parsed = parse(rule)
  refuseUnbounded(parsed.expr)
  const variables = { input: "map", text: "string" }
  const type = checkTypes(parsed.expr, { functions: environment.funcs, variables })
  if (type !== "bool" && type !== "dyn") throw new Error(`it answers a ${type}, not true or false`)
  const run = plan(environment, parsed)
  return ({ input, text }) => {
    try {
      return run({ input, text }) === true
    } catch {
      return false
    }
  }
}

/** Not recursive where the tree is: the check of types bounds its depth, after this. */
function refuseUnbounded(expr: Expr | undefined): void {
  const left: (Expr | undefined)[] = [expr]
  let walks = 0
  for (let one = left.pop(); one; one = left.pop()) {
    const { exprKind } = one
    switch (exprKind.case) {
      case "callExpr":
        if (!functions.has(exprKind.value.function))
          throw new CelMistake(`the function ${exprKind.value.function} cannot be used in a rule`, one.id)
        if (walking.has(exprKind.value.function) && ++walks > walkingMax)
          throw new CelMistake(
            `more than ${walkingMax} calls of +, size, lowerAscii, upperAscii and trim`,
            one.id,
          )
        left.push(...exprKind.value.args, ...(exprKind.value.target ? [exprKind.value.target] : []))
        break
      case "selectExpr":
        if (exprKind.value.operand) left.push(exprKind.value.operand)
        break
      case "listExpr":
        left.push(...exprKind.value.elements)
        break
      case "comprehensionExpr":
        throw new CelMistake("loops cannot be used in a rule", one.id)
      case "structExpr":
        throw new CelMistake("maps cannot be written in a rule", one.id)
      case "constExpr":
      case "identExpr":
      case undefined:
        break
    }
  }
}

/** Read when it is first asked for, once for all rules of a set. */
export function ruleEvidenceLater(text: string): () => RuleEvidence {
  let read: RuleEvidence | undefined
  return () => (read ??= { input: fieldsOf(text), text: text.slice(0, textCharactersMax) })
}

function fieldsOf(text: string): CelInput {
  if (text.length > jsonCharactersMax) return new Map()
  if (!/^\s*\{/.test(text)) return lineFields(text)
  try {
    return toCel(JSON.parse(text), 0, { values: valuesMax })
  } catch {
    return lineFields(text)
  }
}

const lineFields = (text: string): CelInput =>
  new Map(
    [...text.slice(0, textCharactersMax).matchAll(fieldLine)]
      .slice(0, fieldsMax)
      .map(([, name = "", value = ""]) => [name.trim(), value.trim()]),
  )

function toCel(value: unknown, depth: number, left: { values: number }): CelInput {
  left.values--
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value === "string") return value.slice(0, textCharactersMax)
  if (typeof value === "boolean") return value
  if (typeof value !== "object" || value === null || depth >= depthMax) return null
  const member = (one: unknown): CelInput => toCel(one, depth + 1, left)
  if (Array.isArray(value)) return value.flatMap((one) => (left.values > 0 ? [member(one)] : []))
  const fields = Object.entries(value).flatMap(([name, one]): [string, CelInput][] =>
    left.values > 0 ? [[name, member(one)]] : [],
  )
  return new Map(fields)
}
