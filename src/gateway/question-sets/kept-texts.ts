/** Texts that a set was asked about and that are kept, for a job. */
import { rowHash } from "../../scoring/teach/row-hash.ts"
import { type StoredContent, listNewestContents, openContent } from "../../store/content/content.ts"
import type { JobContext } from "./jobs.ts"
import { isExample } from "./policy.ts"

/** Kept requests that are looked at for those of the set. */
const scannedMax = 5_000
/** One may have megabytes. */
const contentsPerPage = 20

export interface KeptText {
  readonly seqId: string
  readonly text: string
  readonly hash: string
}

/** The newest first, without those of the hashes. */
export async function keptTexts(
  { deps, job, signal }: JobContext,
  without: ReadonlySet<string>,
  max: number,
): Promise<KeptText[]> {
  const { database, cipher, clock } = deps
  const found: KeptText[] = []
  let after: StoredContent | null = null
  for (let scanned = 0; scanned < scannedMax && found.length < max; scanned += contentsPerPage) {
    signal.throwIfAborted()
    const page = { now: new Date(clock.nowMs()), limit: contentsPerPage }
    const stored: StoredContent[] = await listNewestContents(database, job.organizationId, after, page)
    for (const one of stored) {
      const opened = openContent(cipher, one)
      const text = opened?.question_set?.id === job.setId ? opened.evidence : null
      if (text === null || !isExample(text)) continue
      const hash = rowHash(text)
      if (!without.has(hash)) found.push({ seqId: one.seqId, text, hash })
    }
    after = stored.at(-1) ?? null
    if (stored.length < contentsPerPage) break
  }
  return found
}
