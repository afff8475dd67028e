/** Grammars as values: printed for llama.cpp's sampler, and followed here to know the shortest way to their end. */

export type Rule =
  | { readonly kind: "text"; readonly text: string }
  /** One character inside the ranges, or outside them. */
  | {
      readonly kind: "set"
      readonly ranges: readonly (readonly [number, number])[]
      readonly negated: boolean
    }
  | { readonly kind: "all"; readonly parts: readonly Rule[] }
  | { readonly kind: "any"; readonly options: readonly Rule[] }
  | { readonly kind: "repeat"; readonly rule: Rule; readonly min: number; readonly max: number }
  | { readonly kind: "name"; readonly name: string }

export interface Grammar {
  readonly root: Rule
  readonly rules: ReadonlyMap<string, Rule>
}

export const text = (value: string): Rule => ({ kind: "text", text: value })
export const all = (...parts: readonly Rule[]): Rule => ({ kind: "all", parts })
export const any = (...options: readonly Rule[]): Rule => ({ kind: "any", options })
export const repeat = (rule: Rule, min: number, max: number): Rule => ({ kind: "repeat", rule, min, max })
export const maybe = (rule: Rule): Rule => repeat(rule, 0, 1)
export const named = (name: string): Rule => ({ kind: "name", name })
export const set = (...ranges: readonly (readonly [number | string, number | string])[]): Rule => ({
  kind: "set",
  negated: false,
  ranges: ranges.map(([low, high]) => [codeOf(low), codeOf(high)] as const),
})
export const notSet = (...ranges: readonly (readonly [number | string, number | string])[]): Rule => ({
  kind: "set",
  negated: true,
  ranges: ranges.map(([low, high]) => [codeOf(low), codeOf(high)] as const),
})

const codeOf = (value: number | string): number =>
  typeof value === "number" ? value : (value.codePointAt(0) ?? 0)

/** Prints a grammar in GBNF. Repeated parts become rules of their own: llama.cpp counts their symbols times their bound. */
export function toGbnf(grammar: Grammar): string {
  const printer = new Printer()
  const lines = [`root ::= ${printer.print(grammar.root)}`]
  for (const [name, rule] of grammar.rules) lines.push(`${gbnfName(name)} ::= ${printer.print(rule)}`)
  return [...lines, ...printer.lines].join("\n")
}

const gbnfName = (name: string): string => `n-${name.replaceAll(/[^a-zA-Z0-9]/g, "-")}`

class Printer {
  readonly lines: string[] = []
  readonly #names = new Map<string, string>()

  print(rule: Rule): string {
    switch (rule.kind) {
      case "text":
        return `"${Array.from(rule.text, escapeText).join("")}"`
      case "set":
        return `[${rule.negated ? "^" : ""}${rule.ranges.map(printRange).join("")}]`
      case "all":
        return rule.parts.length === 0 ? '""' : rule.parts.map((part) => this.print(part)).join(" ")
      case "any":
        return `(${rule.options.map((option) => this.print(option)).join(" | ")})`
      case "repeat":
        return this.#repeated(rule)
      case "name":
        return gbnfName(rule.name)
    }
  }

  #repeated({ rule, min, max }: Extract<Rule, { kind: "repeat" }>): string {
    const inner = this.print(rule)
    const unit = rule.kind === "set" || rule.kind === "name" ? inner : this.#nameFor(inner)
    if (max === Infinity) return min === 0 ? `${unit}*` : `${unit}{${min},}`
    return min === 0 && max === 1 ? `${unit}?` : `${unit}{${min},${max}}`
  }

  #nameFor(body: string): string {
    const known = this.#names.get(body)
    if (known) return known
    const name = `r-${this.#names.size}`
    this.#names.set(body, name)
    this.lines.push(`${name} ::= ${body}`)
    return name
  }
}

function escapeText(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`
  const code = character.codePointAt(0) ?? 0
  return code < 0x20 ? `\\x${code.toString(16).padStart(2, "0")}` : character
}

const printRange = ([low, high]: readonly [number, number]): string =>
  low === high ? printCode(low) : `${printCode(low)}-${printCode(high)}`

function printCode(code: number): string {
  const plain = (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122)
  if (plain) return String.fromCodePoint(code)
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`
  return code <= 0xffff
    ? `\\u${code.toString(16).padStart(4, "0")}`
    : `\\U${code.toString(16).padStart(8, "0")}`
}

