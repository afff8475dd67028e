/** Reads and prints JSON without loss: every key, the order of keys and the text of numbers survive; what cannot is refused. */
import { noteReadSize } from "../contract/read-size.ts"

/** Why a text cannot be read without loss, and where; the message is a clause, fit to be quoted. */
export class JsonError extends Error {
  override readonly name = "JsonError"
}

/** A number as it was written, so that 1e400, 1.0 and 12345678901234567890 print as they came. */
export class JsonNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An object by key, in the order given: `__proto__` is an ordinary key, and `"10"` before `"9"` stays there. */
export class JsonObject extends Map<string, JsonValue> {}

type JsonList = readonly JsonValue[]
export type JsonValue = string | boolean | null | JsonNumber | JsonObject | JsonList

/** As JavaScript has it; undefined where the text is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The same; the text as it is where it is no JSON. */
export function jsonOrText(text: string): unknown {
  const value = parsedJson(text)
  return value === undefined ? text : value
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Without fields where the value is no object. */
export const objectOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {})

/** Levels of arrays and objects inside one another, unless the caller asks for another bound. */
export const jsonDepthMax = 64

/** Reads one JSON text in UTF-8; throws JsonError. Nesting beyond `depthMax` is refused before it is followed. */
export function readJson(bytes: Uint8Array, depthMax: number = jsonDepthMax): JsonValue {
  noteReadSize(bytes.byteLength)
  return new Reader(decodeUtf8(bytes), depthMax).document()
}

/** Throws JsonError for a text that JSON.parse may take but that cannot be read without loss. */
export function checkJson(text: string, depthMax: number = jsonDepthMax): void {
  noteReadSize(text.length)
  new Reader(text, depthMax).document()
}

/** Prints compactly: keys in their order, numbers as they were written, strings as JSON.stringify writes them. */
export function printJson(value: JsonValue): string {
  if (value instanceof JsonNumber) return value.text
  if (value instanceof JsonObject) {
    const members = Array.from(value, ([key, member]) => `${JSON.stringify(key)}:${printJson(member)}`)
    return `{${members.join(",")}}`
  }
  if (isList(value)) return `[${value.map(printJson).join(",")}]`
  return JSON.stringify(value)
}

/** How many objects and lists lie inside one another, this one included; 0 for other values. */
export function depthOf(value: JsonValue): number {
  const members = value instanceof JsonObject ? value.values() : isList(value) ? value : null
  if (!members) return 0
  let deepest = 0
  for (const member of members) deepest = Math.max(deepest, depthOf(member))
  return deepest + 1
}

