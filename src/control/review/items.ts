/** The review queue of a set: shows doubtful answers with their evidence, takes labels, and takes them back. */
import type { Principal } from "../../contract/access.ts"
import type { KeptContent } from "../../contract/content.ts"
import type { Handlers, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { ReviewItem, ReviewSummary, reviewTable } from "../../contract/question-sets/review.ts"
import { cohensKappa, type LabelPair, stratifiedKappa } from "../../scoring/evaluation.ts"
import { findContent, listContents, openContent } from "../../store/content/content.ts"
import {
  type ReviewWithPerson,
  type StoredReviewItem,
  deleteReview,
  insertReview,
  listReviews,
  lockReviewItem,
  pageReviewItems,
  setReviewItemState,
  type ReviewCounts,
  countReviews,
  findLastTaught,
  listReviewQueues,
  listLabelPairs,
} from "../../store/content/review.ts"
import { findContentSettings, listKeyContent } from "../../store/content/settings.ts"
import { decodeContent, type QuestionSet, updateSet } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { acting, change, notFound } from "../audited-change.ts"
import { toWire } from "../to-wire.ts"
import type { ContentControlDeps } from "../content/settings.ts"
import { readOrRefuse } from "../question-sets/labels.ts"
import { lockReadSet, readSet, readVersion } from "../question-sets/view.ts"
import { decodeLabel, giveLabel, takeBack } from "./label.ts"
import { plural } from "../../base/plural.ts"
import type { Label } from "../../contract/question-sets/examples.ts"

type Table = typeof reviewTable

export function reviewHandlers(deps: ContentControlDeps): Handlers<Table> {
  const { database } = deps
  return {
    async listReviewItems(call) {
      const { principal, membership } = acting(call)
      const set = await readSet(database, membership, call.params.set_id)
      const reviewer = reviewerOf(principal)
      const { items, nextCursor } = await pageReviewItems(database, set.id, reviewer, call.query)
      const data = await viewsOf(deps, items, reviewer)
      // They show evidence, and reading content is recorded.
      if (data.length > 0)
        await change(deps, { ...call, idempotency: null }, async ({ audit }) => {
          const sequences = [...new Set(data.map(({ seq_id }) => seq_id))]
          await audit("review.read", reviewed(set), { after: { sequences } })
        })
      return { data, next_cursor: nextCursor }
    },
    async listReviewQueues(call) {
      const { principal, membership } = acting(call)
      const queues = await listReviewQueues(database, membership.organizationId, reviewerOf(principal))
      return queues.map((queue) => toWire(queue, "setId", "setName", "open"))
    },
    async getReviewSummary(call) {
      const { principal, membership } = acting(call)
      const set = await readSet(database, membership, call.params.set_id)
      return await summarize(deps, set, reviewerOf(principal))
    },
    decideReviewItem: async (call) => await decide(deps, call),
    undoReviewItem: async (call) => await undo(deps, call),
    async updateReviewSettings(call) {
      const { membership } = acting(call)
      const { sample_rate } = call.body
      return await change(deps, call, async ({ sql, now, audit, invalidate }) => {
        const set = await lockReadSet(sql, membership, call.params.set_id)
        await updateSet(sql, set.id, { reviewSampleRate: sample_rate }, now)
        await audit("review.settings", reviewed(set), {
          before: { sample_rate: set.reviewSampleRate },
          after: { sample_rate },
        })
        invalidate({ table: "question_sets", id: set.organizationId })
        return { sample_rate }
      })
    },
  }
}

/** A person counts once, whichever session or key of theirs they use. */
const reviewerOf = ({ userId, id }: Principal): string => userId ?? id

const decide: Handle<ContentControlDeps, Table["decideReviewItem"]> = async (deps, call) => {
  const { principal, membership } = acting(call)
  const { decision, label: given } = call.body
  const reviewer = reviewerOf(principal)
  return await change(deps, call, async (scope) => {
    const { sql, now, audit } = scope
    const { set, item } = await lockItem(sql, membership, call.params)
    const content = await contentOf(deps, item, { sql, now })
    const before = await listReviews(sql, [item.id])
    refuseDecided(item, before, reviewer)
    const label = given === undefined ? null : await readLabel(sql, item, { set, given })
    const learned =
      label === null ? null : await giveLabel(deps, scope, { set, item, content, label, before })
    await insertReview(sql, {
      itemId: item.id,
      reviewer,
      userId: principal.userId,
      decision,
      label: label === null ? null : JSON.stringify(label),
      isAnswer: label === null ? null : isAnswer(content, item, label),
      exampleId: learned?.exampleId ?? null,
      exampleIsNew: learned?.isNew ?? false,
      labelBefore: learned?.labelBefore ?? null,
      at: now,
    })
    const state = await updateState(sql, item)
    await audit("review.decide", reviewed(set), {
      after: { item: item.id, question: item.question, decision },
    })
    return await viewOf(sql, { ...item, state }, { content, reviewer })
  })
}

const undo: Handle<ContentControlDeps, Table["undoReviewItem"]> = async (deps, call) => {
  const { principal, membership } = acting(call)
  const reviewer = reviewerOf(principal)
  return await change(deps, call, async (scope) => {
    const { sql, now, audit } = scope
    const { set, item } = await lockItem(sql, membership, call.params)
    const content = await contentOf(deps, item, { sql, now })
    const reviews = await listReviews(sql, [item.id])
    const own = reviews.find((review) => review.reviewer === reviewer)
    if (!own) throw notFound("decision")
    if (own.decision === "label" && reviews.at(-1) !== own)
      throw new Fault("conflict", "Cannot take the label back: another reviewer has decided since")
    await takeBack(scope, item, own)
    await deleteReview(sql, item.id, reviewer)
    const state = await updateState(sql, item)
    await audit("review.undo", reviewed(set), { before: { item: item.id, decision: own.decision } })
    return await viewOf(sql, { ...item, state }, { content, reviewer })
  })
}

async function lockItem(
  sql: Sql,
  membership: Parameters<typeof lockReadSet>[1],
  { set_id, item_id }: { set_id: string; item_id: string },
): Promise<{ readonly set: QuestionSet; readonly item: StoredReviewItem }> {
  const set = await lockReadSet(sql, membership, set_id)
  const item = await lockReviewItem(sql, set.id, item_id)
  if (!item) throw notFound("item of the review")
  return { set, item }
}

async function contentOf(
  { content }: ContentControlDeps,
  { organizationId, seqId }: StoredReviewItem,
  { sql, now }: { sql: Sql; now: Date },
): Promise<KeptContent> {
  const stored = await findContent(sql, organizationId, seqId, now)
  const opened = stored && openContent(content.cipher, stored)
  if (!opened) throw notFound("item of the review")
  return opened
}

function refuseDecided(item: StoredReviewItem, reviews: readonly ReviewWithPerson[], reviewer: string): void {
  if (reviews.some((review) => review.reviewer === reviewer))
    throw new Fault("conflict", "Cannot decide the item: the caller has; take the decision back first")
  if (item.state === "done") throw new Fault("conflict", "Cannot decide the item: its review is done")
}

/** In the form in which examples have it; the question may have changed since. */
async function readLabel(
  sql: Sql,
  { question }: StoredReviewItem,
  { set, given }: { set: QuestionSet; given: Label },
): Promise<Label> {
  const { questions } = decodeContent((await readVersion(sql, set, "latest")).content)
  const label = readOrRefuse({ [question]: given }, questions)[question]
  if (label === undefined) throw notFound("question")
  return label
}

/** A set that abstained gave no answer: its label is one that it could have given. */
function isAnswer(content: KeptContent, { question }: StoredReviewItem, label: Label): boolean {
  const verdict = content.answers.find(({ name }) => name === question)?.verdict ?? null
  return verdict !== null && verdict === shownLabel(label, kindOf(content, question))
}

const neededOf = ({ secondLook }: StoredReviewItem): number => (secondLook ? 2 : 1)

async function updateState(sql: Sql, item: StoredReviewItem): Promise<"open" | "done"> {
  const reviews = await listReviews(sql, [item.id])
  const decided = reviews.filter(({ decision }) => decision !== "skip").length
  const state = decided >= neededOf(item) ? "done" : "open"
  await setReviewItemState(sql, item.id, state)
  return state
}

/** Items whose content cannot be read, or has just expired, are left out. */
async function viewsOf(
  { database, clock, content }: ContentControlDeps,
  items: readonly StoredReviewItem[],
  reviewer: string,
): Promise<ReviewItem[]> {
  const [first] = items
  if (!first) return []
  const now = new Date(clock.nowMs())
  const seqIds = [...new Set(items.map(({ seqId }) => seqId))]
  const stored = await listContents(database, first.organizationId, seqIds, now)
  const contents = new Map(stored.map((one) => [one.seqId, openContent(content.cipher, one)]))
  const views: ReviewItem[] = []
  const reviews = await listReviews(
    database,
    items.map(({ id }) => id),
  )
  for (const item of items) {
    const opened = contents.get(item.seqId)
    const own = reviews.filter(({ itemId }) => itemId === item.id)
    if (opened) views.push(toView(item, opened, { reviews: own, reviewer }))
  }
  return views
}

async function viewOf(
  sql: Sql,
  item: StoredReviewItem,
  { content, reviewer }: { content: KeptContent; reviewer: string },
): Promise<ReviewItem> {
  return toView(item, content, { reviews: await listReviews(sql, [item.id]), reviewer })
}

const kindOf = (content: KeptContent, name: string): ReviewItem["kind"] =>
  content.questions.find((question) => question.name === name)?.type ?? "predicate"

/** As the set's verdicts write it. */
const shownLabel = (label: Label, kind: ReviewItem["kind"]): Label =>
  kind === "predicate" ? (label === true ? "yes" : "no") : label

const yesAndNo = [
  { value: "yes", description: "" },
  { value: "no", description: "" },
]

function toView(
  item: StoredReviewItem,
  content: KeptContent,
  { reviews, reviewer }: { reviews: readonly ReviewWithPerson[]; reviewer: string },
): ReviewItem {
  const { question: name } = item
  const question = content.questions.find((one) => one.name === name)
  const answer = content.answers.find((one) => one.name === name)
  const kind = kindOf(content, name)
  // A second reviewer decides without knowing what the first one did.
  const shown = reviews.filter((review) => item.state === "done" || review.reviewer === reviewer)
  return {
    id: item.id,
    seq_id: item.seqId,
    state: item.state,
    question: name,
    kind,
    instructions: question?.instructions ?? "",
    options: kind === "predicate" ? yesAndNo : (question?.options ?? []),
    evidence: content.evidence ?? "",
    answer: answer?.verdict ?? null,
    confidence: answer?.confidence ?? 0,
    threshold: answer?.threshold ?? null,
    version: item.version,
    reason: item.reason,
    second_look: item.secondLook,
    reviews: shown.map((review) => ({
      reviewer:
        review.userId === null || review.email === null
          ? null
          : { id: review.userId, email: review.email, name: review.name },
      mine: review.reviewer === reviewer,
      decision: review.decision,
      label: review.label === null ? null : shownLabel(decodeLabel(review.label), kind),
      at: review.at.toISOString(),
    })),
    created_at: item.createdAt.toISOString(),
  }
}

/** In the audit log it is the set that is reviewed. */
const reviewed = ({ organizationId, id }: QuestionSet) => ({
  organizationId,
  id,
  resourceType: "question_set",
})

async function summarize(
  deps: ContentControlDeps,
  set: QuestionSet,
  reviewer: string,
): Promise<ReviewSummary> {
  const { database } = deps
  const taughtAt = await findLastTaught(database, set.id)
  const counts = await countReviews(database, set.id, reviewer, taughtAt)
  return {
    open: counts.open,
    done: counts.done,
    content: await contentStateOf(deps, set.organizationId),
    sample_rate: set.reviewSampleRate,
    labelled_since_taught: counts.labelled,
    corrected_since_taught: counts.corrected,
    agreement: agreementOf(await listLabelPairs(database, set.id)),
    ...teachingAdvice(counts, taughtAt !== null),
  }
}

async function contentStateOf(
  { database, content }: ContentControlDeps,
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

function teachingAdvice(
  { labelled, corrected }: Pick<ReviewCounts, "labelled" | "corrected">,
  isTaught: boolean,
): Pick<ReviewSummary, "teaching_would_pay" | "teaching_reason"> {
  const labels = plural(labelled, "label")
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
