/** The content of a version as JSON with a hash. */
import { createHash } from "node:crypto"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"

interface EncodedContent {
  readonly text: string
  /** SHA-256 of the text, in hexadecimal. */
  readonly hash: string
}

export function encodeContent(content: QuestionSetContent): EncodedContent {
  const text = JSON.stringify(sorted(content))
  return { text, hash: createHash("sha256").update(text).digest("hex") }
}

export function decodeContent(text: string): QuestionSetContent {
  // Written by encodeContent.
  return JSON.parse(text) as QuestionSetContent
}

/** Keys in one order, so that equal contents have equal hashes. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => [key, sorted(member)]),
  )
}
