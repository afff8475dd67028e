/** Reads what a model writes, piece by piece, into reasoning, text and function calls. */
import type { CallFormat, Family } from "./families.ts"

/** What a reader of model output answers, whatever the family. */
export type ReadEvent =
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly name: string }
  | { readonly kind: "arguments"; readonly text: string }

export interface Reader {
  read(piece: string): ReadEvent[]
  /** What was held back because it could have been the start of a mark. */
  end(): ReadEvent[]
  /** A call whose name is not known yet, with what was written of it: a grammar can take over here. */
  readonly opened: { readonly format: CallFormat; readonly body: string } | null
  readonly inReasoning: boolean
  /** Inside a call: its name is known and its arguments are not whole yet. */
  readonly inCall: boolean
}

/** How much of a text's end must wait, because it may be the start of a mark that more text completes. */
function holdBack(text: string, marks: readonly string[]): number {
  let kept = 0
  for (const mark of marks)
    for (let length = Math.min(mark.length - 1, text.length); length > kept; length--)
      if (text.endsWith(mark.slice(0, length))) {
        kept = length
        break
      }
  return kept
}

interface ReaderOptions {
  /** The prompt already opened the reasoning. */
  readonly startsReasoning: boolean
  /** Without tools, text that looks like a call is text. */
  readonly tools: boolean
}

/** A body that is still not a call after so many characters is text. */
const HEAD_CHARACTERS_MAX = 512
const BODY_CHARACTERS_MAX = 1_000_000

export function createReader(family: Family, options: ReaderOptions): Reader {
  return family.name === "gpt-oss" ? new HarmonyReader() : new MarkReader(family, options)
}

type State =
  | { readonly kind: "text" }
  | { readonly kind: "reasoning" }
  /** After the opening mark, before the name is known. */
  | { readonly kind: "head"; readonly format: CallFormat }
  | { readonly kind: "arguments"; readonly format: CallFormat; readonly scan: JsonObjectScan }
  /** After the arguments, up to the closing mark. */
  | { readonly kind: "tail"; readonly format: CallFormat }

class MarkReader implements Reader {
  readonly #family: Family
  readonly #calls: readonly CallFormat[]
  #state: State
  #held = ""
  #written = false
  /** Space at the start of the answer and after a call is not text. */
  #starts = true

  constructor(family: Family, { startsReasoning, tools }: ReaderOptions) {
    this.#family = family
    this.#calls = tools ? family.calls : []
    this.#state = { kind: startsReasoning ? "reasoning" : "text" }
  }

  get opened(): { readonly format: CallFormat; readonly body: string } | null {
    return this.#state.kind === "head" ? { format: this.#state.format, body: this.#held } : null
  }

  get inReasoning(): boolean {
    return this.#state.kind === "reasoning"
  }

  get inCall(): boolean {
    return this.#state.kind === "arguments"
  }

  read(piece: string): ReadEvent[] {
    this.#held += piece
    const events: ReadEvent[] = []
    for (let moved = true; moved;) moved = this.#move(events)
    return events
  }

  end(): ReadEvent[] {
    const rest = this.#held
    this.#held = ""
    const state = this.#state
    this.#state = { kind: "text" }
    switch (state.kind) {
      case "reasoning":
        return rest === "" ? [] : [{ kind: "reasoning", text: rest }]
      case "head":
        return this.#readBody(state.format, rest) ?? textEvents(state.format.open + rest)
      case "arguments":
        return rest === "" ? [] : [{ kind: "arguments", text: rest }]
      case "tail":
        return []
      case "text":
        return textEvents(rest)
    }
  }

