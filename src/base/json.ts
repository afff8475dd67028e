/** Reads and prints JSON without loss: every key, the order of keys and the text of numbers survive; what cannot is refused. */
import { type JsonBuilder, buildJson, checkJson, JsonError } from "./json-check.ts"

export { JsonError } from "./json-check.ts"

/** A number as it was written, so that 1e400, 1.0 and 12345678901234567890 print as they came. */
export class JsonNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * An object or list of checked text. In a long text its members are made when they are asked for: a state of a million
 * values is only printed, and a value for each of them would hold up every other request for a second.
 */
abstract class JsonContainer {
  protected readonly text: string
  /** Where its opening bracket is. */
  protected readonly start: number
  private count: number | undefined

  constructor(text: string, start: number) {
    this.text = text
    this.start = start
  }

  /** How many members there are; counting makes none of them. */
  get size(): number {
    if (this.count === undefined) {
      this.count = 0
      for (const _ of this.spans()) this.count++
    }
    return this.count
  }

  print(): string {
    return compact(this.text, this.start)
  }

  /** How many objects and lists lie inside one another, this one included. */
  depth(): number {
    return measure(this.text, this.start).depth
  }

  protected *spans(): Generator<MemberSpan> {
    const { text } = this
    let at = skipSpace(text, this.start + 1)
    while (!isClosing(text.charCodeAt(at))) {
      const span = memberSpan(text, at)
      yield span
      at = skipSpace(text, span.end)
      if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
    }
  }
}

/** Where a member of an object or list stands; in a list its value is all of it. */
interface MemberSpan {
  readonly start: number
  readonly valueStart: number
  readonly end: number
}

/** An object whose keys are only text: `__proto__` is an ordinary key, and `"10"` before `"9"` stays there. */
export class JsonObject extends JsonContainer {
  private made: Map<string, JsonValue> | undefined

  constructor(text: string, start: number, made?: Map<string, JsonValue>) {
    super(text, start)
    this.made = made
  }

  override get size(): number {
    return this.made?.size ?? super.size
  }

  /** By key, in the order given. */
  members(): ReadonlyMap<string, JsonValue> {
    if (this.made === undefined) {
      this.made = new Map()
      for (const { start, valueStart, end } of this.spans()) {
        this.made.set(
          stringAt(this.text, start, skipString(this.text, start)),
          valueAt(this.text, valueStart, end),
        )
      }
    }
    return this.made
  }

  get(key: string): JsonValue | undefined {
    return this.members().get(key)
  }

  has(key: string): boolean {
    return this.members().has(key)
  }
}

/** A list; each walk over a long text makes its members anew, so that one that stops early makes few. */
export class JsonList extends JsonContainer implements Iterable<JsonValue> {
  private readonly made: readonly JsonValue[] | undefined

  constructor(text: string, start: number, made?: readonly JsonValue[]) {
    super(text, start)
    this.made = made
  }

  override get size(): number {
    return this.made?.length ?? super.size
  }

  map<Result>(make: (value: JsonValue, at: number) => Result): Result[] {
    return this.made ? this.made.map((value, at) => make(value, at)) : Array.from(this, make)
  }

  [Symbol.iterator](): Iterator<JsonValue> {
    return this.made ? this.made[Symbol.iterator]() : this.members()
  }

  private *members(): Generator<JsonValue> {
    for (const { valueStart, end } of this.spans()) yield valueAt(this.text, valueStart, end)
  }
}

export type JsonValue = string | boolean | null | JsonNumber | JsonObject | JsonList

/** Levels of arrays and objects inside one another, unless the caller asks for another bound. */
export const jsonDepthMax = 64

/** Reads one JSON text in UTF-8; throws JsonError. Nesting beyond `depthMax` is refused before it is followed. */
export function readJson(bytes: Uint8Array, depthMax: number = jsonDepthMax): JsonValue {
  const text = decodeUtf8(bytes)
  if (text.length <= builtCharactersMax) return buildJson(text, depthMax, builderOf(text))
  checkJson(text, depthMax)
  return valueAt(text, skipSpace(text, 0), text.trimEnd().length)
}

/** Up to this length the values of a text are made while it is checked, which is quicker when most are looked at. */
const builtCharactersMax = 16 * 1024

