/** A reviewer's label as an example of the set: added, changed, and taken back. */
import type { KeptContent } from "../../contract/content.ts"
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { splitOf } from "../../scoring/teach/question.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import type { StoredReview, StoredReviewItem } from "../../store/content/review.ts"
import {
  deleteExample,
  findExample,
  findExamplesByHash,
  insertExamples,
  sealInput,
  updateExample,
  decodeLabels,
} from "../../store/question-sets/examples.ts"
import { type QuestionSet, checkStorage, countRows } from "../../store/question-sets/sets.ts"
import { lockOrganization } from "../../store/organizations.ts"
import type { Sql } from "../../store/sql.ts"
import type { ChangeScope } from "../audited-change.ts"
import type { ContentControlDeps } from "../content/settings.ts"
import type { Label } from "../../contract/question-sets/examples.ts"

interface GivenLabel {
  readonly set: QuestionSet
  readonly item: StoredReviewItem
  readonly content: KeptContent
  readonly label: Label
  /** What others have decided. */
  readonly before: readonly StoredReview[]
}

interface LearnedExample {
  readonly exampleId: string
  readonly isNew: boolean
  /** JSON of the label that the example had; null: none. */
  readonly labelBefore: string | null
}

/** Two reviewers who disagree teach nothing: the example then has no label for the question. */
export async function giveLabel(
  deps: ContentControlDeps,
  { sql, now }: ChangeScope,
  { set, item, content, label, before }: GivenLabel,
): Promise<LearnedExample> {
  const input = content.evidence ?? ""
  const hash = rowHash(input)
  const isDisputed = before.some((review) => review.label !== null && review.label !== JSON.stringify(label))
  // Both measure and change what the organization stores.
  await lockOrganization(sql, set.organizationId)
  const [known] = await findExamplesByHash(sql, set.id, [hash])
  if (known) {
    const labels = decodeLabels(known.labels)
    const old = Object.hasOwn(labels, item.question) ? labels[item.question] : undefined
    await writeLabel(sql, set.id, {
      exampleId: known.id,
      question: item.question,
      label: isDisputed ? null : label,
      now,
    })
    await checkStorage(sql, set, "labels")
    return { exampleId: known.id, isNew: false, labelBefore: old === undefined ? null : JSON.stringify(old) }
  }
  const { examples } = await countRows(sql, set.id)
  if (examples >= questionSetLimits.examplesMax)
    throw new Fault(
      "conflict",
      `Cannot add the label: the set has ${examples} examples; at most ${questionSetLimits.examplesMax} are kept`,
    )
  const place = { id: deps.ids.next("ex"), setId: set.id }
  await insertExamples(sql, [
    {
      ...place,
      ...sealInput(deps.content.cipher, place, input),
      inputHash: hash,
      split: splitOf(hash),
      labels: JSON.stringify(isDisputed ? {} : { [item.question]: label }),
      teacherLabels: "{}",
      source: "review",
      createdAt: now,
      updatedAt: now,
    },
  ])
  await checkStorage(sql, set, "labels")
  return { exampleId: place.id, isNew: true, labelBefore: null }
}

// Written by giveLabel above, and by `decide`.
export const decodeLabel = (text: string): Label => JSON.parse(text)

/** The example is as it was before the label. */
export async function takeBack(
  { sql, now }: ChangeScope,
  item: StoredReviewItem,
  review: StoredReview,
): Promise<void> {
  if (review.exampleId === null) return
  const before = review.labelBefore === null ? null : decodeLabel(review.labelBefore)
  await writeLabel(sql, item.setId, {
    exampleId: review.exampleId,
    question: item.question,
    label: before,
    now,
  })
}

/** An example of reviewers that has no labels left is deleted; one that was deleted meanwhile stays so. */
async function writeLabel(
  sql: Sql,
  setId: string,
  {
    exampleId,
    question,
    label,
    now,
  }: { exampleId: string; question: string; label: Label | null; now: Date },
): Promise<void> {
  const example = await findExample(sql, setId, exampleId)
  if (!example) return
  const others = Object.entries(decodeLabels(example.labels)).filter(([name]) => name !== question)
  const labels = Object.fromEntries(label === null ? others : [...others, [question, label]])
  if (Object.keys(labels).length === 0 && example.source === "review")
    await deleteExample(sql, setId, exampleId)
  else await updateExample(sql, exampleId, JSON.stringify(labels), now)
}
