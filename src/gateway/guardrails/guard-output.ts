/**
 * Checks an answer while it is written. Windows of its text overlap by the hold-back, and stand at positions that do not depend on
 * how the text comes. A window is checked before any of it is sent, and then only what lies before the hold-back is: of a text
 * that is not longer than the hold-back, nothing is sent before all of it was checked in one window.
 */
import type { GenerationEvent } from "../../engine/engine.ts"
import { HeldText } from "./held-text.ts"
import { type Span, blank } from "./recognizers.ts"

export interface OutputRule {
  readonly action: "block" | "flag" | "redact"
  /** `end`: nothing is sent before the whole answer is checked. */
  readonly release: "window" | "end"
  readonly windowCharacters: number
  readonly holdBackCharacters: number
  /** Answers in a format of the request cannot be redacted. */
  readonly isFormatted: boolean
  /**
   * Passages that are found whatever the set says. One that ends in the text may begin in the context, what stands right before
   * it: its start is negative then.
   */
  readonly recognize: (text: string, context: string) => Promise<readonly Span[]>
}

/**
 * Whether the set answers yes to a text; what it throws ends the answer. Of a text that is a part of one with a yes, a check that
 * fails counts as a yes.
 */
export type Check = (text: string, isSuspect?: boolean) => Promise<boolean>

export async function* guardOutput(
  events: AsyncIterable<GenerationEvent>,
  rule: OutputRule,
  check: Check,
): AsyncGenerator<GenerationEvent> {
  if (rule.action === "flag") yield* watch(events, rule, check)
  else if (rule.release === "window") yield* hold(events, rule, check)
  else {
    const held: GenerationEvent[] = []
    for await (const event of hold(events, rule, check)) {
      // Nothing of a blocked answer is sent.
      if (event.kind === "end" && event.reason === "content_filter") held.length = 0
      held.push(event)
    }
    yield* held
  }
}

const blocked: GenerationEvent = { kind: "end", reason: "content_filter" }

/** What left last is read before a window: it may name or excuse a number in it. */
const contextCharacters = 128

const isRedacting = ({ action, isFormatted }: OutputRule): boolean => action === "redact" && !isFormatted

async function* hold(
  events: AsyncIterable<GenerationEvent>,
  rule: OutputRule,
  check: Check,
): AsyncGenerator<GenerationEvent> {
  const { windowCharacters, holdBackCharacters } = rule
  const isWhole = rule.release === "end"
  // What is recognized in a whole answer is redacted before the set is asked.
  const isLate = isWhole && isRedacting(rule)
  const held = new HeldText(rule.isFormatted)
  let isBlocked = false
  let whole: readonly Span[] = []
  /** What was taken: of a stream its end. */
  let taken = ""
  let overlap = 0
  for await (const event of events) {
    const isEnd = event.kind === "end"
    if (event.kind === "end") held.endPart()
    else held.add(event)
    if (isEnd && isWhole) {
      whole = await rule.recognize(taken + held.text, "")
      isBlocked = whole.length > 0 && !isLate
    }
    const heldMin = isEnd ? 1 : isLate ? Number.POSITIVE_INFINITY : windowCharacters
    while (held.text.length >= heldMin && !isBlocked) {
      const window = held.text.slice(0, windowCharacters)
      const isLast = isEnd && held.text.length <= windowCharacters
      const leaving = isLast ? window.length : wholeCharacters(window, windowCharacters - holdBackCharacters)
      const recognized = isLate
        ? within(whole, taken.length, window.length)
        : await rule.recognize(window, taken.slice(-contextCharacters))
      // Longer than the hold-back: some of it has left, or would leave before its end is known.
      const isCut =
        !isLate &&
        recognized.some(
          ({ start, end }) =>
            (start < 0 && end > overlap) || (!isLast && start < leaving && end === window.length),
        )
      isBlocked = isCut || !(await passes(held, window, { spans: recognized, rule, check }))
      if (isBlocked) continue
      yield* held.take(leaving)
      taken += window.slice(0, leaving)
      if (!isWhole) taken = taken.slice(-contextCharacters)
      overlap = window.length - leaving
    }
    // Leaving the loop stops the model, which then says what it used.
    if (isBlocked) break
    if (isEnd) {
      // What has no text of its own.
      yield* held.take(0)
      yield event
    }
  }
  if (isBlocked) yield blocked
}

/** The parts of passages that lie in a window, by their places in it. */
function within(spans: readonly Span[], from: number, length: number): Span[] {
  return spans
    .map(({ start, end }) => ({ start: start - from, end: Math.min(end - from, length) }))
    .filter(({ start, end }) => start < length && end > 0)
}

/**
 * Redacts what is recognized, and of the rest the sentences that the set answers yes to, or the window where it is none of them;
 * false: it must be blocked.
 */
async function passes(
  held: HeldText,
  window: string,
  { spans, rule, check }: { spans: readonly Span[]; rule: OutputRule; check: Check },
): Promise<boolean> {
  if (!isRedacting(rule)) return spans.length === 0 && !(await check(window.toWellFormed()))
  const recognized = spans.map(({ start, end }) => ({ start: Math.max(0, start), end }))
  const rest = blank(window, recognized)
  const isRestFound = await check(rest.toWellFormed())
  const found = isRestFound ? await sentencesOf(rest, check) : []
  const all = { start: 0, end: window.length }
  for (const { start, end } of isRestFound && found.length === 0 ? [all] : [...recognized, ...found]) {
    if (!held.isPlain(start, end)) return false
    held.redact(start, end)
  }
  return true
}

/** Those that the set answers yes to. */
async function sentencesOf(text: string, check: Check): Promise<Span[]> {
  const found: Span[] = []
  for (const { segment, index } of sentences.segment(text))
    if (segment.length < text.length && (await check(segment.toWellFormed(), true)))
      found.push({ start: index, end: index + segment.length })
  return found
}

export const sentences = new Intl.Segmenter(undefined, { granularity: "sentence" })

/** Not between the halves of a surrogate pair. */
function wholeCharacters(text: string, length: number): number {
  const code = text.charCodeAt(length - 1)
  return length > 1 && code >= 0xd800 && code <= 0xdbff ? length - 1 : length
}

/** Everything passes; what was found is known before the end is. */
async function* watch(
  events: AsyncIterable<GenerationEvent>,
  { windowCharacters, holdBackCharacters, isFormatted, recognize }: OutputRule,
  check: Check,
): AsyncGenerator<GenerationEvent> {
  const seen = new HeldText(isFormatted)
  for await (const event of events) {
    if (event.kind === "end") {
      seen.endPart()
      const isRecognized = (await recognize(seen.text, "")).length > 0
      const windows = isRecognized ? [] : windowsOf(seen.text, windowCharacters, holdBackCharacters)
      for (const window of windows) await check(window)
    } else seen.add(event)
    yield event
  }
}

/** The windows of a text that is all there. */
export function windowsOf(text: string, windowCharacters: number, holdBackCharacters: number): string[] {
  const windows: string[] = []
  for (let start = 0; start < text.length;) {
    const window = text.slice(start, start + windowCharacters)
    windows.push(window.toWellFormed())
    if (start + windowCharacters >= text.length) break
    start += wholeCharacters(window, windowCharacters - holdBackCharacters)
  }
  return windows
}
