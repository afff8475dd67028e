/** Checks that a text is JSON that can be read without loss; builds values from it only where they are asked for. */

/** Why a text is not such JSON, and where; the message is a clause, fit to be quoted. */
export class JsonError extends Error {
  override readonly name = "JsonError"
}

/** Makes the values of a text while it is checked. */
export interface JsonBuilder<Value> {
  string(value: string): Value
  /** A number, true, false or null. */
  scalar(written: string): Value
  /** `start` is where the opening bracket is. */
  object(start: number, members: Map<string, Value>): Value
  list(start: number, members: Value[]): Value
}

/** Throws JsonError. Nesting beyond `depthMax` is refused before it is followed. */
export function checkJson(text: string, depthMax: number): void {
  new Checker(text, depthMax, null).document()
}

/** The value of a text, built in the one pass that checks it. Throws JsonError. */
export function buildJson<Value>(text: string, depthMax: number, builder: JsonBuilder<Value>): Value {
  const value = new Checker(text, depthMax, builder).document()
  if (value === undefined) throw new TypeError("a builder makes a value of everything")
  return value
}

const codeOf = (character: string): number => character.charCodeAt(0)
const TAB = codeOf("\t")
const LINE_FEED = codeOf("\n")
const CARRIAGE_RETURN = codeOf("\r")
const SPACE = codeOf(" ")
const QUOTE = codeOf('"')
const PLUS = codeOf("+")
const COMMA = codeOf(",")
const MINUS = codeOf("-")
const DOT = codeOf(".")
const ZERO = codeOf("0")
const NINE = codeOf("9")
const COLON = codeOf(":")
const UPPER_E = codeOf("E")
const OPEN_LIST = codeOf("[")
const BACKSLASH = codeOf("\\")
const CLOSE_LIST = codeOf("]")
const LOWER_E = codeOf("e")
const OPEN_OBJECT = codeOf("{")
const CLOSE_OBJECT = codeOf("}")

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE
const isExponent = (code: number): boolean => code === LOWER_E || code === UPPER_E

/** Up to this many keys a search through the list is quicker than a set. */
const keysSearchedMax = 8
const shownCharactersMax = 40

/** One pass over the text; `at` is the next character to look at. */
class Checker<Value> {
  private readonly text: string
  private readonly depthMax: number
  private readonly builder: JsonBuilder<Value> | null
  private at = 0
  /** Keys of the objects that are open, outermost first; one stack, since an object of its own for each costs most. */
  private readonly openKeys: string[] = []

  constructor(text: string, depthMax: number, builder: JsonBuilder<Value> | null) {
    this.text = text
    this.depthMax = depthMax
    this.builder = builder
  }

  document(): Value | undefined {
    const value = this.value(0)
    this.skipSpace()
    if (this.at < this.text.length) this.fail(`${this.found()} follows the end of the value`)
    return value
  }

  /** Undefined where nothing is built. */
  private value(depth: number): Value | undefined {
    this.skipSpace()
    const code = this.text.charCodeAt(this.at)
    if (code === QUOTE) return this.stringValue()
    if (code === OPEN_OBJECT) return this.object(depth + 1)
    if (code === OPEN_LIST) return this.list(depth + 1)
    const start = this.at
    if (code === MINUS || isDigit(code)) this.number()
    else if (!this.takeWord("true") && !this.takeWord("false") && !this.takeWord("null")) {
      this.fail(`${this.found()} stands where a value should begin`)
    }
    return this.builder?.scalar(this.text.slice(start, this.at))
  }

  private stringValue(): Value | undefined {
    const start = this.at
    const escaped = this.string()
    if (this.builder === null) return undefined
    const inner = this.text.slice(start + 1, this.at - 1)
    return this.builder.string(escaped ? this.readEscapes(`"${inner}"`) : inner)
  }

  private object(depth: number): Value | undefined {
    const { builder, at: opening } = this
    const members = builder && new Map<string, Value>()
    this.enter(depth)
    if (this.takeAfterSpace(CLOSE_OBJECT)) return members ? builder?.object(opening, members) : undefined
    const firstKey = this.openKeys.length
    let seen: Set<string> | undefined
    do {
      this.skipSpace()
      const start = this.at
      const key = this.key()
      if (seen === undefined && this.openKeys.length - firstKey > keysSearchedMax) {
        seen = new Set(this.openKeys.slice(firstKey))
      }
      if (seen === undefined ? this.openKeys.includes(key, firstKey) : seen.has(key)) {
        this.at = start
        this.fail(`the key ${shown(key)} appears twice in one object`)
      }
      if (seen === undefined) this.openKeys.push(key)
      else seen.add(key)
      if (!this.takeAfterSpace(COLON)) this.fail(`${this.found()} stands where a colon should be`)
      const value = this.value(depth)
      if (members && value !== undefined) members.set(key, value)
    } while (this.takeAfterSpace(COMMA))
    if (!this.takeAfterSpace(CLOSE_OBJECT)) this.fail(`${this.found()} stands where "," or "}" should be`)
    this.openKeys.length = firstKey
    return members ? builder?.object(opening, members) : undefined
  }

