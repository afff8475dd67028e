/** Turns a regular expression into the automaton of the texts in which it is found. */
import {
  type Automaton,
  type Edge,
  Nfa,
  complement,
  everything,
  intersection,
  rangesWithout,
} from "./automaton.ts"
import { type Budget, SchemaRefusal } from "./budget.ts"
import { reduced } from "./reduce.ts"
import { type Expression, type ReadExpression, readExpression, shown } from "./regular-expression.ts"

const PATTERN_CHARACTERS_MAX = 4000
/** Parts after counted repetitions have been written out. */
const PARTS_MAX = 3000
const NARROW_PARTS_MAX = 400
/** How far repetitions are counted where fewer will do, until the pattern is small. */
const COUNTS_MAX = [256, 128, 64, 32]

export interface Pattern {
  readonly automaton: Automaton
  /** Says nothing about texts with characters beyond 0xFFFF. */
  readonly basic: boolean
}

/** Throws SchemaRefusal for what is not regular. */
export function patternOf(pattern: string, budget: Budget): Pattern {
  const { expression, basic } = read(pattern)
  if (partsOf(expression) > PARTS_MAX)
    throw new SchemaRefusal(`the pattern ${shown(pattern)} is too large when its repetitions are written out`)
  return { automaton: automatonOf(pattern, expression, budget), basic }
}

/** Only texts in which the pattern is found: where it counts far, not as far. */
export function narrowPatternOf(pattern: string, budget: Budget): Automaton {
  const { expression } = read(pattern)
  const counts = [Infinity, ...COUNTS_MAX]
  const parts = counts.map((countMax) => counted(expression, countMax))
  const chosen =
    parts.find((one) => partsOf(one) <= NARROW_PARTS_MAX) ?? parts.find((one) => partsOf(one) <= PARTS_MAX)
  if (!chosen)
    throw new SchemaRefusal(`the pattern ${shown(pattern)} is too large when its repetitions are written out`)
  return automatonOf(pattern, chosen, budget)
}

/** Whether working out the pattern is cheap: where it only serves a proof, it is left out otherwise. */
export const isSmall = (pattern: string): boolean => partsOf(read(pattern).expression) <= NARROW_PARTS_MAX

function read(pattern: string): ReadExpression {
  if (pattern.length > PATTERN_CHARACTERS_MAX)
    throw new SchemaRefusal(`a pattern is longer than ${PATTERN_CHARACTERS_MAX} characters`)
  return readExpression(pattern)
}

/** The same with repetitions up to a count, or to their least. What is looked ahead for is left as it is. */
function counted(expression: Expression, countMax: number): Expression {
  switch (expression.kind) {
    case "all":
      return { kind: "all", parts: expression.parts.map((part) => counted(part, countMax)) }
    case "any":
      return { kind: "any", options: expression.options.map((option) => counted(option, countMax)) }
    case "repeat": {
      const { min, max } = expression
      const most = max === Infinity ? max : Math.max(min, Math.min(max, countMax))
      return { kind: "repeat", part: counted(expression.part, countMax), min, max: most }
    }
    case "set":
    case "start":
    case "end":
    case "ahead":
      return expression
  }
}

function automatonOf(pattern: string, expression: Expression, budget: Budget): Automaton {
  const options = expression.kind === "any" ? expression.options : [expression]
  const nfa = new Nfa(budget)
  const start = nfa.state()
  const end = nfa.state()
  const builder = new Builder(nfa, pattern, budget)
  for (const option of options) builder.search(start, flat(option), end)
  return reduced(nfa.determinise(start, end, true)).automaton
}

/** The texts in which the pattern is certainly not found. */
export function notMatching({ automaton, basic }: Pattern, budget: Budget): Automaton {
  return basic
    ? intersection(complement(automaton, budget), basicTexts, budget)
    : complement(automaton, budget)
}

const basicTexts: Automaton = {
  edges: [rangesWithout(everything, [[0x10000, 0x10ffff]]).map(([low, high]): Edge => [low, high, 0])],
  accepting: [true],
}

function partsOf(expression: Expression): number {
  switch (expression.kind) {
    case "set":
    case "start":
    case "end":
      return 1
    case "all":
      return expression.parts.reduce((sum, part) => sum + partsOf(part), 1)
    case "any":
      return expression.options.reduce((sum, option) => sum + partsOf(option), 1)
    case "repeat":
      return (
        partsOf(expression.part) *
        Math.max(1, expression.max === Infinity ? expression.min + 1 : expression.max)
      )
    case "ahead":
      return 1 + partsOf(expression.part)
  }
}

