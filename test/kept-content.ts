/** Puts content into a database as a gateway would, with an item of review where a question set is named. */
import { rowHash } from "../src/scoring/teach/row-hash.ts"
import { createContentCipher } from "../src/store/content/cipher.ts"
import { type ContentBody, insertContents } from "../src/store/content/content.ts"
import { insertReviewItems } from "../src/store/content/review.ts"
import type { Platform } from "./platform.ts"
import { contentKey } from "./platform.ts"

export interface SeededContent {
  readonly organizationId: string
  readonly evidence: string
  /** A set whose only question is the predicate `rude`. */
  readonly setId?: string
  readonly at?: Date
  readonly reference?: string
  readonly key?: Uint8Array
  readonly secondLook?: boolean
  readonly verdict?: string | null
}

export const cipher = createContentCipher([contentKey])
const monthMs = 30 * 24 * 3_600_000

/** Answers the ids of the sequence and of the item of review. */
export async function seedContent(
  { database, ids }: Pick<Platform, "database" | "ids">,
  given: SeededContent,
): Promise<{ readonly seqId: string; readonly itemId: string }> {
  const { organizationId, evidence, setId, reference = null } = given
  const at = given.at ?? new Date(Date.now() - 1000)
  const seqId = ids.next("seq")
  const itemId = ids.next("rev")
  const own = given.key ? createContentCipher([given.key]) : cipher
  const body = bodyOf(evidence, { setId, reference, verdict: given.verdict })
  await insertContents(database, [
    {
      seqId,
      organizationId,
      apiKeyId: null,
      at,
      level: "evidence_and_answers",
      expiresAt: new Date(at.getTime() + monthMs),
      referenceHash: reference === null ? null : (own.referenceHashes(organizationId, reference)[0] ?? null),
      inputHash: rowHash(evidence),
      redactWith: null,
      sealed: own.seal({ organizationId, seqId }, JSON.stringify(body)).toString("base64"),
    },
  ])
  if (setId !== undefined)
    await insertReviewItems(database, [
      {
        id: itemId,
        setId,
        organizationId,
        seqId,
        question: "rude",
        version: 1,
        reason: "abstained",
        secondLook: given.secondLook ?? false,
        createdAt: at,
      },
    ])
  return { seqId, itemId }
}

function bodyOf(
  evidence: string,
  given: {
    readonly setId: string | undefined
    readonly reference: string | null
    readonly verdict: string | null | undefined
  },
): ContentBody {
  const verdict = given.verdict ?? null
  return {
    endpoint: "decisions",
    model: "open",
    question_set: given.setId === undefined ? null : { id: given.setId, name: "set", version: 1 },
    reference: given.reference,
    evidence,
    questions: [{ name: "rude", type: "predicate", instructions: "Is it rude?", options: [] }],
    answers: [{ name: "rude", verdict, abstained: verdict === null, confidence: 0.6, threshold: 0.9 }],
    input: null,
    output: null,
    redactions: 0,
  }
}