  private key(): string {
    const start = this.at
    if (this.text.charCodeAt(start) !== QUOTE) this.fail(`${this.found()} stands where a key should begin`)
    const escaped = this.string()
    const key = this.text.slice(start + 1, this.at - 1)
    return escaped ? this.readEscapes(`"${key}"`) : key
  }

  private list(depth: number): Value | undefined {
    const { builder, at: opening } = this
    const members: Value[] | null = builder && []
    this.enter(depth)
    if (this.takeAfterSpace(CLOSE_LIST)) return members ? builder?.list(opening, members) : undefined
    do {
      const value = this.value(depth)
      if (members && value !== undefined) members.push(value)
    } while (this.takeAfterSpace(COMMA))
    if (!this.takeAfterSpace(CLOSE_LIST)) this.fail(`${this.found()} stands where "," or "]" should be`)
    return members ? builder?.list(opening, members) : undefined
  }

  /** Steps past the bracket, unless it opens one level too many: 10,000 levels must not reach the stack. */
  private enter(depth: number): void {
    if (depth > this.depthMax) this.fail(`it is nested more than ${this.depthMax} levels deep`)
    this.at++
  }

  /** Steps past a string and says whether it has escapes. */
  private string(): boolean {
    const { text } = this
    for (let at = this.at + 1; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) {
        this.at = at + 1
        return false
      }
      if (code === BACKSLASH) {
        this.escapedString(at)
        return true
      }
      if (code < SPACE) {
        this.at = at
        this.fail("a control character stands unescaped in a string")
      }
    }
    return this.fail("the string that begins here does not end")
  }

  /** Finds the end of a string whose first escape is at `escapeAt`, and has the platform read its escapes. */
  private escapedString(escapeAt: number): void {
    const { text } = this
    let end = escapeAt
    while (end < text.length && text.charCodeAt(end) !== QUOTE)
      end += text.charCodeAt(end) === BACKSLASH ? 2 : 1
    if (end >= text.length) this.fail("the string that begins here does not end")
    const value = this.readEscapes(text.slice(this.at, end + 1))
    if (!value.isWellFormed()) this.fail("the string that begins here holds half of a surrogate pair")
    this.at = end + 1
  }

  private readEscapes(quoted: string): string {
    try {
      // Its text starts and ends with the quotes of one string, so it can only be one.
      return JSON.parse(quoted) as string
    } catch {
      return this.fail("the string that begins here holds an invalid escape or a control character")
    }
  }

  private number(): void {
    const { text } = this
    if (text.charCodeAt(this.at) === MINUS) this.at++
    if (text.charCodeAt(this.at) === ZERO) this.at++
    else this.digits()
    if (text.charCodeAt(this.at) === DOT) {
      this.at++
      this.digits()
    }
    if (isExponent(text.charCodeAt(this.at))) {
      this.at++
      const sign = text.charCodeAt(this.at)
      if (sign === PLUS || sign === MINUS) this.at++
      this.digits()
    }
  }

  private digits(): void {
    const { text } = this
    if (!isDigit(text.charCodeAt(this.at))) this.fail(`${this.found()} stands where a digit should be`)
    while (isDigit(text.charCodeAt(this.at))) this.at++
  }

  private takeWord(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false
    this.at += word.length
    return true
  }

  private takeAfterSpace(code: number): boolean {
    this.skipSpace()
    if (this.text.charCodeAt(this.at) !== code) return false
    this.at++
    return true
  }

  private skipSpace(): void {
    const { text } = this
    for (;;) {
      const code = text.charCodeAt(this.at)
      if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) return
      this.at++
    }
  }

  private found(): string {
    const code = this.text.codePointAt(this.at)
    return code === undefined ? "the end of the text" : shown(String.fromCodePoint(code))
  }

  private fail(clause: string): never {
    const before = this.text.slice(0, this.at)
    const line = before.split("\n").length
    const column = this.at - before.lastIndexOf("\n")
    throw new JsonError(`${clause} (line ${line}, column ${column})`)
  }
}

const shown = (text: string): string =>
  JSON.stringify(text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}...` : text)
