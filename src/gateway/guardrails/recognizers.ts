/**
 * Finds personal data and secrets by their form, and by their check digits where they have any: no model is asked. Every repetition
 * of a pattern has a bound, so that matching takes time linear in the text.
 */
import { isIPv4, isIPv6 } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Recognizer } from "../../contract/guardrails/guardrails.ts"
import { isCardNumber, isIban, nationalIds } from "./national-ids.ts"

/** A passage of a text. */
export interface Span {
  readonly start: number
  readonly end: number
}

export interface Form {
  /** With the flag g. */
  readonly pattern: RegExp
  /** Whether a passage of this form is one. */
  readonly accepts?: (passage: string) => boolean
  /** A group that stands behind it looks like a part of it: what ends before a separator may be one too. */
  readonly isGrouped?: boolean
  /** What must stand shortly before it: for forms that other numbers have too. */
  readonly after?: RegExp
  /** What must not stand right before it. */
  readonly notAfter?: RegExp
}

/** How far before a passage its name may stand. */
const namedWithinCharacters = 40

const phoneNames =
  /\b(?:phone|telephone|mobile|cell|tel|fax|call|ring|text|whatsapp|number|contact|reach|telefon|handy|rufnummer|anrufen|t[ée]l[ée]phone|portable|tel[ée]fono|m[óo]vil|celular|telefone|cellulare)\b/iu
/** Numbers that are no telephone's. */
const otherNumbers =
  /\b(?:order|invoice|part|ticket|tracking|serial|version|isbn|account|flight|room|customer|student|employee|member|case|policy|reference|model|batch|card|iban)\b[^.]{0,24}$/iu

const digitsOf = (text: string): string => text.replaceAll(/\D/g, "")

const forms: Readonly<Record<Recognizer, readonly Form[]>> = {
  email: [
    {
      pattern:
        /(?<![\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{M}\d_.%+-])[\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{M}\d_.%+-]{1,64}@(?:[\p{L}\d](?:[\p{L}\d-]{0,61}[\p{L}\d])?\.){1,8}\p{L}{2,24}(?![\w-])/gu,
    },
    // As people write it to hide it from programs.
    {
      pattern:
        /(?<![\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{M}\d_.])[\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{M}\d_.+-]{1,64}(?: ?[([] ?(?:dot|punkt) ?[)\]] ?[\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{M}\d_+-]{1,64}){0,3} ?[([] ?(?:at|ät) ?[)\]] ?[\w-]{1,63}(?: ?(?:\.|[([] ?(?:dot|punkt) ?[)\]]) ?[\w-]{2,63}){1,4}/giu,
    },
  ],
  phone: [
    // With the code of a country.
    {
      pattern:
        /(?<![\w+])(?:\+|00)[1-9](?:[ \u00a0\u202f./\u2010\u2011-]?\(?\d\)?){6,14}(?![\w\u2010\u2011-])/g,
      accepts: (text) => digitsOf(text).length <= 17,
    },
    { pattern: /(?<![\w(])\(\d{3}\)[ \u00a0\u202f]?\d{3}[\u2010\u2011-]\d{4}(?![\w\u2010\u2011-])/g },
    {
      pattern:
        /(?<![\w\u2010\u2011-])[2-9]\d{2}[\u2010\u2011-][2-9]\d{2}[\u2010\u2011-]\d{4}(?![\w\u2010\u2011-])/g,
    },
    {
      pattern:
        /(?<![\w.,/\u2010\u2011-]|\d[ \u00a0\u202f])\(?\d(?:[ \u00a0\u202f./\u2010\u2011-]?\(?\d\)?){6,13}(?![\w\u2010\u2011-]|[ \u00a0\u202f.,]\d)/g,
      after: phoneNames,
      notAfter: otherNumbers,
      accepts: (text) => !/^\d{1,2}[./\u2010\u2011-]\d{1,2}[./\u2010\u2011-]\d{2,4}$/.test(text),
    },
  ],
  iban: [
    {
      pattern:
        /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0\u202f\u2010\u2011-]?[A-Z0-9]){11,30}(?![A-Za-z0-9])/g,
      accepts: isIban,
      isGrouped: true,
    },
  ],
  card: [
    {
      pattern: /(?<![\w.\u2010\u2011-])[2-6](?:[ \u00a0\u202f\u2010\u2011-]?\d){12,18}(?![\w\u2010\u2011-])/g,
      accepts: isCardNumber,
      isGrouped: true,
    },
  ],
  national_id: nationalIds,
  ip_address: [
    {
      pattern: /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)/g,
      accepts: isPublicIPv4,
      notAfter: /\b(?:version|release|build|update|v)\b[^.]{0,16}$/iu,
    },
    { pattern: /(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:]|\.\d)/gi, accepts: isPublicIPv6 },
  ],
  secret: [
    // The name and password in an address.
    { pattern: /(?<!\w)[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,64}:[^\s/@]{1,128}@[\w.-]{1,253}/gi },
    // To its end; where that does not come, as far as a key may reach.
    {
      pattern:
        /-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----(?:[^]{0,8000}?-----END (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----|[^]{0,8000})/g,
    },
    { pattern: /(?<![\w-])eyJ[\w-]{10,2000}\.eyJ[\w-]{10,2000}\.[\w-]{10,1000}/g },
    {
      pattern:
        /(?<![\w-])(?:sk-[\w-]{20,200}|[rs]k_(?:live|test)_\w{16,200}|gh[opsur]_\w{36,255}|github_pat_\w{22,255}|glpat-[\w-]{20,64}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}|xox[abeprs]-[\w-]{10,250}|npm_\w{36}|hf_\w{30,64}|ump_\w{40,128})(?![\w-])/g,
    },
  ],
}

