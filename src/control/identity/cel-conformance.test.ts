/** The CEL specification's own conformance cases, as far as they concern policies over claims. */
import {
  type CelInput,
  celUint,
  isCelError,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  parse,
  plan,
} from "@bufbuild/cel"
import { isDeepStrictEqual } from "node:util"
import type { Value } from "@bufbuild/cel-spec/cel/expr/value_pb.js"
import { type IncrementalTest, getConformanceSuite } from "@bufbuild/cel-spec/testdata/tests.js"
import { expect, test } from "vitest"
import { CelMistake, checkTypes } from "../../base/cel-check.ts"
import { environmentWith } from "./cel.ts"

/**
 * Claims are JSON, and policies have the standard library and the string extension: protobuf messages and enums, and
 * the other extensions, are not part of them.
 */
const suites = [
  "basic",
  "comparisons",
  "conversions",
  "fp_math",
  "integer_math",
  "lists",
  "logic",
  "macros",
  "parse",
  "plumbing",
  "string",
  "string_ext",
  "timestamps",
]

interface Case {
  readonly name: string
  readonly given: IncrementalTest["original"]
}

function casesOf(name: string): Case[] {
  const suite = getConformanceSuite().suites.find((one) => one.name === name)
  const sections = suite?.suites ?? []
  return sections.flatMap((section) =>
    section.tests.map(({ original }) => ({ name: `${section.name}: ${original.name}`, given: original })),
  )
}

/** Whether a case is about messages of a schema, a container of names, or the checker alone. */
function isAboutMessages({ given }: Case): boolean {
  const text = JSON.stringify(given, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  )
  return (
    given.container !== "" ||
    given.checkOnly ||
    given.disableMacros ||
    given.typeEnv.some(({ declKind }) => declKind.case === "function") ||
    text.includes("TestAllTypes") ||
    text.includes("NestedTestAllTypes") ||
    /"(objectValue|enumValue|typeUrl)"|google\.protobuf\.(Int|UInt|Bool|String|Bytes|Double|Float|Value|Struct|List|Any|Null)/.test(
      text,
    )
  )
}

test.each(suites)("%s", (name) => {
  const applying = casesOf(name).filter((one) => !isAboutMessages(one))
  expect(applying.length).toBeGreaterThan(0)
  const wrong = applying.filter(({ given }) => !isDeepStrictEqual(evaluate(given), expectedOutcome(given)))
  expect(wrong.map((one) => `${one.name}: ${one.given.expr}`)).toEqual([])
})

/** Which error it is, the specification leaves open. */
const failed = { failed: true } as const
type Outcome = { value: unknown } | typeof failed

/** As a policy would: checked first, then run. */
function evaluate(given: Case["given"]): Outcome {
  const bindings = Object.fromEntries(
    Object.entries(given.bindings).map(([name, { kind }]) => [
      name,
      kind.case === "value" ? toInput(kind.value) : null,
    ]),
  )
  const declared = given.typeEnv.map(({ name }) => name)
  const names = [...new Set([...Object.keys(bindings), ...declared])]
  const environment = environmentWith(...names)
  try {
    const parsed = parse(given.expr)
    if (!given.disableCheck)
      checkTypes(parsed.expr, {
        functions: environment.funcs,
        variables: Object.fromEntries(names.map((one) => [one, "dyn"])),
      })
    const value = plan(environment, parsed)(bindings)
    return isCelError(value) ? failed : { value: comparable(value) }
  } catch (error) {
    if (error instanceof CelMistake || error instanceof Error) return failed
    throw error
  }
}

function expectedOutcome(given: Case["given"]): Outcome {
  return given.resultMatcher.case === "evalError" ? failed : { value: expectedOf(given) }
}

/** A case without a matcher expects true. */
function expectedOf({ resultMatcher }: Case["given"]): unknown {
  if (resultMatcher.case === "value") return comparable(toInput(resultMatcher.value))
  if (resultMatcher.case === "typedResult" && resultMatcher.value.result)
    return comparable(toInput(resultMatcher.value.result))
  return comparable(true)
}

function toInput({ kind }: Value): CelInput {
  switch (kind.case) {
    case "uint64Value":
      return celUint(kind.value)
    case "nullValue":
      return null
    case "listValue":
      return kind.value.values.map(toInput)
    case "mapValue":
      return new Map(
        kind.value.entries.map(({ key, value }) => [
          // Every entry of the suite has both.
          toInput(key as Value) as string,
          toInput(value as Value),
        ]),
      )
    case "typeValue":
      return { typeName: kind.value }
    case "boolValue":
    case "bytesValue":
    case "doubleValue":
    case "int64Value":
    case "stringValue":
      return kind.value
    default:
      throw new Error(`a case holds a ${kind.case}`)
  }
}

/** Values of different types never look the same, which `toEqual` alone would not see. */
function comparable(value: unknown): unknown {
  if (typeof value === "bigint") return `int ${value}`
  if (isCelUint(value)) return `uint ${value.value}`
  if (typeof value === "number") return `double ${Object.is(value, -0) ? "0" : value}`
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`
  if (isCelType(value)) return `type ${value.name}`
  if (typeof value === "object" && value !== null && "typeName" in value)
    return `type ${String(value.typeName)}`
  if (isCelList(value)) return [...value].map(comparable)
  if (Array.isArray(value)) return value.map(comparable)
  if (isCelMap(value) || value instanceof Map)
    return new Map([...value].map(([key, member]) => [comparable(key), comparable(member)]))
  return value
}
