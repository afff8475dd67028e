/** Replaces what an organization's patterns match. RE2 matches in time linear in the text, whatever the pattern. */
import { RE2JS } from "re2js"

export interface NamedPattern {
  readonly name: string
  readonly pattern: string
}

interface Redacted {
  readonly text: string
  /** How many passages were replaced. */
  readonly count: number
}

export interface Redactor {
  /** Throws RangeError when more matches than a text may have. */
  redact(text: string): Redacted
}

/** Matches in one text; more are a pattern that matches about everything, and cost memory. */
const matchesMax = 100_000

/** A sentence why the pattern cannot be used; null when it can. */
export function explainPattern(pattern: string): string | null {
  try {
    RE2JS.compile(pattern)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Throws when a pattern cannot be used: `explainPattern` says so before. */
export function createRedactor(patterns: readonly NamedPattern[]): Redactor {
  const compiled = patterns.map(({ name, pattern }) => ({
    label: `[${name}]`,
    regex: RE2JS.compile(pattern),
  }))
  return {
    redact(text) {
      const found: Span[] = []
      for (const { label, regex } of compiled) collect(found, regex, { label, text })
      if (found.length === 0) return { text, count: 0 }
      return replace(text, merge(found))
    },
  }
}

interface Span {
  readonly start: number
  end: number
  readonly label: string
}

/** Every pattern sees the text as it came: what one matches cannot hide from another. */
function collect(
  found: Span[],
  regex: RE2JS,
  { label, text }: { readonly label: string; readonly text: string },
): void {
  const matcher = regex.matcher(text)
  while (matcher.find()) {
    const [start, end] = [matcher.start(), matcher.end()]
    // An empty match is no passage.
    if (start === end) continue
    if (found.length >= matchesMax)
      throw new RangeError(`Cannot redact the text: the patterns match more than ${matchesMax} times`)
    found.push({ start, end, label })
  }
}

/** Passages that overlap or touch become one, under the name of the first. */
function merge(found: readonly Span[]): Span[] {
  const merged: Span[] = []
  for (const span of found.toSorted((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last && span.start <= last.end) last.end = Math.max(last.end, span.end)
    else merged.push({ ...span })
  }
  return merged
}

function replace(text: string, spans: readonly Span[]): Redacted {
  const pieces: string[] = []
  let at = 0
  for (const { start, end, label } of spans) {
    pieces.push(text.slice(at, start), label)
    at = end
  }
  pieces.push(text.slice(at))
  return { text: pieces.join(""), count: spans.length }
}
