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

/** The fewest and the most characters of what can be written. */
export interface Lengths {
  readonly least: number
  readonly most: number
}

/** Of a rule that names no other. */
export function lengthsOf(rule: Rule): Lengths {
  switch (rule.kind) {
    case "text": {
      // A schema counts characters, not halves of them.
      const { length } = Array.from(rule.text)
      return { least: length, most: length }
    }
    case "set":
      return { least: 1, most: 1 }
    case "all":
      return rule.parts
        .map(lengthsOf)
        .reduce((sum, part) => ({ least: sum.least + part.least, most: sum.most + part.most }), {
          least: 0,
          most: 0,
        })
    case "any": {
      const options = rule.options.map(lengthsOf)
      return {
        least: Math.min(...options.map(({ least }) => least)),
        most: Math.max(...options.map(({ most }) => most)),
      }
    }
    case "repeat": {
      const { least, most } = lengthsOf(rule.rule)
      return { least: least * rule.min, most: most * rule.max }
    }
    case "name":
      throw new TypeError(`Cannot measure a rule that names ${rule.name}`)
  }
}

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

/** A rule that has not been read to its end, and what follows it. */
interface Frame {
  readonly rule: Rule
  readonly next: Frame | null
}

/** More ways than this to read one text are not followed; JSON has a handful. */
const STACKS_MAX = 512

/** Follows a text through a grammar, and knows how to end it soonest. */
export class GrammarPath {
  readonly #grammar: Grammar
  readonly #shortest: ReadonlyMap<string, string>
  #stacks: (Frame | null)[]

  constructor(grammar: Grammar) {
    this.#grammar = grammar
    this.#shortest = shortestOfRules(grammar)
    this.#stacks = this.#expand({ rule: grammar.root, next: null })
  }

  /** Reads more of the text; answers whether it can still become one of the grammar's. */
  advance(piece: string): boolean {
    for (const character of piece) {
      const code = character.codePointAt(0) ?? 0
      const next = bounded(this.#stacks.flatMap((stack) => this.#step(stack, code)))
      if (next.length === 0) return false
      this.#stacks = next
    }
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
    const ends = this.#stacks.map((stack) => this.#endOf(stack))
    return ends.reduce((best, end) => (end.length < best.length ? end : best), ends[0] ?? "")
  }

  #endOf(stack: Frame | null): string {
    let end = ""
    for (let frame = stack; frame; frame = frame.next) end += shortestOf(frame.rule, this.#shortest) ?? ""
    return end
  }

  #step(stack: Frame | null, code: number): (Frame | null)[] {
    if (!stack) return []
    const { rule, next } = stack
    if (rule.kind === "set") return matches(rule, code) ? this.#expand(next) : []
    // Expanded stacks have a terminal on top: a set or a nonempty text.
    if (rule.kind !== "text" || rule.text.codePointAt(0) !== code) return []
    const rest = rule.text.slice(String.fromCodePoint(code).length)
    return this.#expand(rest === "" ? next : { rule: text(rest), next })
  }

  /** Every stack with a terminal on top that this one can become without reading anything. */
  #expand(stack: Frame | null): (Frame | null)[] {
    if (!stack) return [null]
    const { rule, next } = stack
    switch (rule.kind) {
      case "set":
        return [stack]
      case "text":
        return rule.text === "" ? this.#expand(next) : [stack]
      case "all":
        return this.#expand(
          rule.parts.reduceRight<Frame | null>((rest, part) => ({ rule: part, next: rest }), next),
        )
      case "any":
        return rule.options.flatMap((option) => this.#expand({ rule: option, next }))
      case "name":
        return this.#expand({ rule: ruleNamed(this.#grammar, rule.name), next })
      case "repeat": {
        const { min, max } = rule
        if (max <= 0) return this.#expand(next)
        const again = this.#expand({
          rule: rule.rule,
          next: { rule: repeat(rule.rule, Math.max(0, min - 1), max - 1), next },
        })
        return min > 0 ? again : [...again, ...this.#expand(next)]
      }
    }
  }
}

function bounded(stacks: (Frame | null)[]): (Frame | null)[] {
  const ended = stacks.includes(null)
  const open = stacks.filter((stack) => stack !== null)
  return ended ? [null, ...open.slice(0, STACKS_MAX)] : open.slice(0, STACKS_MAX)
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
  return shortestOf(grammar.root, shortestOfRules(grammar))
}

/** Rules may refer to each other: texts get shorter round by round until none does. */
function shortestOfRules(grammar: Grammar): Map<string, string> {
  const known = new Map<string, string>()
  for (let changed = true; changed;) {
    changed = false
    for (const [name, rule] of grammar.rules) {
      const found = shortestOf(rule, known)
      const before = known.get(name)
      if (found === null || (before !== undefined && before.length <= found.length)) continue
      known.set(name, found)
      changed = true
    }
  }
  return known
}

function shortestOf(rule: Rule, known: ReadonlyMap<string, string>): string | null {
  switch (rule.kind) {
    case "text":
      return rule.text
    case "set":
      return shortestOfSet(rule)
    case "name":
      return known.get(rule.name) ?? null
    case "repeat": {
      if (rule.min === 0) return ""
      const once = shortestOf(rule.rule, known)
      return once === null ? null : once.repeat(rule.min)
    }
    case "all": {
      let joined = ""
      for (const part of rule.parts) {
        const found = shortestOf(part, known)
        if (found === null) return null
        joined += found
      }
      return joined
    }
    case "any": {
      const found = rule.options.map((option) => shortestOf(option, known)).filter((one) => one !== null)
      return found.length === 0 ? null : found.reduce((best, one) => (one.length < best.length ? one : best))
    }
  }
}

function shortestOfSet(rule: Extract<Rule, { kind: "set" }>): string {
  if (!rule.negated) return String.fromCodePoint(rule.ranges[0]?.[0] ?? 0)
  const letter = ["a", "b", "0", " "].find((one) => matches(rule, codeOf(one)))
  return letter ?? "~"
}