/** A rule that has not been read to its end, how far it has been read, and what follows it. */
interface Frame {
  readonly rule: Rule
  /** Of a text, where its rest begins; of a repetition, how often it was read. */
  readonly at: number
  readonly next: Frame | null
}

/** More ways than this to read one text are not followed; JSON has a handful. */
const STACKS_MAX = 512

/** Follows a text through a grammar, and knows how to end it soonest. */
export class GrammarPath {
  readonly #grammar: Grammar
  readonly #shortest: Shortest
  #stacks: readonly (Frame | null)[]

  constructor(grammar: Grammar, shortest = new Shortest(grammar)) {
    this.#grammar = grammar
    this.#shortest = shortest
    this.#stacks = new Step(grammar).open({ rule: grammar.root, at: 0, next: null }).stacks()
  }

  /** Reads more of the text; returns whether it can still become one of the grammar's. When not, nothing was read. */
  advance(piece: string): boolean {
    let stacks = this.#stacks
    for (const character of piece) {
      const code = character.codePointAt(0) ?? 0
      const step = new Step(this.#grammar)
      for (const stack of stacks) if (stack) step.read(stack, code)
      stacks = step.stacks()
      if (stacks.length === 0) return false
    }
    this.#stacks = stacks
    return true
  }

  /** Where the path stands now, for `back`. */
  mark(): readonly unknown[] {
    return this.#stacks
  }

  back(mark: readonly unknown[]): void {
    // Only `mark` makes these, from this path's own stacks.
    this.#stacks = mark as (Frame | null)[]
  }

  /** Whether the text so far is complete. */
  get complete(): boolean {
    return this.#stacks.includes(null)
  }

  /** Complete, and nothing can follow. */
  get ended(): boolean {
    return this.#stacks.length === 1 && this.#stacks[0] === null
  }

  /** The fewest characters that make the text complete. */
  shortestEnd(): string {
    let best: Frame | null = null
    let bestLength = Infinity
    for (const stack of this.#stacks) {
      const length = this.#lengthOf(stack)
      if (length >= bestLength) continue
      best = stack
      bestLength = length
    }
    let end = ""
    for (let frame = best; frame; frame = frame.next) end += this.#shortest.restOf(frame.rule, frame.at)
    return end
  }

  /** What could come next: the ranges of characters, for those who choose by themselves. */
  nextRanges(): (readonly [number, number])[] {
    return this.#stacks.flatMap((stack) => (stack ? rangesOf(stack) : []))
  }

  #lengthOf(stack: Frame | null): number {
    let length = 0
    for (let frame = stack; frame; frame = frame.next)
      length += this.#shortest.restLength(frame.rule, frame.at)
    return length
  }
}

function rangesOf({ rule, at }: Frame): readonly (readonly [number, number])[] {
  if (rule.kind === "text") {
    const code = rule.text.codePointAt(at) ?? 0
    return [[code, code]]
  }
  if (rule.kind !== "set") return []
  return rule.negated ? outside(rule.ranges) : rule.ranges
}

function outside(ranges: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const left: (readonly [number, number])[] = []
  let low = 0
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    if (from > low) left.push([low, from - 1])
    low = Math.max(low, to + 1)
  }
  return low > 0x10ffff ? left : [...left, [low, 0x10ffff]]
}

/** One character's worth of reading: every way that is open afterwards, each of them once. */
class Step {
  readonly #grammar: Grammar
  readonly #frames = new Map<Rule, Map<Frame | null, Map<number, Frame>>>()
  readonly #seen = new Set<Frame | null>()
  readonly #open: (Frame | null)[] = []

  constructor(grammar: Grammar) {
    this.#grammar = grammar
  }

  stacks(): readonly (Frame | null)[] {
    return this.#open
  }

