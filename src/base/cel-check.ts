/** Checks a parsed CEL expression before it is ever run: names, functions, types, and how deeply it nests. */
import type { CelFunc, CelEnv } from "@bufbuild/cel"
import type { Expr, Expr_Call, Expr_Comprehension } from "@bufbuild/cel-spec/cel/expr/syntax_pb.js"

/** Deeper trees are not written by hand, and would overflow the stack of a recursive walk. */
export const nestingMax = 250
/** Each level multiplies the work; a list of lists of lists is already more than claims hold. */
const comprehensionsMax = 3

/** What a value is, as far as it is known before it exists: the runtime name of its type, or `dyn`. */
type TypeName = string

interface CheckScope {
  readonly functions: CelEnv["funcs"]
  readonly variables: Readonly<Record<string, TypeName>>
  /** Fields that a variable is known to have; a variable that is not listed may have any. */
  readonly fields?: Readonly<Record<string, readonly string[]>>
}

/** An expression that cannot be right, and the node at fault. */
export class CelMistake extends Error {
  override readonly name = "CelMistake"
  readonly exprId: bigint

  constructor(message: string, exprId: bigint) {
    super(message)
    this.exprId = exprId
  }
}

/** Answers the type of the whole expression. */
export function checkTypes(expr: Expr, scope: CheckScope): TypeName {
  return new Check(scope).typeOf(expr, scope.variables, { nesting: 0, comprehensions: 0 })
}

interface Depth {
  readonly nesting: number
  readonly comprehensions: number
}

type Variables = Readonly<Record<string, TypeName>>

const typeNames = new Set([
  ..."bool bytes double dyn int list map null_type string type uint".split(" "),
  "google.protobuf.Duration",
  "google.protobuf.Timestamp",
])

class Check {
  readonly #scope: CheckScope

  constructor(scope: CheckScope) {
    this.#scope = scope
  }

  typeOf(expr: Expr, variables: Variables, above: Depth): TypeName {
    const depth = { ...above, nesting: above.nesting + 1 }
    if (depth.nesting > nestingMax) throw new CelMistake(`nested more than ${nestingMax} deep`, expr.id)
    const { exprKind } = expr
    switch (exprKind.case) {
      case "constExpr":
        return constantTypes[exprKind.value.constantKind.case ?? ""] ?? "dyn"
      case "identExpr":
        return this.#name(exprKind.value.name, expr, variables)
      case "selectExpr":
        return this.#select(expr, variables, depth)
      case "callExpr":
        return this.#call(exprKind.value, expr, { variables, depth })
      case "listExpr":
        for (const element of exprKind.value.elements) this.typeOf(element, variables, depth)
        return "list"
      case "structExpr":
        if (exprKind.value.messageName !== "")
          throw new CelMistake(`there is no message type ${exprKind.value.messageName}`, expr.id)
        for (const { keyKind, value } of exprKind.value.entries) {
          if (keyKind.case === "mapKey") this.typeOf(keyKind.value, variables, depth)
          if (value) this.typeOf(value, variables, depth)
        }
        return "map"
      case "comprehensionExpr":
        return this.#comprehension(exprKind.value, expr, { variables, above: depth })
      default:
        throw new CelMistake("this form is not supported", expr.id)
    }
  }

  #name(name: string, expr: Expr, variables: Variables): TypeName {
    const known = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (known !== undefined) return known
    if (typeNames.has(name)) return "type"
    const inScope = Object.keys(this.#scope.variables).join(" and ")
    throw new CelMistake(`there is no variable ${name}; there is ${inScope}`, expr.id)
  }

