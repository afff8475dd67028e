/** Turns a regular expression into a rule for the inside of a JSON string, for the part of the language that has one. */
import { type Rule, all, any, repeat, text } from "./grammar.ts"

/** How often an open-ended part is repeated at most: a text that is shorter than it could be still matches. */
const REPEATS_MAX = 64
/** What a pattern may ask for by number; llama.cpp refuses grammars with many more. */
const COUNT_MAX = 1000
const PATTERN_CHARACTERS_MAX = 1000
const TEXT_CHARACTERS_MAX = 10_000

interface PatternRule {
  readonly rule: Rule
  /** Characters of the text, as a schema counts them. */
  readonly least: number
  readonly most: number
}

/** Null when the pattern uses something that a grammar cannot follow, such as looking ahead. */
export function patternRule(pattern: string): PatternRule | null {
  if (pattern.length > PATTERN_CHARACTERS_MAX || !isRegExp(pattern)) return null
  try {
    const found = new PatternParser(pattern).whole()
    return found.most <= TEXT_CHARACTERS_MAX ? found : null
  } catch (error) {
    if (error instanceof Unsupported) return null
    throw error
  }
}

class Unsupported extends Error {}

function isRegExp(pattern: string): boolean {
  try {
    return new RegExp(pattern, "u") instanceof RegExp
  } catch {
    return false
  }
}

/** Characters that stand for themselves in JSON and that every class is made of: a subset of what it accepts. */
const plain = Array.from({ length: 0x7f - 0x20 }, (_, index) => index + 0x20).filter(
  (code) => code !== 0x22 && code !== 0x5c,
)
const inRange = (low: string, high: string) => (code: number) =>
  code >= low.charCodeAt(0) && code <= high.charCodeAt(0)
const isDigit = inRange("0", "9")
const isWord = (code: number): boolean =>
  isDigit(code) || inRange("a", "z")(code) || inRange("A", "Z")(code) || code === 0x5f
const isSpace = (code: number): boolean => code === 0x20

/** `\d` and its like, in a class or by itself. */
const classes: Readonly<Record<string, (code: number) => boolean>> = {
  d: isDigit,
  w: isWord,
  s: isSpace,
  D: (code) => !isDigit(code),
  W: (code) => !isWord(code),
  S: (code) => !isSpace(code),
}
const controls: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", f: "\f" }

class PatternParser {
  readonly #characters: readonly string[]
  #at = 0

  constructor(pattern: string) {
    this.#characters = Array.from(pattern)
  }