  /** One step; returns whether there may be another. */
  #move(events: ReadEvent[]): boolean {
    switch (this.#state.kind) {
      case "text":
        return this.#moveText(events)
      case "reasoning":
        return this.#moveReasoning(events)
      case "head":
        return this.#moveHead(this.#state.format, events)
      case "arguments":
        return this.#moveArguments(this.#state, events)
      case "tail":
        return this.#moveTail(this.#state.format)
    }
  }

  #moveText(events: ReadEvent[]): boolean {
    if (this.#starts) this.#held = this.#held.trimStart()
    const { reasoning } = this.#family
    const formats = this.#calls.filter(
      ({ onlyAtStart, open }) => !onlyAtStart || (!this.#written && this.#held.startsWith(open)),
    )
    const marks = [
      ...formats.map(({ open }) => open),
      ...(this.#calls.length > 0 ? this.#family.dropped : []),
      ...(reasoning ? [reasoning.open, reasoning.close] : []),
    ]
    const found = firstMark(this.#held, marks)
    if (!found) {
      // Space before a call is not text; whether one follows is not known yet.
      const sure = this.#held.slice(0, this.#held.length - holdBack(this.#held, marks))
      const text = this.#calls.length > 0 ? sure.trimEnd() : sure
      this.#emitText(events, text)
      this.#held = this.#held.slice(text.length)
      return false
    }
    this.#emitText(events, this.#held.slice(0, found.index).replace(/\s+$/, ""))
    this.#held = this.#held.slice(found.index + found.mark.length)
    const format = formats.find(({ open }) => open === found.mark)
    if (format) this.#state = { kind: "head", format }
    else if (found.mark === reasoning?.open) this.#state = { kind: "reasoning" }
    return true
  }

  #emitText(events: ReadEvent[], text: string): void {
    if (text === "") return
    this.#written = true
    this.#starts = false
    events.push({ kind: "text", text })
  }

  #moveReasoning(events: ReadEvent[]): boolean {
    const close = this.#family.reasoning?.close ?? ""
    const index = close === "" ? -1 : this.#held.indexOf(close)
    const until = index >= 0 ? index : this.#held.length - holdBack(this.#held, [close])
    const text = this.#held.slice(0, until)
    if (text !== "") events.push({ kind: "reasoning", text })
    this.#held = this.#held.slice(index >= 0 ? index + close.length : until)
    if (index < 0) return false
    this.#state = { kind: "text" }
    return true
  }

  #moveHead(format: CallFormat, events: ReadEvent[]): boolean {
    const head = format.head.exec(this.#held)
    if (head) {
      events.push({ kind: "call", name: head[1] ?? head[2] ?? "" })
      this.#written = true
      this.#held = this.#held.slice(head[0].length)
      this.#state = { kind: "arguments", format, scan: new JsonObjectScan() }
      return true
    }
    const close = format.read && format.close !== "" ? this.#held.indexOf(format.close) : -1
    if (close >= 0) return this.#endBody(format, close, events)
    const limit = format.read ? BODY_CHARACTERS_MAX : HEAD_CHARACTERS_MAX
    if (this.#held.length < limit) return false
    this.#state = { kind: "text" }
    this.#emitText(events, format.open + this.#held)
    this.#held = ""
    return false
  }

  #endBody(format: CallFormat, close: number, events: ReadEvent[]): boolean {
    const body = this.#held.slice(0, close)
    const read = this.#readBody(format, body)
    if (read) this.#written = true
    this.#starts = read !== null
    events.push(...(read ?? textEvents(format.open + body + format.close)))
    this.#held = this.#held.slice(close + format.close.length)
    this.#state = { kind: "text" }
    return true
  }

  #readBody(format: CallFormat, body: string): ReadEvent[] | null {
    const call = format.read?.(body)
    return call
      ? [
          { kind: "call", name: call.name },
          { kind: "arguments", text: call.arguments },
        ]
      : null
  }

  #moveArguments({ scan, format }: Extract<State, { kind: "arguments" }>, events: ReadEvent[]): boolean {
    const end = scan.scan(this.#held)
    const text = end === null ? this.#held : this.#held.slice(0, end)
    if (text !== "") events.push({ kind: "arguments", text })
    this.#held = this.#held.slice(text.length)
    if (end === null) return false
    this.#state = { kind: "tail", format }
    return true
  }

  #moveTail(format: CallFormat): boolean {
    if (format.close === "") return this.#moveList(format)
    const index = this.#held.indexOf(format.close)
    // Nothing but the rest of the format can stand before the closing mark: it is not text.
    if (index < 0) return false
    this.#held = this.#held.slice(index + format.close.length)
    this.#state = { kind: "text" }
    this.#starts = true
    return true
  }

  /** Between two calls of a list stand a comma and a brace; after the last one the list ends without a mark. */
  #moveList(format: CallFormat): boolean {
    const structure = /^[\s}\],{]*/.exec(this.#held)?.[0] ?? ""
    const rest = this.#held.slice(structure.length)
    const another = structure.includes("{") && rest.startsWith(nameKey)
    if (rest === "" || (structure.includes("{") && nameKey.startsWith(rest) && !another)) return false
    this.#held = another ? `[{${rest}` : rest
    this.#state = another ? { kind: "head", format } : { kind: "text" }
    return true
  }
}

const nameKey = '"name"'

function firstMark(text: string, marks: readonly string[]): { mark: string; index: number } | null {
  let best: { mark: string; index: number } | null = null
  for (const mark of marks) {
    const index = text.indexOf(mark)
    if (index >= 0 && (best === null || index < best.index)) best = { mark, index }
  }
  return best
}

const textEvents = (text: string): ReadEvent[] => (text === "" ? [] : [{ kind: "text", text }])

/** Reads up to the end of the first function call and nothing after it, for requests that want one call at a time. */
export class FirstCallReader implements Reader {
  readonly #reader: Reader
  #called = false
  /** The call is whole: whatever the model would go on to write is not wanted. */
  ended = false

  constructor(reader: Reader) {
    this.#reader = reader
  }

  get opened(): Reader["opened"] {
    return this.ended ? null : this.#reader.opened
  }