/** Array.isArray does not narrow a readonly array. */
export const isList = (value: JsonValue | undefined): value is JsonList => Array.isArray(value)

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Uint8Array): string {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (cause) {
    throw new JsonError("it is not valid UTF-8", { cause })
  }
  if (text.startsWith("\uFEFF")) throw new JsonError("it starts with a byte order mark")
  return text
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

const shownCharactersMax = 40

/** What is read is never changed, so all that is empty is one: 8 MiB of {} would be millions of maps. */
const emptyObject = new JsonObject()
const emptyList: JsonList = []

/** Likewise numbers of so many characters, each once. */
const sharedCharactersMax = 3
const sharedNumbers = new Map<string, JsonNumber>()

function numberOf(text: string): JsonNumber {
  if (text.length > sharedCharactersMax) return new JsonNumber(text)
  let number = sharedNumbers.get(text)
  if (!number) sharedNumbers.set(text, (number = new JsonNumber(text)))
  return number
}

/** One pass over the text; `at` is the next character to look at. */
class Reader {
  private readonly text: string
  private readonly depthMax: number
  private at = 0

  constructor(text: string, depthMax: number) {
    this.text = text
    this.depthMax = depthMax
  }

  document(): JsonValue {
    const value = this.value(0)
    this.skipSpace()
    if (this.at < this.text.length) this.fail(`${this.found()} follows the end of the value`)
    return value
  }

  private value(depth: number): JsonValue {
    this.skipSpace()
    const code = this.text.charCodeAt(this.at)
    if (code === QUOTE) return this.string()
    if (code === OPEN_OBJECT) return this.object(depth + 1)
    if (code === OPEN_LIST) return this.list(depth + 1)
    if (code === MINUS || isDigit(code)) return this.number()
    if (this.takeWord("true")) return true
    if (this.takeWord("false")) return false
    if (this.takeWord("null")) return null
    return this.fail(`${this.found()} stands where a value should begin`)
  }

  private object(depth: number): JsonObject {
    this.enter(depth)
    if (this.takeAfterSpace(CLOSE_OBJECT)) return emptyObject
    const members = new JsonObject()
    do {
      this.skipSpace()
      const start = this.at
      if (this.text.charCodeAt(start) !== QUOTE) this.fail(`${this.found()} stands where a key should begin`)
      const key = this.string()
      if (members.has(key)) {
        this.at = start
        this.fail(`the key ${shown(key)} appears twice in one object`)
      }
      if (!this.takeAfterSpace(COLON)) this.fail(`${this.found()} stands where a colon should be`)
      members.set(key, this.value(depth))
    } while (this.takeAfterSpace(COMMA))
    if (!this.takeAfterSpace(CLOSE_OBJECT)) this.fail(`${this.found()} stands where "," or "}" should be`)
    return members
  }

  private list(depth: number): JsonList {
    this.enter(depth)
    if (this.takeAfterSpace(CLOSE_LIST)) return emptyList
    const members: JsonValue[] = []
    do members.push(this.value(depth))
    while (this.takeAfterSpace(COMMA))
    if (!this.takeAfterSpace(CLOSE_LIST)) this.fail(`${this.found()} stands where "," or "]" should be`)
    return members
  }

  /** Steps past the bracket, unless it opens one level too many: 10,000 levels must not reach the stack. */
  private enter(depth: number): void {
    if (depth > this.depthMax) this.fail(`it is nested more than ${this.depthMax} levels deep`)
    this.at++
  }

  private string(): string {
    const { text } = this
    const start = this.at + 1
    for (let at = start; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) {
        this.at = at + 1
        return text.slice(start, at)
      }
      if (code === BACKSLASH) return this.escapedString(at)
      if (code < SPACE) {
        this.at = at
        this.fail("a control character stands unescaped in a string")
      }
    }
    return this.fail("the string that begins here does not end")
  }

  /** Finds the end of a string whose first escape is at `escapeAt`, and has the platform read its escapes. */
  private escapedString(escapeAt: number): string {
    const { text } = this
    let end = escapeAt
    while (end < text.length && text.charCodeAt(end) !== QUOTE)
      end += text.charCodeAt(end) === BACKSLASH ? 2 : 1
    if (end >= text.length) this.fail("the string that begins here does not end")
    const value = this.readEscapes(text.slice(this.at, end + 1))
    if (!value.isWellFormed()) this.fail("the string that begins here holds half of a surrogate pair")
    this.at = end + 1
    return value
  }

  private readEscapes(quoted: string): string {
    try {
      // Its text starts and ends with the quotes of one string, so it can only be one.
      return JSON.parse(quoted)
    } catch {
      return this.fail("the string that begins here holds an invalid escape or a control character")
    }
  }

  private number(): JsonNumber {
    const { text } = this
    const start = this.at
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
    return numberOf(text.slice(start, this.at))
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

/** Quotes a piece of text in a sentence, cut so that the sentence stays short. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}...` : text)

/** Of the shape of a text, checked before anything is built from it. */
interface JsonBounds {
  readonly depthMax: number
  /** Objects and lists. */
  readonly containersMax: number
  /** Of lists and objects, after the first of each. */
  readonly valuesMax: number
}

export const standardBounds: JsonBounds = {
  // A request nests its own parts a few deep; the rest is for the JSON schemas of tools and formats.
  depthMax: 256,
  // A conversation of 2048 messages with parts and calls stays far below.
  containersMax: 65_536,
  // A list of texts that is refused later takes the main thread 0.5 us for each.
  valuesMax: 131_072,
}

/** One pass over the bytes; what is not JSON is left to the parser. Throws JsonError. */
export function checkJsonBounds(
  bytes: Uint8Array,
  { depthMax, containersMax, valuesMax }: JsonBounds = standardBounds,
): void {
  noteReadSize(bytes.byteLength)
  let depth = 0
  let containers = 0
  let values = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at)
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth++
        containers++
        if (depth > depthMax) throw tooLarge(`nests more than ${depthMax} deep`)
        if (containers > containersMax) throw tooLarge(`holds more than ${containersMax} objects and lists`)
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--
        break
      case COMMA:
        values++
        if (values > valuesMax) throw tooLarge(`holds more than ${valuesMax} values`)
        break
      default:
    }
  }
}

function endOfString(bytes: Uint8Array, start: number): number {
  let at = bytes.indexOf(QUOTE, start + 1)
  while (at > 0 && isEscaped(bytes, at)) at = bytes.indexOf(QUOTE, at + 1)
  return at < 0 ? bytes.length : at
}

/** A quote is escaped by an odd number of backslashes before it. */
function isEscaped(bytes: Uint8Array, quote: number): boolean {
  let backslashes = 0
  while (bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}

const tooLarge = (found: string): JsonError => new JsonError(`its JSON ${found}`)
