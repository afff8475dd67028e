/** Works out the normal form of a schema: every keyword is understood, an annotation, or refused by name. */

import { type Automaton, complement, intersection, literals } from "./automaton.ts"
import { type Budget, SchemaRefusal } from "./budget.ts"
import { partsOf, targetsOf } from "./keywords.ts"
import { negative } from "./negate.ts"
import {
  type Goal,
  type Goals,
  type NormalForm,
  type Term,
  anything,
  intersect,
  intersectMost,
  intersectSome,
  isIn,
  isNothing,
  nothing,
  union,
  unionSome,
  valuesForm,
} from "./normal-form.ts"
import { type Pattern, narrowPatternOf, notMatching, patternOf } from "./pattern.ts"
import { type DynamicKeyword, References, type Schema, isObject } from "./references.ts"
import { typedForm } from "./typed-form.ts"
import { evaluated } from "./unevaluated.ts"

/**
 * What a term asks of its schema. "narrow": only values that satisfy it, perhaps not all. "wide": all that satisfy it,
 * perhaps more; for proofs that two schemas exclude each other. "not": only values that do not satisfy it.
 */
export type Mode = "narrow" | "wide" | "not"

interface NormaliseOptions {
  /** Refuse what cannot be enforced, rather than leave it open and note it. */
  readonly strict: boolean
  readonly budget: Budget
}

/** A schema to be satisfied in one of three ways, or a form that is already worked out. */
type SchemaTerm = Term &
  ({ readonly schema: unknown; readonly mode: Mode; readonly path: string } | { readonly form: NormalForm })

/** How far into properties and items impossibility is looked for. */
const PROOF_DEPTH_MAX = 5

/** A proof came upon what is still being worked out: nothing follows from it. */
class Unproven extends Error {}

export class Normaliser implements Goals {
  readonly budget: Budget
  /** JSON pointers of keywords that were left open. */
  readonly notEnforced = new Set<string>()
  readonly #strict: boolean
  readonly #references: References
  readonly #terms = new Map<unknown, Map<Mode, SchemaTerm>>()
  readonly #termForms = new Map<number, NormalForm>()
  /** Terms that are being worked out, by how deep in proofs that began. */
  readonly #open = new Map<number, number>()
  readonly #goalForms = new Map<string, NormalForm>()
  readonly #impossible = new Map<string, boolean>()
  readonly #patterns = new Map<string, Pattern>()
  readonly #meetings = new Map<Automaton, Map<Automaton, Automaton>>()
  readonly #exceptions = new Map<string, Automaton>()
  readonly #opposites = new Map<Pattern, Automaton>()
  readonly #narrowPatterns = new Map<string, Automaton>()
  #lastId = 0
  #proofDepth = 0

  constructor(root: unknown, { strict, budget }: NormaliseOptions) {
    this.#strict = strict
    this.budget = budget
    this.#references = new References(root)
  }

