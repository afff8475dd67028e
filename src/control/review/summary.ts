/** How the review of a set stands: what waits, how far reviewers agree, and whether teaching again would pay. */
import type { ReviewSummary } from "../../contract/question-sets/review.ts"
import { type LabelPair, cohensKappa, stratifiedKappa } from "../../scoring/agreement.ts"
import {
  type ReviewCounts,
  countReviews,
  findLastTaught,
  listLabelPairs,
} from "../../store/content/review.ts"
import { findContentSettings, listKeyContent } from "../../store/content/settings.ts"
import type { QuestionSet } from "../../store/question-sets/sets.ts"
import type { ContentControlParts } from "../content/parts.ts"

export async function summarize(
  parts: ContentControlParts,
  set: QuestionSet,
  reviewer: string,
): Promise<ReviewSummary> {
  const { database } = parts
  const taughtAt = await findLastTaught(database, set.id)
  const counts = await countReviews(database, set.id, reviewer, taughtAt)
  return {
    open: counts.open,
    done: counts.done,
    content: await contentStateOf(parts, set.organizationId),
    sample_rate: set.reviewSampleRate,
    labelled_since_taught: counts.labelled,
    corrected_since_taught: counts.corrected,
    agreement: agreementOf(await listLabelPairs(database, set.id)),
    ...teachingAdvice(counts, taughtAt !== null),
  }
}

async function contentStateOf(
  { database, content }: ContentControlParts,
  organizationId: string,
): Promise<ReviewSummary["content"]> {
  if (!content.cipher.isAvailable) return "unavailable"
  const own = await findContentSettings(database, organizationId)
  const all = [...(own ? [own] : []), ...(await listKeyContent(database, organizationId))]
  const isKept = all.some(({ keep, sampleRate }) => keep === "evidence_and_answers" && sampleRate > 0)
  return isKept ? "kept" : "not_kept"
}

function agreementOf(pairs: Awaited<ReturnType<typeof listLabelPairs>>): ReviewSummary["agreement"] {
  const byQuestion = new Map<string, LabelPair[]>()
  for (const { question, labels } of pairs) {
    const [first, second] = labels
    if (first === undefined || second === undefined) continue
    byQuestion.set(question, [...(byQuestion.get(question) ?? []), [first, second]])
  }
  return {
    pairs: pairs.length,
    kappa: stratifiedKappa([...byQuestion.values()]),
    questions: [...byQuestion].map(([question, own]) => ({
      question,
      pairs: own.length,
      kappa: cohensKappa(own),
    })),
  }
}

/** Fewer labels move what was taught less than chance does. */
const labelsMin = 20
/** Below this share of corrections a taught set answers as its reviewers do. */
const correctedShareMin = 0.05

export function teachingAdvice(
  { labelled, corrected }: Pick<ReviewCounts, "labelled" | "corrected">,
  isTaught: boolean,
): Pick<ReviewSummary, "teaching_would_pay" | "teaching_reason"> {
  const labels = `${labelled} ${labelled === 1 ? "label" : "labels"}`
  const since = isTaught ? "since the set was last taught" : "and the set was never taught"
  if (labelled < labelsMin)
    return {
      teaching_would_pay: false,
      teaching_reason: `${labels} ${since}: teaching pays from ${labelsMin} on.`,
    }
  if (isTaught && corrected < labelled * correctedShareMin)
    return {
      teaching_would_pay: false,
      teaching_reason: `${labels} ${since}, and ${corrected} of them differ from what the set said: teaching would change little.`,
    }
  return {
    teaching_would_pay: true,
    teaching_reason: `${labels} ${since}; ${corrected} of them differ from what the set said.`,
  }
}
