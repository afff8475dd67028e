/** Reads an ECMAScript regular expression into a tree, for the part of the language that is regular, and looking ahead. */
import { type Range, everything, rangesWithout, tidyRanges } from "./automaton.ts"
import { SchemaRefusal } from "./budget.ts"

export type Expression =
  | { readonly kind: "set"; readonly ranges: readonly Range[] }
  | { readonly kind: "all"; readonly parts: readonly Expression[] }
  | { readonly kind: "any"; readonly options: readonly Expression[] }
  | { readonly kind: "repeat"; readonly part: Expression; readonly min: number; readonly max: number }
  | { readonly kind: "start" }
  | { readonly kind: "end" }
  | { readonly kind: "ahead"; readonly part: Expression; readonly negated: boolean }

export interface ReadExpression {
  readonly expression: Expression
  /**
   * Characters beyond 0xFFFF are left out: by the older syntax, the only one by which some patterns are valid, they are
   * two characters, and properties of characters are only looked up below.
   */
  readonly basic: boolean
}

const DEPTH_MAX = 100
const digits: readonly Range[] = [[0x30, 0x39]]
const word: readonly Range[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]
const white: readonly Range[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const lineEnds: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]
const not = (ranges: readonly Range[]): Range[] => rangesWithout(everything, ranges)
const classes: Readonly<Record<string, readonly Range[]>> = {
  d: digits,
  D: not(digits),
  w: word,
  W: not(word),
  s: white,
  S: not(white),
}
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 }

export function readExpression(pattern: string): ReadExpression {
  const legacy = !isValid(pattern, "u")
  if (legacy && !isValid(pattern, ""))
    throw new SchemaRefusal(`the pattern ${shown(pattern)} is not a regular expression`)
  const parser = new Parser(pattern, legacy)
  return { expression: parser.whole(), basic: parser.basic }
}

export const shown = (pattern: string): string => JSON.stringify(pattern.slice(0, 100))

function isValid(pattern: string, flags: string): boolean {
  try {
    return new RegExp(pattern, flags) instanceof RegExp
  } catch {
    return false
  }
}

class Parser {
  readonly #pattern: string
  readonly #characters: readonly string[]
  readonly #legacy: boolean
  basic: boolean
  #at = 0
  #depth = 0