/** Passages of these kinds, in the order of the text; those that overlap are one. */
export function recognize(text: string, recognizers: readonly Recognizer[]): Span[] {
  const { plain, placeOf } = plainText(text)
  const spans = recognizers.flatMap((name) => forms[name].flatMap((form) => matches(plain, form)))
  return merged(spans.map(({ start, end }) => ({ start: placeOf(start), end: placeOf(end - 1) + 1 })))
}

/** Takes no place on a screen: zero-width characters, soft hyphens, marks of direction, selectors of variants. */
const invisible = String.raw`\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff`
/** ASCII in the width of Chinese characters, and the space of that width. */
const fullwidth = String.raw`\uff01-\uff5e\u3000`
const disguise = new RegExp(`[${invisible}${fullwidth}]`)
const isInvisible = new RegExp(`[${invisible}]`)
const fullwidthOffset = 0xfee0

interface PlainText {
  readonly plain: string
  /** Of a character, in the text as it came. */
  readonly placeOf: (at: number) => number
}

/** The text as a person reads it: what is invisible is left out, and wide letters are plain ones. */
function plainText(text: string): PlainText {
  if (!disguise.test(text)) return { plain: text, placeOf: (at) => at }
  const characters: string[] = []
  const places: number[] = []
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    if (isInvisible.test(character)) continue
    places.push(at)
    const code = text.charCodeAt(at)
    if (code === 0x3000) characters.push(" ")
    else if (code >= 0xff01 && code <= 0xff5e) characters.push(String.fromCharCode(code - fullwidthOffset))
    else characters.push(character)
  }
  return { plain: characters.join(""), placeOf: (at) => places[at] ?? text.length }
}

/** Recognized before others get their turn. */
const charactersPerTurn = 50_000
/** No passage is longer. */
const passageCharactersMax = 10_000

/**
 * Those of a text of any length that end behind its context, by their places behind it: the start of one that begins in the context
 * is negative.
 */
export async function recognizeAll(
  text: string,
  context: string,
  recognizers: readonly Recognizer[],
): Promise<Span[]> {
  const all = context + text
  const spans: Span[] = []
  for (let from = 0; recognizers.length > 0 && from < all.length; from += charactersPerTurn) {
    if (from > 0) await nextTurn()
    const before = Math.max(0, from - 2 * namedWithinCharacters)
    const part = all.slice(before, from + charactersPerTurn + passageCharactersMax)
    for (const span of recognize(part, recognizers)) {
      const [start, end] = [span.start + before, span.end + before]
      if (start >= from && start < from + charactersPerTurn && end > context.length)
        spans.push({ start: start - context.length, end: end - context.length })
    }
  }
  return spans
}

/** In the order of the text; those that overlap or touch become one. */
function merged(spans: readonly Span[]): Span[] {
  const found: { start: number; end: number }[] = []
  for (const { start, end } of spans.toSorted((a, b) => a.start - b.start)) {
    const last = found.at(-1)
    if (last && start <= last.end) last.end = Math.max(last.end, end)
    else found.push({ start, end })
  }
  return found
}

function matches(text: string, form: Form): Span[] {
  const { pattern, after, notAfter } = form
  const spans: Span[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const { 0: passage, index: start } = match
    const length = acceptedLength(passage, form)
    // What is refused may have one inside it. Passages are bounded, so this takes linear time too.
    pattern.lastIndex = length === 0 ? start + 1 : start + length
    if (length === 0) continue
    const before = text.slice(Math.max(0, start - namedWithinCharacters), start)
    if ((after && !after.test(before)) || notAfter?.test(before)) continue
    spans.push({ start, end: start + length })
  }
  return spans
}

/** How much of a passage is one, 0 for none: all of it, or else the longest part that ends before a separator. */
function acceptedLength(passage: string, { accepts, isGrouped }: Form): number {
  if (!accepts || accepts(passage)) return passage.length
  if (!isGrouped) return 0
  const ends = Array.from(passage.matchAll(/[^A-Z0-9]/g), ({ index }) => index)
  return ends.findLast((end) => accepts(passage.slice(0, end))) ?? 0
}

/** The text with spaces in the place of these passages: of the same length, and they cannot be read. */
export function blank(text: string, spans: readonly Span[]): string {
  return replaceSpans(text, spans, ({ start, end }) => " ".repeat(end - start))
}

export function replaceSpans(
  text: string,
  spans: readonly Span[],
  replacement: (span: Span) => string,
): string {
  const pieces: string[] = []
  let at = 0
  for (const span of merged(spans)) {
    pieces.push(text.slice(at, span.start), replacement(span))
    at = span.end
  }
  return pieces.join("") + text.slice(at)
}

/** Addresses inside a network identify no person. */
function isPublicIPv4(text: string): boolean {
  return (
    isIPv4(text) && !/^(?:0|10|127|22[4-9]|2[345]\d|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\./.test(text)
  )
}

function isPublicIPv6(text: string): boolean {
  return isIPv6(text) && /^[23]/.test(text)
}