  goal(schema: unknown, mode: Mode, path: string): Goal {
    const trivial = schema === true ? mode !== "not" : schema === false ? mode === "not" : false
    if (trivial) return []
    const known = this.#terms.get(schema)?.get(mode)
    if (known) return [known]
    const term: SchemaTerm = { id: ++this.#lastId, schema, mode, path }
    if (!this.#terms.has(schema)) this.#terms.set(schema, new Map())
    this.#terms.get(schema)?.set(mode, term)
    return [term]
  }

  goalOf(form: NormalForm): Goal {
    const term: SchemaTerm = { id: ++this.#lastId, form }
    return [term]
  }

  form(goal: Goal): NormalForm {
    const key = keyOf(goal)
    const known = this.#goalForms.get(key)
    if (known) return known
    let form = anything
    const meet = goal.some((term) => "mode" in term && term.mode === "wide") ? intersect : intersectMost
    for (const term of goal) form = meet(form, this.#termForm(term as SchemaTerm), this)
    this.#goalForms.set(key, form)
    return form
  }

  satisfies(value: unknown, goal: Goal): boolean {
    return goal.every((term) => isIn(this.#termForm(term as SchemaTerm), value, this))
  }

  isImpossible(goal: Goal): boolean {
    if (goal.length === 0) return false
    const key = keyOf(goal)
    const known = this.#impossible.get(key)
    if (known !== undefined) return known
    if (this.#proofDepth >= PROOF_DEPTH_MAX) return false
    this.#impossible.set(key, false)
    this.#proofDepth++
    try {
      const found = isNothing(this.form(goal))
      if (found) this.#impossible.set(key, true)
      else this.#impossible.delete(key)
      return found
    } catch (error) {
      this.#impossible.delete(key)
      if (error instanceof Unproven) return false
      throw error
    } finally {
      this.#proofDepth--
    }
  }

  pattern(source: string): Pattern {
    return remembered(this.#patterns, source, () => patternOf(source, this.budget))
  }

  /** Perhaps fewer texts than the pattern allows. */
  narrowPattern(source: string): Automaton {
    return remembered(this.#narrowPatterns, source, () => narrowPatternOf(source, this.budget))
  }

  /** The texts that both accept; the same automaton for the same two. */
  both(a: Automaton, b: Automaton): Automaton {
    const known = this.#meetings.get(a)?.get(b)
    if (known) return known
    const made = intersection(a, b, this.budget)
    if (!this.#meetings.has(a)) this.#meetings.set(a, new Map())
    this.#meetings.get(a)?.set(b, made)
    return made
  }

  /** Every text but these. */
  except(texts: readonly string[]): Automaton {
    return remembered(this.#exceptions, JSON.stringify(texts.toSorted()), () =>
      complement(literals(texts, this.budget), this.budget),
    )
  }

  /** The texts in which a pattern is certainly not found. */
  notMatching(pattern: Pattern): Automaton {
    const known = this.#opposites.get(pattern) ?? notMatching(pattern, this.budget)
    this.#opposites.set(pattern, known)
    return known
  }

  /** In a strict schema a refusal; otherwise the keyword is noted and left open. */
  open(path: string, keyword: string, why: string): void {
    if (this.#strict) throw new SchemaRefusal(why, path)
    this.notEnforced.add(`${path}/${keyword}`)
  }

  /** Of a schema by itself, in the place where it stands. */
  here(schema: unknown, mode: Mode, path: string): NormalForm {
    return this.form(this.goal(schema, mode, path))
  }

  /** Whether a reference that may lead elsewhere, by who refers to its schema, always leads to one place. */
  isStatic(keyword: DynamicKeyword, reference: string): boolean {
    return this.#references.isStatic(keyword, reference)
  }

  find(reference: string, from: Schema, path: string): unknown {
    try {
      return this.#references.find(reference, from)
    } catch (error) {
      if (error instanceof SchemaRefusal) throw new SchemaRefusal(error.message, path)
      throw error
    }
  }

  #termForm(term: SchemaTerm): NormalForm {
    if ("form" in term) return term.form
    const known = this.#termForms.get(term.id)
    if (known) return known
    const since = this.#open.get(term.id)
    if (since !== undefined && since < this.#proofDepth) throw new Unproven()
    if (since !== undefined)
      throw new SchemaRefusal("it refers to itself without anything between", term.path)
    this.budget.spend(10)
    this.#open.set(term.id, this.#proofDepth)
    try {
      const { schema, mode, path } = term
      const made = this.#schemaForm(schema, mode, path)
      this.#termForms.set(term.id, made)
      return made
    } finally {
      this.#open.delete(term.id)
    }
  }

  #schemaForm(schema: unknown, mode: Mode, path: string): NormalForm {
    if (typeof schema === "boolean") return schema === (mode !== "not") ? anything : nothing
    if (!isObject(schema)) throw new SchemaRefusal("a schema is an object or a boolean", path)
    return mode === "not" ? negative(this, schema, path) : positive(this, schema, mode, path)
  }
}

function remembered<Made>(known: Map<string, Made>, source: string, make: () => Made): Made {
  const found = known.get(source) ?? make()
  known.set(source, found)
  return found
}

const keyOf = (goal: Goal): string =>
  goal.length === 1
    ? String(goal[0]?.id)
    : goal
        .map(({ id }) => id)
        .toSorted((a, b) => a - b)
        .join(",")

function positive(to: Normaliser, schema: Schema, mode: "narrow" | "wide", path: string): NormalForm {
  let form = typedForm(to, schema, mode, path)
  const [both, either] = mode === "wide" ? [intersect, union] : [intersectMost, unionSome]
  const meet = (other: NormalForm): void => {
    form = both(form, other, to)
  }
  if (Object.hasOwn(schema, "const")) meet(valuesForm([schema["const"]]))
  if (Array.isArray(schema["enum"])) meet(valuesForm(schema["enum"]))
  else if (schema["enum"] !== undefined) to.open(path, "enum", "enum is not a list")
  for (const target of targetsOf(to, schema, path)) meet(to.here(target, mode, path))
  partsOf(to, schema, "allOf", path).forEach((part, index) =>
    meet(to.here(part, mode, `${path}/allOf/${index}`)),
  )
  if (schema["anyOf"] !== undefined) {
    const options = partsOf(to, schema, "anyOf", path)
    if (options.length > 0)
      meet(options.map((one, index) => to.here(one, mode, `${path}/anyOf/${index}`)).reduce(either))
  }
  if (schema["oneOf"] !== undefined) {
    const options = partsOf(to, schema, "oneOf", path)
    if (options.length > 0) meet(exclusive(to, options, mode, `${path}/oneOf`))
  }
  if (schema["not"] !== undefined && mode === "narrow") meet(to.here(schema["not"], "not", `${path}/not`))
  if (schema["if"] !== undefined) meet(conditional(to, schema, mode, path))
  return mode === "narrow" ? evaluated(to, schema, form, path) : form
}

/** Of options that do not exclude each other, each is taken without the others. */
function exclusive(
  to: Normaliser,
  options: readonly unknown[],
  mode: "narrow" | "wide",
  path: string,
): NormalForm {
  const at = (index: number): string => `${path}/${index}`
  if (mode === "wide") return options.map((one, index) => to.here(one, mode, at(index))).reduce(union)
  let form = nothing
  options.forEach((option, index) => {
    let own = to.here(option, "narrow", at(index))
    options.forEach((other, place) => {
      if (place === index || isNothing(own)) return
      to.budget.spend(4)
      if (isNothing(intersectSome(own, to.here(other, "wide", at(place)), to))) return
      own = intersectSome(own, to.here(other, "not", at(place)), to)
    })
    form = unionSome(form, own)
  })
  return form
}

function conditional(to: Normaliser, schema: Schema, mode: "narrow" | "wide", path: string): NormalForm {
  const branch = (key: "then" | "else"): NormalForm =>
    schema[key] === undefined ? anything : to.here(schema[key], mode, `${path}/${key}`)
  const [then, otherwise] = [branch("then"), branch("else")]
  if (then === anything && otherwise === anything) return anything
  if (mode === "wide") return union(intersect(to.here(schema["if"], mode, `${path}/if`), then, to), otherwise)
  const met = intersectMost(to.here(schema["if"], "narrow", `${path}/if`), then, to)
  return unionSome(met, intersectMost(to.here(schema["if"], "not", `${path}/if`), otherwise, to))
}