const builderOf = (text: string): JsonBuilder<JsonValue> => ({
  string: (value) => value,
  scalar,
  object: (start, members) => new JsonObject(text, start, members),
  list: (start, members) => new JsonList(text, start, members),
})

/** Prints compactly: keys in their order, numbers as they were written, strings as JSON.stringify writes them. */
export function printJson(value: JsonValue): string {
  if (value instanceof JsonContainer) return value.print()
  return value instanceof JsonNumber ? value.text : JSON.stringify(value)
}

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
const SPACE = codeOf(" ")
const QUOTE = codeOf('"')
const COMMA = codeOf(",")
const COLON = codeOf(":")
const OPEN_LIST = codeOf("[")
const BACKSLASH = codeOf("\\")
const CLOSE_LIST = codeOf("]")
const OPEN_OBJECT = codeOf("{")
const CLOSE_OBJECT = codeOf("}")

// From here on the text has been checked, so only what tells its parts apart is looked at.

const isOpening = (code: number): boolean => code === OPEN_OBJECT || code === OPEN_LIST
const isClosing = (code: number): boolean => code === CLOSE_OBJECT || code === CLOSE_LIST
/** Space between tokens; control characters occur nowhere else. */
const isSpace = (code: number): boolean => code <= SPACE

function valueAt(text: string, start: number, end: number): JsonValue {
  const code = text.charCodeAt(start)
  if (code === QUOTE) return stringAt(text, start, end)
  if (code === OPEN_OBJECT) return new JsonObject(text, start)
  if (code === OPEN_LIST) return new JsonList(text, start)
  return scalar(text.slice(start, end))
}

function scalar(written: string): JsonValue {
  if (written === "null") return null
  return written === "true" || (written === "false" ? false : new JsonNumber(written))
}

function stringAt(text: string, start: number, end: number): string {
  const quoted = text.slice(start, end)
  // The check has found one string between these quotes.
  return quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1)
}

function memberSpan(text: string, start: number): MemberSpan {
  const end = skipValue(text, start)
  const colon = skipSpace(text, end)
  if (text.charCodeAt(colon) !== COLON) return { start, valueStart: start, end }
  const valueStart = skipSpace(text, colon + 1)
  return { start, valueStart, end: skipValue(text, valueStart) }
}

function skipValue(text: string, start: number): number {
  const code = text.charCodeAt(start)
  if (code === QUOTE) return skipString(text, start)
  return isOpening(code) ? measure(text, start).end : skipScalar(text, start)
}

function skipString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1)
  while (isEscaped(text, quote)) quote = text.indexOf('"', quote + 1)
  return quote + 1
}

/** A quote is escaped when an odd number of backslashes stands before it. */
function isEscaped(text: string, quote: number): boolean {
  let before = quote - 1
  while (text.charCodeAt(before) === BACKSLASH) before--
  return (quote - before) % 2 === 0
}

function skipScalar(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === COMMA || isClosing(code) || isSpace(code)) break
    at++
  }
  return at
}

function skipSpace(text: string, start: number): number {
  let at = start
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

/** Where an object or list ends, and how many of them lie inside one another. */
function measure(text: string, start: number): { end: number; depth: number } {
  let open = 0
  let depth = 0
  let at = start
  do {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = skipString(text, at)
      continue
    }
    if (isOpening(code)) depth = Math.max(depth, ++open)
    else if (isClosing(code)) open--
    at++
  } while (open > 0)
  return { end: at, depth }
}

/** Copies the text of an object or list without the space between tokens, and with escapes the short way. */
function compact(text: string, start: number): string {
  const { end } = measure(text, start)
  const pieces: string[] = []
  let copied = start
  const replace = (from: number, to: number, replacement: string): void => {
    pieces.push(text.slice(copied, from), replacement)
    copied = to
  }
  for (let at = start; at < end;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const stringEnd = skipString(text, at)
      const quoted = text.slice(at, stringEnd)
      if (quoted.includes("\\")) replace(at, stringEnd, JSON.stringify(JSON.parse(quoted)))
      at = stringEnd
    } else if (isSpace(code)) {
      const spaceEnd = skipSpace(text, at)
      replace(at, spaceEnd, "")
      at = spaceEnd
    } else at++
  }
  pieces.push(text.slice(copied, end))
  return pieces.join("")
}
