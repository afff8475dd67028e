/** One line of the journal of content: what is encrypted, and what the store needs to know of it. */
import type { ReviewReason } from "../../contract/question-sets/review.ts"
import type { JournalEntry } from "../journal/journal.ts"

export interface ContentRecord extends JournalEntry {
  readonly organization_id: string
  readonly api_key_id: string | null
  /** Unix milliseconds at which the request began. */
  readonly at: number
  readonly expires_at: number
  readonly level: "answers" | "evidence_and_answers"
  /** A keyed hash of the caller's own reference. */
  readonly reference_hash: string | null
  /** The question set that redacts the evidence before it is stored; null: none. */
  readonly redact_with: string | null
  /** The questions that people are asked about; null where no question set answered. */
  readonly review: ReviewRequest | null
  /** Base64. */
  readonly sealed: string
}

export interface ReviewRequest {
  readonly set_id: string
  readonly version: number
  readonly items: readonly { readonly question: string; readonly reason: ReviewReason }[]
}

/** Beside the sealed text, which is Base64. */
const envelopeBytesMax = 64 * 1024

/** For content of at most so many bytes. */
export const contentLineBytesMax = (contentBytesMax: number): number =>
  Math.ceil((contentBytesMax * 4) / 3) + envelopeBytesMax