  read({ rule, at, next }: Frame, code: number): void {
    if (rule.kind === "set") {
      if (matches(rule, code)) this.open(next)
      return
    }
    // Open stacks have a terminal on top: a set or a nonempty text.
    if (rule.kind !== "text" || rule.text.codePointAt(at) !== code) return
    const after = at + (code > 0xffff ? 2 : 1)
    this.open(after === rule.text.length ? next : this.#frame(rule, after, next))
  }

  /** Every stack with a terminal on top that this one can become without reading anything. */
  open(stack: Frame | null): this {
    const waiting: (Frame | null)[] = [stack]
    while (waiting.length > 0) {
      const top = waiting.pop() ?? null
      if (this.#seen.has(top)) continue
      this.#seen.add(top)
      if (top === null) this.#open.unshift(null)
      else this.#expand(top, waiting)
    }
    return this
  }

  #expand(top: Frame, waiting: (Frame | null)[]): void {
    const { rule, at, next } = top
    switch (rule.kind) {
      case "set":
        if (this.#open.length <= STACKS_MAX) this.#open.push(top)
        return
      case "text":
        if (rule.text === "") waiting.push(next)
        else if (this.#open.length <= STACKS_MAX) this.#open.push(top)
        return
      case "all":
        waiting.push(rule.parts.reduceRight<Frame | null>((rest, part) => this.#frame(part, 0, rest), next))
        return
      case "any":
        for (let index = rule.options.length - 1; index >= 0; index--) {
          const option = rule.options[index]
          if (option) waiting.push(this.#frame(option, 0, next))
        }
        return
      case "name":
        waiting.push(this.#frame(ruleNamed(this.#grammar, rule.name), 0, next))
        return
      case "repeat": {
        if (at >= rule.min) waiting.push(next)
        if (at < rule.max) waiting.push(this.#frame(rule.rule, 0, this.#frame(rule, at + 1, next)))
      }
    }
  }

  #frame(rule: Rule, at: number, next: Frame | null): Frame {
    const byNext = this.#frames.get(rule) ?? new Map<Frame | null, Map<number, Frame>>()
    this.#frames.set(rule, byNext)
    const byPlace = byNext.get(next) ?? new Map<number, Frame>()
    byNext.set(next, byPlace)
    const known = byPlace.get(at)
    if (known) return known
    const made = { rule, at, next }
    byPlace.set(at, made)
    return made
  }
}

const matches = (rule: Extract<Rule, { kind: "set" }>, code: number): boolean =>
  rule.ranges.some(([low, high]) => code >= low && code <= high) !== rule.negated

function ruleNamed(grammar: Grammar, name: string): Rule {
  const rule = grammar.rules.get(name)
  if (!rule) throw new Error(`Cannot use the grammar: it has no rule ${name}`)
  return rule
}

/** The shortest text of a grammar, or null when it has no finite one. */
export function shortestText(grammar: Grammar): string | null {
  const shortest = new Shortest(grammar)
  return shortest.length(grammar.root) === Infinity ? null : shortest.text(grammar.root)
}

/** The shortest texts of rules, by their lengths first: a text may be too long to be made. */
export class Shortest {
  /** Some rule, or a part of one, leads nowhere. */
  readonly hasDeadEnds: boolean
  readonly #grammar: Grammar
  readonly #lengths = new Map<string, number>()
  /** Names whose lengths cannot change any more. */
  readonly #settled = new Set<string>()
  readonly #texts = new Map<string, string>()
  readonly #known = new Map<Rule, number>()
  #isSettled = true
  #hasEmptyChoice = false

  /** `spend` is told of every rule that is looked at. */
  constructor(grammar: Grammar, spend: (rules: number) => void = () => undefined) {
    this.#grammar = grammar
    // Rules are made after those that they name, unless these contain them: one pass is enough for most.
    let waiting = [...grammar.rules]
    for (let hasChanged = true; hasChanged && waiting.length > 0;) {
      hasChanged = false
      spend(waiting.length)
      waiting = waiting.filter(([name, rule]) => {
        this.#isSettled = true
        const length = this.#work(rule)
        if (length < (this.#lengths.get(name) ?? Infinity)) {
          this.#lengths.set(name, length)
          hasChanged = true
        }
        if (this.#isSettled) this.#settled.add(name)
        return !this.#isSettled
      })
    }
    this.#work(grammar.root)
    this.hasDeadEnds = this.#hasEmptyChoice || this.#lengths.size < grammar.rules.size
  }

  /** Infinity when nothing finite matches. */
  length(rule: Rule): number {
    const known = this.#known.get(rule)
    if (known !== undefined) return known
    const found = this.#work(rule)
    this.#known.set(rule, found)
    return found
  }

  /** Of a rule with a finite one. */
  text(rule: Rule): string {
    switch (rule.kind) {
      case "text":
        return rule.text
      case "set":
        return shortestOfSet(rule)
      case "name": {
        const known = this.#texts.get(rule.name)
        if (known !== undefined) return known
        const found = this.text(ruleNamed(this.#grammar, rule.name))
        this.#texts.set(rule.name, found)
        return found
      }
      case "repeat":
        return rule.min === 0 ? "" : this.text(rule.rule).repeat(rule.min)
      case "all":
        return rule.parts.map((part) => this.text(part)).join("")
      case "any": {
        const least = this.length(rule)
        const best = rule.options.find((option) => this.length(option) === least)
        return best ? this.text(best) : ""
      }
    }
  }

  /** What is left of a rule that has been read so far. */
  restOf(rule: Rule, at: number): string {
    if (rule.kind === "text") return rule.text.slice(at)
    if (rule.kind === "repeat") return rule.min <= at ? "" : this.text(rule.rule).repeat(rule.min - at)
    return this.text(rule)
  }

  restLength(rule: Rule, at: number): number {
    if (rule.kind === "text") return rule.text.length - at
    if (rule.kind === "repeat") return rule.min <= at ? 0 : this.length(rule.rule) * (rule.min - at)
    return this.length(rule)
  }

  #work(rule: Rule): number {
    switch (rule.kind) {
      case "text":
        return rule.text.length
      case "set":
        return 1
      case "name":
        if (!this.#settled.has(rule.name)) this.#isSettled = false
        return this.#lengths.get(rule.name) ?? Infinity
      case "repeat": {
        const length = this.#work(rule.rule)
        return rule.min === 0 ? 0 : length * rule.min
      }
      case "all": {
        let sum = 0
        for (const part of rule.parts) sum += this.#work(part)
        return sum
      }
      case "any": {
        if (rule.options.length === 0) this.#hasEmptyChoice = true
        let least = Infinity
        for (const option of rule.options) least = Math.min(least, this.#work(option))
        return least
      }
    }
  }
}

function eachName(rule: Rule, visit: (name: string) => void): void {
  switch (rule.kind) {
    case "name":
      visit(rule.name)
      return
    case "repeat":
      eachName(rule.rule, visit)
      return
    case "all":
      for (const part of rule.parts) eachName(part, visit)
      return
    case "any":
      for (const option of rule.options) eachName(option, visit)
      return
    case "text":
    case "set":
  }
}

/** Without what leads nowhere: a model that went there could not go on. Null when nothing is left. */
export function pruned(grammar: Grammar, shortest: Shortest): Grammar | null {
  if (!shortest.hasDeadEnds) return grammar
  const keep = (rule: Rule): Rule | null => {
    switch (rule.kind) {
      case "text":
      case "set":
        return rule
      case "name":
        return shortest.length(rule) === Infinity ? null : rule
      case "repeat": {
        const inner = keep(rule.rule)
        return inner ? { ...rule, rule: inner } : rule.min === 0 ? text("") : null
      }
      case "all": {
        const parts = rule.parts.map(keep)
        return parts.includes(null) ? null : { ...rule, parts: parts.filter((part) => part !== null) }
      }
      case "any": {
        const options = rule.options.map(keep).filter((option) => option !== null)
        return options.length === 0
          ? null
          : options.length === 1
            ? (options[0] ?? null)
            : { ...rule, options }
      }
    }
  }
  const root = keep(grammar.root)
  if (!root) return null
  const rules = new Map<string, Rule>()
  const waiting: string[] = []
  const note = (name: string): void => {
    if (!rules.has(name)) waiting.push(name)
  }
  eachName(root, note)
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (rules.has(name)) continue
    const kept = keep(ruleNamed(grammar, name))
    if (!kept) throw new Error(`Cannot prune the grammar: ${name} is used and leads nowhere`)
    rules.set(name, kept)
    eachName(kept, note)
  }
  return { root, rules: inOrderOf(grammar.rules, rules) }
}

function inOrderOf(all: ReadonlyMap<string, Rule>, some: ReadonlyMap<string, Rule>): Map<string, Rule> {
  const ordered = new Map<string, Rule>()
  for (const name of all.keys()) {
    const rule = some.get(name)
    if (rule) ordered.set(name, rule)
  }
  return ordered
}

const readable = ["a", "b", "0", "1", "-", " "]

function shortestOfSet(rule: Extract<Rule, { kind: "set" }>): string {
  const letter = readable.find((one) => matches(rule, codeOf(one)))
  return letter ?? (rule.negated ? "~" : String.fromCodePoint(rule.ranges[0]?.[0] ?? 0))
}