  whole(): PatternRule {
    const options = [this.#anchored()]
    while (this.#take("|")) options.push(this.#anchored())
    if (this.#at < this.#characters.length) throw new Unsupported()
    return either(options)
  }

  /** Without an anchor, anything may stand before or after. */
  #anchored(): PatternRule {
    const anything = times(charactersOf(plain), 0, REPEATS_MAX)
    const start = this.#take("^") ? [] : [anything]
    const inside = this.#sequence()
    return inOrder([...start, inside, ...(this.#take("$") ? [] : [anything])])
  }

  #alternatives(): PatternRule {
    const options = [this.#sequence()]
    while (this.#take("|")) options.push(this.#sequence())
    return either(options)
  }

  #sequence(): PatternRule {
    const parts: PatternRule[] = []
    for (let next = this.#peek(); next !== undefined && !"|)$".includes(next); next = this.#peek())
      parts.push(this.#quantified(this.#atom()))
    return inOrder(parts)
  }

  #quantified(one: PatternRule): PatternRule {
    const [least, most] = this.#counts()
    // Whether the pattern takes much or little changes nothing about what it accepts.
    this.#take("?")
    if (least > COUNT_MAX) throw new Unsupported()
    return least === 1 && most === 1 ? one : times(one, least, Math.min(most, least + REPEATS_MAX))
  }

  #counts(): readonly [number, number] {
    if (this.#take("*")) return [0, Infinity]
    if (this.#take("+")) return [1, Infinity]
    if (this.#take("?")) return [0, 1]
    const [given, least, comma, most] =
      /^\{(\d+)(,?)(\d*)\}/.exec(this.#characters.slice(this.#at).join("")) ?? []
    if (given === undefined) return [1, 1]
    this.#at += given.length
    if (comma === "") return [Number(least), Number(least)]
    return [Number(least), most === "" ? Infinity : Number(most)]
  }

  #atom(): PatternRule {
    const character = this.#next()
    switch (character) {
      case "(":
        return this.#group()
      case "[":
        return this.#class()
      case ".":
        return charactersOf(plain)
      case "\\":
        return this.#escaped()
      case "^":
        throw new Unsupported()
      default:
        return literal(character)
    }
  }

  #group(): PatternRule {
    if (this.#take("?")) this.#groupHead()
    const inside = this.#alternatives()
    if (!this.#take(")")) throw new Unsupported()
    return inside
  }

  /** A name says nothing about what is accepted; whatever else follows the mark does. */
  #groupHead(): void {
    if (this.#take(":")) return
    if (!this.#take("<")) throw new Unsupported()
    while (!this.#take(">")) if (!/\w/.test(this.#next())) throw new Unsupported()
  }

  #escaped(): PatternRule {
    const character = this.#next()
    const accepts = classes[character]
    return accepts ? charactersOf(plain.filter(accepts)) : literal(this.#escapedLiteral(character))
  }

  #escapedLiteral(character: string): string {
    const control = controls[character]
    if (control !== undefined) return control
    // Letters and digits mean something else after a backslash: boundaries, back references, code points.
    if (/[\w\s]/.test(character)) throw new Unsupported()
    return character
  }

  #class(): PatternRule {
    const negated = this.#take("^")
    const accepted: ((code: number) => boolean)[] = []
    while (!this.#take("]")) accepted.push(this.#classPart())
    const codes = plain.filter((code) => accepted.some((accepts) => accepts(code)) !== negated)
    return charactersOf(codes)
  }

  #classPart(): (code: number) => boolean {
    const low = this.#classCharacter()
    if (typeof low !== "string") return low
    const ranged = this.#peek() === "-" && this.#characters[this.#at + 1] !== "]"
    if (!ranged) return (code) => code === low.codePointAt(0)
    this.#next()
    const high = this.#classCharacter()
    if (typeof high !== "string") throw new Unsupported()
    const [from, to] = [low.codePointAt(0) ?? 0, high.codePointAt(0) ?? 0]
    return (code) => code >= from && code <= to
  }

  #classCharacter(): string | ((code: number) => boolean) {
    const character = this.#next()
    if (character !== "\\") return character
    const escaped = this.#next()
    return classes[escaped] ?? this.#escapedLiteral(escaped)
  }

  #peek(): string | undefined {
    return this.#characters[this.#at]
  }

  #next(): string {
    const character = this.#characters[this.#at++]
    if (character === undefined) throw new Unsupported()
    return character
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false
    this.#at++
    return true
  }
}

/** As it is written inside a JSON string. */
const literal = (character: string): PatternRule => ({
  rule: text(JSON.stringify(character).slice(1, -1)),
  least: 1,
  most: 1,
})

function charactersOf(codes: readonly number[]): PatternRule {
  if (codes.length === 0) throw new Unsupported()
  const ranges: [number, number][] = []
  for (const code of codes) {
    const last = ranges.at(-1)
    if (last && last[1] === code - 1) last[1] = code
    else ranges.push([code, code])
  }
  return { rule: { kind: "set", negated: false, ranges }, least: 1, most: 1 }
}

const inOrder = (parts: readonly PatternRule[]): PatternRule => ({
  rule: all(...parts.map(({ rule }) => rule)),
  least: parts.reduce((sum, { least }) => sum + least, 0),
  most: parts.reduce((sum, { most }) => sum + most, 0),
})

const either = (options: readonly PatternRule[]): PatternRule => ({
  rule: any(...options.map(({ rule }) => rule)),
  least: Math.min(...options.map(({ least }) => least)),
  most: Math.max(...options.map(({ most }) => most)),
})

const times = ({ rule, least, most }: PatternRule, from: number, to: number): PatternRule => ({
  rule: repeat(rule, from, to),
  least: least * from,
  most: most * to,
})