  constructor(pattern: string, legacy: boolean) {
    this.#pattern = pattern
    this.#legacy = legacy
    this.basic = legacy || /\\p\{/i.test(pattern)
    this.#characters = Array.from(pattern)
  }

  whole(): Expression {
    const found = this.#alternatives()
    if (this.#at < this.#characters.length) throw this.#unsupported("a parenthesis")
    return found
  }

  #alternatives(): Expression {
    if (++this.#depth > DEPTH_MAX) throw this.#unsupported("groups nested so deeply")
    const options = [this.#sequence()]
    while (this.#take("|")) options.push(this.#sequence())
    this.#depth--
    return options.length === 1 && options[0] ? options[0] : { kind: "any", options }
  }

  #sequence(): Expression {
    const parts: Expression[] = []
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek())
      parts.push(this.#quantified(this.#atom()))
    return parts.length === 1 && parts[0] ? parts[0] : { kind: "all", parts }
  }

  #quantified(part: Expression): Expression {
    const counts = this.#counts()
    if (!counts) return part
    // Whether the pattern takes much or little changes nothing about what it accepts.
    this.#take("?")
    return { kind: "repeat", part, min: counts[0], max: counts[1] }
  }

  #counts(): readonly [number, number] | null {
    if (this.#take("*")) return [0, Infinity]
    if (this.#take("+")) return [1, Infinity]
    if (this.#take("?")) return [0, 1]
    if (this.#peek() !== "{") return null
    const [given, least, comma, most] =
      /^\{(\d+)(,?)(\d*)\}/.exec(this.#characters.slice(this.#at, this.#at + 24).join("")) ?? []
    if (given === undefined) return null
    this.#at += given.length
    if (comma === "") return [Number(least), Number(least)]
    return [Number(least), most === "" ? Infinity : Number(most)]
  }

  #atom(): Expression {
    const character = this.#next()
    switch (character) {
      case "(":
        return this.#group()
      case "[":
        return this.#set(this.#class())
      case ".":
        return this.#set(not(lineEnds))
      case "\\":
        return this.#escaped()
      case "^":
        return { kind: "start" }
      case "$":
        return { kind: "end" }
      default:
        return this.#set([codeRange(character.codePointAt(0) ?? 0)])
    }
  }

  #group(): Expression {
    const ahead = this.#take("?") ? this.#groupHead() : null
    const inside = this.#alternatives()
    if (!this.#take(")")) throw this.#unsupported("a group without an end")
    return ahead ? { kind: "ahead", part: inside, negated: ahead === "!" } : inside
  }

  /** A name says nothing about what is accepted; a look ahead does. */
  #groupHead(): "=" | "!" | null {
    if (this.#take(":")) return null
    if (this.#take("=")) return "="
    if (this.#take("!")) return "!"
    if (!this.#take("<") || this.#peek() === "=" || this.#peek() === "!")
      throw this.#unsupported("a group of this kind")
    while (!this.#take(">")) this.#next()
    return null
  }

  #escaped(): Expression {
    const character = this.#peek() ?? ""
    if (/[1-9]/.test(character) || (character === "k" && !this.#legacy))
      throw this.#unsupported("a back reference")
    if (character === "b" || character === "B") throw this.#unsupported("a word boundary")
    return this.#set(this.#escapedRanges())
  }

  /** After the backslash, in a class or outside. */
  #escapedRanges(): readonly Range[] {
    const character = this.#next()
    const known = classes[character]
    if (known) return known
    if ((character === "p" || character === "P") && !this.#legacy) return this.#property(character === "P")
    return [codeRange(this.#escapedCode(character))]
  }

  #escapedCode(character: string): number {
    const control = controls[character]
    if (control !== undefined) return control
    switch (character) {
      case "0":
        return 0
      case "c":
        return (this.#next().codePointAt(0) ?? 0) % 32
      case "x":
        return this.#hex(2) ?? character.charCodeAt(0)
      case "u":
        return this.#unicode() ?? character.charCodeAt(0)
      default:
        return character.codePointAt(0) ?? 0
    }
  }

  #unicode(): number | null {
    if (!this.#legacy && this.#take("{")) {
      let digitsRead = ""
      while (!this.#take("}")) digitsRead += this.#next()
      return Number.parseInt(digitsRead, 16)
    }
    const high = this.#hex(4)
    if (high === null || high < 0xd800 || high > 0xdbff || this.#legacy) return high
    const before = this.#at
    if (this.#take("\\") && this.#take("u")) {
      const low = this.#hex(4)
      if (low !== null && low >= 0xdc00 && low <= 0xdfff)
        return 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00)
    }
    this.#at = before
    return high
  }

  #hex(count: number): number | null {
    const read = this.#characters.slice(this.#at, this.#at + count).join("")
    if (!/^[0-9a-fA-F]+$/.test(read) || read.length !== count) return null
    this.#at += count
    return Number.parseInt(read, 16)
  }

  #property(negated: boolean): readonly Range[] {
    let name = this.#next()
    while (!this.#take("}")) name += this.#next()
    const ranges = propertyRanges(`\\p${name}}`)
    return negated ? not(ranges) : ranges
  }

  #class(): readonly Range[] {
    const negated = this.#take("^")
    const ranges: Range[] = []
    while (!this.#take("]")) ranges.push(...this.#classPart())
    return negated ? not(ranges) : ranges
  }

  #classPart(): readonly Range[] {
    const low = this.#classAtom()
    const ranged = this.#peek() === "-" && this.#characters[this.#at + 1] !== "]"
    if (!ranged) return low
    this.#next()
    const high = this.#classAtom()
    const [from] = low
    const [to] = high
    if (from && to && isOne(low) && isOne(high)) return [[from[0], to[1]]]
    // The older syntax lets a class stand at an end of a range: the dash is then a dash.
    return [...low, codeRange(0x2d), ...high]
  }

  #classAtom(): readonly Range[] {
    const character = this.#next()
    if (character !== "\\") return [codeRange(character.codePointAt(0) ?? 0)]
    if (this.#take("b")) return [codeRange(8)]
    return this.#escapedRanges()
  }

  #set(ranges: readonly Range[]): Expression {
    const left = this.basic ? rangesWithout(ranges, [[0x10000, 0x10ffff]]) : ranges
    return { kind: "set", ranges: rangesWithout(left, [[0xd800, 0xdfff]]) }
  }

  #peek(): string | undefined {
    return this.#characters[this.#at]
  }

  #next(): string {
    const character = this.#characters[this.#at++]
    if (character === undefined) throw this.#unsupported("what it ends with")
    return character
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false
    this.#at++
    return true
  }

  #unsupported(what: string): SchemaRefusal {
    return new SchemaRefusal(`the pattern ${shown(this.#pattern)} has ${what}, which cannot be enforced`)
  }
}

const codeRange = (code: number): Range => [code, code]
const isOne = (ranges: readonly Range[]): boolean => ranges.length === 1 && ranges[0]?.[0] === ranges[0]?.[1]

const PROPERTIES_KEPT_MAX = 32
const properties = new Map<string, readonly Range[]>()

/** Asks the regular expressions of the platform, once for each property. */
function propertyRanges(property: string): readonly Range[] {
  const known = properties.get(property)
  if (known) return known
  const matcher = new RegExp(property, "u")
  const found: Range[] = []
  for (let code = 0; code <= 0xffff; code++)
    if ((code < 0xd800 || code > 0xdfff) && matcher.test(String.fromCodePoint(code))) found.push([code, code])
  const ranges = tidyRanges(found)
  const [oldest] = properties.keys()
  if (properties.size >= PROPERTIES_KEPT_MAX && oldest !== undefined) properties.delete(oldest)
  properties.set(property, ranges)
  return ranges
}