  #select(expr: Expr, variables: Variables, depth: Depth): TypeName {
    if (expr.exprKind.case !== "selectExpr") return "dyn"
    const { operand, field, testOnly } = expr.exprKind.value
    const qualified = qualifiedName(expr)
    if (qualified !== null && typeNames.has(qualified)) return "type"
    if (!operand) throw new CelMistake(`there is nothing to take ${field} from`, expr.id)
    const type = this.typeOf(operand, variables, depth)
    if (type !== "map" && type !== "dyn") throw new CelMistake(`a ${type} has no field ${field}`, expr.id)
    this.#checkField(operand, field, expr)
    return testOnly ? "bool" : "dyn"
  }

  #checkField(operand: Expr, field: string, expr: Expr): void {
    if (operand.exprKind.case !== "identExpr") return
    const { name } = operand.exprKind.value
    const fields = this.#scope.fields?.[name]
    if (fields && !fields.includes(field)) throw new CelMistake(`${name} has no field ${field}`, expr.id)
  }

  #call(
    call: Expr_Call,
    expr: Expr,
    { variables, depth }: { readonly variables: Variables; readonly depth: Depth },
  ): TypeName {
    const { target, function: name } = call
    const namespace = target ? qualifiedName(target) : null
    if (namespace !== null && !Object.hasOwn(variables, namespace.split(".")[0] ?? "")) {
      const functions = this.#scope.functions.find(`${namespace}.${name}`)
      if (functions)
        return this.#resolve([...functions], name, {
          target: undefined,
          types: this.#all(call, variables, depth),
          expr,
        })
    }
    const targetType = target ? this.typeOf(target, variables, depth) : undefined
    const types = this.#all(call, variables, depth)
    const operator = target ? undefined : operators[name]
    if (operator) return operator(types, expr)
    const functions = this.#scope.functions.find(name)
    if (!functions) throw new CelMistake(`there is no function ${name}`, expr.id)
    return this.#resolve([...functions], name, { target: targetType, types, expr })
  }

  #all(call: Expr_Call, variables: Variables, depth: Depth): TypeName[] {
    return call.args.map((argument) => this.typeOf(argument, variables, depth))
  }

  /** The result of the overloads that the arguments may turn out to fit. */
  #resolve(
    overloads: readonly CelFunc[],
    name: string,
    {
      target,
      types,
      expr,
    }: { readonly target: TypeName | undefined; readonly types: readonly TypeName[]; readonly expr: Expr },
  ): TypeName {
    const fitting = overloads.filter(
      (overload) =>
        (overload.target === undefined) === (target === undefined) &&
        (overload.target === undefined || fits(target ?? "dyn", overload.target.name)) &&
        overload.arguments.length === types.length &&
        overload.arguments.every((parameter, index) => fits(types[index] ?? "dyn", parameter.name)),
    )
    if (fitting.length === 0) {
      const on = target === undefined ? "" : `${target}.`
      throw new CelMistake(`${readable(name)} cannot be applied to ${on}(${types.join(", ")})`, expr.id)
    }
    const results = new Set(fitting.map((overload) => overload.result.name))
    const [only, another] = results
    return another === undefined ? (only ?? "dyn") : "dyn"
  }

  #comprehension(
    given: Expr_Comprehension,
    expr: Expr,
    { variables, above }: { readonly variables: Variables; readonly above: Depth },
  ): TypeName {
    const depth = { ...above, comprehensions: above.comprehensions + 1 }
    if (depth.comprehensions > comprehensionsMax)
      throw new CelMistake(`more than ${comprehensionsMax} loops inside one another`, expr.id)
    const { iterRange, accuInit, loopCondition, loopStep, result } = given
    const range = iterRange ? this.typeOf(iterRange, variables, above) : "dyn"
    if (range !== "list" && range !== "map" && range !== "dyn")
      throw new CelMistake(`a ${range} cannot be looped over`, expr.id)
    const accumulated = accuInit ? this.typeOf(accuInit, variables, above) : "dyn"
    const outer = { ...variables, [given.accuVar]: accumulated }
    const inner = { ...outer, [given.iterVar]: "dyn", ...(given.iterVar2 ? { [given.iterVar2]: "dyn" } : {}) }
    for (const part of [loopCondition, loopStep]) if (part) this.typeOf(part, inner, depth)
    return result ? this.typeOf(result, outer, above) : "dyn"
  }
}

const constantTypes: Readonly<Record<string, TypeName>> = {
  boolValue: "bool",
  bytesValue: "bytes",
  doubleValue: "double",
  int64Value: "int",
  nullValue: "null_type",
  stringValue: "string",
  uint64Value: "uint",
}

type Operator = (types: readonly TypeName[], expr: Expr) => TypeName

const logical: Operator = (types, expr) => {
  const wrong = types.find((type) => !fits(type, "bool"))
  if (wrong !== undefined) throw new CelMistake(`a ${wrong} is neither true nor false`, expr.id)
  return "bool"
}

/** What the evaluator does itself, without a function. */
const operators: Readonly<Record<string, Operator>> = {
  "_&&_": logical,
  "_||_": logical,
  "@not_strictly_false": () => "bool",
  "_?_:_": ([condition = "dyn", first = "dyn", second = "dyn"], expr) => {
    logical([condition], expr)
    return first === second ? first : "dyn"
  },
  "_[_]": ([container = "dyn"], expr) => {
    if (!["list", "map", "dyn"].includes(container))
      throw new CelMistake(`a ${container} has no elements`, expr.id)
    return "dyn"
  },
}

const fits = (type: TypeName, wanted: TypeName): boolean =>
  type === wanted || type === "dyn" || wanted === "dyn"

/** `_==_` is how the tree spells ==. */
const readable = (name: string): string => name.replaceAll("_", "").replace("@", "") || name

/** `a.b.c` as text, or null when the expression is something else. */
function qualifiedName(expr: Expr): string | null {
  const parts: string[] = []
  let node: Expr | undefined = expr
  while (node?.exprKind.case === "selectExpr") {
    if (node.exprKind.value.testOnly) return null
    parts.unshift(node.exprKind.value.field)
    node = node.exprKind.value.operand
  }
  if (node?.exprKind.case !== "identExpr") return null
  return [node.exprKind.value.name, ...parts].join(".")
}
