/** Events of an answer that are held back: released or redacted from the front, by positions in their text. */
import type { GenerationEvent } from "../../engine/engine.ts"

type TextEvent = Exclude<GenerationEvent, { kind: "end" }>

interface Piece {
  readonly event: TextEvent
  /** Characters of it that have left. */
  taken: number
  /** Some of what left was redacted. */
  isRedacted: boolean
}

export const redaction = "[redacted]"

/**
 * Positions count characters as the client reads them: in JSON an escape of six characters stands for one. So a
 * window and its hold-back are as long in arguments, or in an answer in a format, as they are in plain text.
 */
export class HeldText {
  /** The answer's text is JSON, as arguments of calls always are. */
  readonly #isFormatted: boolean
  readonly #pieces: Piece[] = []
  #text = ""
  /** Of each held character, how many of the answer's own stand for it: 1, 2 or 6. */
  #widths = ""
  /** The beginning of an escape whose rest has not come. */
  #escape = ""
  /** Of each of the answer's own characters that are held, whether it is redacted: 1, or not: 0. */
  #mask = ""
  #lastKind: TextEvent["kind"] | null = null
  /** The last character that left was redacted: what follows belongs to the same redaction. */
  #isRedacting = false

  constructor(isFormatted: boolean) {
    this.#isFormatted = isFormatted
  }

  /** What is held and can be read; a line break stands where another part of the answer begins. */
  get text(): string {
    return this.#text
  }

  add(event: TextEvent): void {
    if (this.#lastKind !== null && this.#lastKind !== event.kind) {
      this.endPart()
      // Read by the check, and not sent.
      this.#hold(gap)
      this.#read("\n", false)
    }
    this.#lastKind = event.kind
    this.#hold(event)
    const isJson = event.kind === "arguments" || (event.kind === "text" && this.#isFormatted)
    this.#read(textOf(event), isJson)
  }

  /** No more of this part of the answer comes: an escape without its rest stands for itself. */
  endPart(): void {
    const rest = this.#escape
    this.#escape = ""
    this.#read(rest, false)
  }

  #hold(event: TextEvent): void {
    this.#pieces.push({ event, taken: 0, isRedacted: false })
    this.#mask += "0".repeat(textOf(event).length)
  }

  #read(text: string, isJson: boolean): void {
    if (!isJson || (this.#escape === "" && !text.includes("\\"))) {
      this.#text += text
      this.#widths += "1".repeat(text.length)
      return
    }
    const given = this.#escape + text
    this.#escape = cutEscape.exec(given)?.[1] ?? ""
    for (const [sign, code, short] of given.slice(0, given.length - this.#escape.length).matchAll(signs)) {
      this.#text += code
        ? String.fromCharCode(Number.parseInt(code, 16))
        : (controls[short ?? ""] ?? short ?? sign)
      this.#widths += String(sign.length)
    }
  }

  /** Whether these characters can be replaced: names and arguments of calls cannot. */
  isPlain(start: number, end: number): boolean {
    const [from, to] = [this.#ownLength(start), this.#ownLength(end)]
    let at = 0
    for (const { event, taken } of this.#pieces) {
      if (at >= to) break
      const length = textOf(event).length - taken
      if (at + length > from && (event.kind === "call" || event.kind === "arguments")) return false
      at += length
    }
    return true
  }

  redact(start: number, end: number): void {
    const [from, to] = [this.#ownLength(start), this.#ownLength(end)]
    this.#mask = this.#mask.slice(0, from) + "1".repeat(to - from) + this.#mask.slice(to)
  }

  /** How many of the answer's own characters stand for the first ones that are held. */
  #ownLength(count: number): number {
    const widths = this.#widths.slice(0, count)
    if (!/[26]/.test(widths)) return widths.length
    return Array.from(widths).reduce((sum, width) => sum + Number(width), 0)
  }

  /** Takes characters from the front, and answers the events that say them. */
  take(count: number): GenerationEvent[] {
    const events: GenerationEvent[] = []
    let left = this.#ownLength(count)
    this.#text = this.#text.slice(count)
    this.#widths = this.#widths.slice(count)
    for (let piece = this.#pieces[0]; piece; piece = this.#pieces[0]) {
      const text = textOf(piece.event)
      const length = Math.min(left, text.length - piece.taken)
      const isDone = piece.taken + length === text.length
      // An event without text, such as the first piece of empty arguments, leaves with what stands before it.
      if (length === 0 && !(isDone && text.length === 0)) break
      events.push(...this.#say(piece, length, isDone))
      piece.taken += length
      left -= length
      if (isDone) this.#pieces.shift()
    }
    return events
  }

  #say(piece: Piece, length: number, isDone: boolean): GenerationEvent[] {
    const { event, taken } = piece
    const text = textOf(event).slice(taken, taken + length)
    const mask = this.#mask.slice(0, length)
    this.#mask = this.#mask.slice(length)
    if (event === gap) return []
    if (event.kind === "call") return isDone ? [event] : []
    if (!mask.includes("1")) {
      if (length > 0) this.#isRedacting = false
      return text === "" && length > 0 ? [] : [withText(event, text, isDone && !piece.isRedacted)]
    }
    piece.isRedacted = true
    return [withText(event, this.#redacted(text, mask), false)]
  }

  #redacted(text: string, mask: string): string {
    let said = ""
    for (let at = 0; at < mask.length; at++) {
      const isRedacted = mask[at] === "1"
      if (!isRedacted) said += text[at] ?? ""
      else if (!this.#isRedacting) said += redaction
      this.#isRedacting = isRedacted
    }
    return said
  }
}

const gap: TextEvent = { kind: "text", text: "\n", logprobs: null }

const textOf = (event: TextEvent): string => (event.kind === "call" ? event.name : event.text)

/** An escape of JSON, or any other character. */
const signs = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))|[^]/g
/** The beginning of an escape at the end: after an even number of backslashes, which are escapes of their own. */
const cutEscape = /(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$/
const controls: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

/** Log-probabilities leave with the last of the characters that they are of; those of redacted text do not leave. */
function withText(
  event: Exclude<TextEvent, { kind: "call" }>,
  text: string,
  isLast: boolean,
): GenerationEvent {
  if (event.kind !== "text") return { ...event, text }
  return { ...event, text, logprobs: isLast ? event.logprobs : null }
}