/** The parts of a sequence, with sequences inside it opened. */
function flat(expression: Expression): readonly Expression[] {
  return expression.kind === "all" ? expression.parts.flatMap(flat) : [expression]
}

class Builder {
  readonly #nfa: Nfa
  readonly #pattern: string
  readonly #budget: Budget

  constructor(nfa: Nfa, pattern: string, budget: Budget) {
    this.#nfa = nfa
    this.#pattern = pattern
    this.#budget = budget
  }

  /** Anything may stand before and after what is searched for. */
  search(from: number, parts: readonly Expression[], to: number): void {
    const anchored = parts[0]?.kind === "start"
    const before = anchored ? this.#nfa.state() : this.#anything()
    this.#nfa.join(from, before)
    this.#rest(before, parts, to)
  }

  #rest(from: number, parts: readonly Expression[], to: number): void {
    const index = parts.findIndex(({ kind }) => kind === "ahead")
    const ahead = parts[index]
    if (ahead?.kind !== "ahead") {
      const after = this.#anything()
      this.#nfa.join(this.#sequence(from, parts), after)
      this.#nfa.join(after, to)
      return
    }
    const rest = parts.slice(index + 1)
    if ([...rest, ahead.part].some(hasStart)) throw this.#unsupported()
    const tail = this.#automaton(rest)
    const looked = this.#automaton(flat(ahead.part))
    const kept = intersection(tail, ahead.negated ? complement(looked, this.#budget) : looked, this.#budget)
    this.#nfa.embed(this.#sequence(from, parts.slice(0, index)), kept, to)
  }

  /** Of the rest of a text: these parts, and then anything. */
  #automaton(parts: readonly Expression[]): Automaton {
    const nfa = new Nfa(this.#budget)
    const start = nfa.state()
    const end = nfa.state()
    new Builder(nfa, this.#pattern, this.#budget).#rest(start, parts, end)
    return nfa.determinise(start, end, false)
  }

  #anything(): number {
    const state = this.#nfa.state()
    this.#nfa.read(state, everything, state)
    return state
  }

  #sequence(from: number, parts: readonly Expression[]): number {
    return parts.reduce((state, part) => this.#part(state, part), from)
  }

  #part(from: number, expression: Expression): number {
    const nfa = this.#nfa
    switch (expression.kind) {
      case "set": {
        const to = nfa.state()
        nfa.read(from, expression.ranges, to)
        return to
      }
      case "all":
        return this.#sequence(from, expression.parts)
      case "any": {
        const to = nfa.state()
        for (const option of expression.options) nfa.join(this.#part(from, option), to)
        return to
      }
      case "repeat":
        return this.#repeat(from, expression)
      case "start":
      case "end": {
        const to = nfa.state()
        const edges = expression.kind === "start" ? nfa.atStart : nfa.atEnd
        edges[from]?.push(to)
        return to
      }
      case "ahead":
        throw this.#unsupported()
    }
  }

  #repeat(from: number, { part, min, max }: Extract<Expression, { kind: "repeat" }>): number {
    let state = from
    for (let count = 0; count < min; count++) state = this.#part(state, part)
    const end = this.#nfa.state()
    if (max === Infinity) {
      const loop = this.#nfa.state()
      this.#nfa.join(state, loop)
      this.#nfa.join(this.#part(loop, part), loop)
      this.#nfa.join(loop, end)
      return end
    }
    for (let count = min; count < max; count++) {
      this.#nfa.join(state, end)
      const before = this.#nfa.state()
      this.#nfa.join(state, before)
      state = this.#part(before, part)
    }
    this.#nfa.join(state, end)
    return end
  }

  #unsupported(): SchemaRefusal {
    return new SchemaRefusal(`the pattern ${shown(this.#pattern)} looks ahead where that cannot be enforced`)
  }
}

function hasStart(expression: Expression): boolean {
  switch (expression.kind) {
    case "set":
    case "end":
      return false
    case "start":
      return true
    case "all":
      return expression.parts.some(hasStart)
    case "any":
      return expression.options.some(hasStart)
    case "repeat":
    case "ahead":
      return hasStart(expression.part)
  }
}