  get inReasoning(): boolean {
    return this.#reader.inReasoning
  }

  get inCall(): boolean {
    return !this.ended && this.#reader.inCall
  }

  read(piece: string): ReadEvent[] {
    return this.ended ? [] : this.#upToEnd(this.#reader.read(piece))
  }

  end(): ReadEvent[] {
    return this.ended ? [] : this.#upToEnd(this.#reader.end())
  }

  /** One piece may hold the end of the call and the start of what follows. */
  #upToEnd(events: readonly ReadEvent[]): ReadEvent[] {
    const after = events.findIndex(
      ({ kind }, index) =>
        kind !== "arguments" && (this.#called || events.slice(0, index).some((one) => one.kind === "call")),
    )
    const kept = after < 0 ? events : events.slice(0, after)
    this.#called ||= kept.some(({ kind }) => kind === "call")
    this.ended = after >= 0 || (this.#called && !this.#reader.inCall)
    return [...kept]
  }
}

/** Reads gpt-oss output: messages with a channel each, of which `analysis` is reasoning and `final` is the answer. */
const ends = ["<|end|>", "<|return|>", "<|call|>"] as const
const message = "<|message|>"

class HarmonyReader implements Reader {
  #held = ""
  /** Null while the header of a message is read. */
  #kind: "reasoning" | "text" | "arguments" | null = null

  get opened(): null {
    return null
  }

  get inReasoning(): boolean {
    return this.#kind === "reasoning"
  }

  get inCall(): boolean {
    return this.#kind === "arguments"
  }

  read(piece: string): ReadEvent[] {
    this.#held += piece
    const events: ReadEvent[] = []
    for (let moved = true; moved;) moved = this.#kind === null ? this.#header(events) : this.#body(events)
    return events
  }

  end(): ReadEvent[] {
    const rest = this.#held
    this.#held = ""
    if (rest === "" || this.#kind === null) return []
    return [{ kind: this.#kind, text: rest }]
  }

  #header(events: ReadEvent[]): boolean {
    const index = this.#held.indexOf(message)
    if (index < 0) return false
    const header = this.#held.slice(0, index)
    this.#held = this.#held.slice(index + message.length)
    const name = /to=functions\.([^\s<]+)/.exec(header)?.[1]
    if (name !== undefined) {
      events.push({ kind: "call", name })
      this.#kind = "arguments"
    } else this.#kind = /<\|channel\|>\s*analysis/.test(header) ? "reasoning" : "text"
    return true
  }

  #body(events: ReadEvent[]): boolean {
    const kind = this.#kind ?? "text"
    const found = ends
      .map((mark) => ({ mark, index: this.#held.indexOf(mark) }))
      .filter(({ index }) => index >= 0)
      .toSorted((a, b) => a.index - b.index)[0]
    const until = found ? found.index : this.#held.length - holdBack(this.#held, ends)
    const text = this.#held.slice(0, until)
    if (text !== "") events.push({ kind, text })
    this.#held = this.#held.slice(found ? found.index + found.mark.length : until)
    if (found) this.#kind = null
    return found !== undefined
  }
}

/** Finds the end of a JSON object that arrives in pieces. */
export class JsonObjectScan {
  #depth = 0
  #inString = false
  #escaped = false

  /** The index just after the object's closing brace in this piece, or null when the object goes on. */
  scan(piece: string): number | null {
    for (let index = 0; index < piece.length; index++) {
      const character = piece.charAt(index)
      if (this.#inString) this.#inside(character)
      else if (character === '"') this.#inString = true
      else if (character === "{" || character === "[") this.#depth++
      else if ((character === "}" || character === "]") && --this.#depth === 0) return index + 1
    }
    return null
  }

  #inside(character: string): void {
    if (this.#escaped) this.#escaped = false
    else if (character === "\\") this.#escaped = true
    else if (character === '"') this.#inString = false
  }
}

/** Ends a text before the first of the stops that a request named, wherever pieces break. */
export class StopTexts {
  readonly #stops: readonly string[]
  #held = ""
  /** The stop that ended the text. */
  found: string | null = null

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "")
  }

  /** The text that certainly stands before any stop. */
  pass(piece: string): string {
    if (this.found !== null) return ""
    this.#held += piece
    const [first] = this.#stops
      .map((stop) => ({ stop, index: this.#held.indexOf(stop) }))
      .filter(({ index }) => index >= 0)
      .toSorted((a, b) => a.index - b.index)
    if (first) {
      this.found = first.stop
      const text = this.#held.slice(0, first.index)
      this.#held = ""
      return text
    }
    const until = this.#held.length - holdBack(this.#held, this.#stops)
    const text = this.#held.slice(0, until)
    this.#held = this.#held.slice(until)
    return text
  }

  end(): string {
    const rest = this.found === null ? this.#held : ""
    this.#held = ""
    return rest
  }
}
