/** Adds examples to a question set: what is new, what is known, what contradicts, in parts that others can go between. */
import { Fault } from "../../contract/errors.ts"
import { type SetQuestion, questionSetLimits } from "../../contract/question-sets/content.ts"
import {
  type AddedRows,
  addedRowsListedMax,
  type Label,
  type TeacherLabel,
} from "../../contract/question-sets/examples.ts"
import { splitOf } from "../../scoring/teach/question.ts"
import {
  type TeacherLabels,
  askedHash,
  decodeLabels,
  decodeTeacherLabels,
  findLabelsByHash,
  insertExamples,
  type Labels,
  type PlacedText,
  relabelExamples,
} from "../../store/question-sets/examples.ts"
import { checkStorage, countRows, type QuestionSet } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import type { QuestionSetDeps } from "./content.ts"
import { BadLabel, readLabels } from "./labels.ts"
import { type PreparedText, type SetCall, writeInParts } from "./write-in-parts.ts"

interface GivenRow {
  /** From 1. */
  readonly row: number
  readonly input: string
  readonly labels: Readonly<Record<string, unknown>>
  /** The model whose answers the labels are; without one they are a person's. */
  readonly teacher?: string | undefined
}

interface GivenRows {
  readonly rows: readonly GivenRow[]
  /** Labels that contradict those that are known take their places. */
  readonly isReplacing: boolean
  /** With what is known of the request before. */
  readonly report?: Report
}

/** A growing report; lists are cut, counts are not. */
export class Report {
  added = 0
  updated = 0
  duplicates = 0
  readonly contradictions: AddedRows["contradictions"] = []
  contradictionsCount = 0
  readonly refused: AddedRows["refused"] = []
  refusedCount = 0

  refuse(row: number, reason: string): void {
    if (this.refusedCount++ < addedRowsListedMax) this.refused.push({ row, reason })
  }

  contradict(found: AddedRows["contradictions"][number]): void {
    if (this.contradictionsCount++ < addedRowsListedMax) this.contradictions.push(found)
  }

  copy(): Report {
    const { contradictions, refused, ...counts } = this
    const copy = Object.assign(new Report(), counts)
    copy.contradictions.push(...contradictions)
    copy.refused.push(...refused)
    return copy
  }

  toWire(): AddedRows {
    const { added, updated, duplicates, contradictions, refused } = this
    return {
      added,
      updated,
      duplicates,
      contradictions,
      contradictions_count: this.contradictionsCount,
      refused,
      refused_count: this.refusedCount,
    }
  }
}

export async function addRows(
  deps: QuestionSetDeps,
  call: SetCall,
  { rows, isReplacing, report = new Report() }: GivenRows,
): Promise<AddedRows> {
  let soFar = report
  const seen = new Set<string>()
  return await writeInParts(deps, call, {
    rows,
    idPrefix: "ex",
    checkRoom,
    async write({ sql, now, set, questions }, part) {
      const known = await knownRows(sql, set.id, part)
      const changed: Adding["changed"] = new Map()
      const found = soFar.copy()
      for (const row of part) addRow(row, { questions, known, changed, seen, isReplacing, report: found })
      await store(sql, now, { setId: set.id, changed })
      return { found, changed }
    },
    written({ found, changed }) {
      soFar = found
      for (const hash of changed.keys()) seen.add(hash)
    },
    async end({ sql, set, audit }, { found }) {
      await checkStorage(sql, set, "examples")
      await audit(action, set, { after: countsOf(found) })
      return found.toWire()
    },
    action,
    soFar: () => countsOf(soFar),
  })
}

const action = "question_set.examples.add"

const countsOf = ({ added, updated, refusedCount, contradictionsCount }: Report) => ({
  added,
  updated,
  refused: refusedCount + contradictionsCount,
})

async function checkRoom(
  {
    sql,
    set,
    questions,
  }: { readonly sql: Sql; readonly set: QuestionSet; readonly questions: Adding["questions"] },
  parts: readonly (readonly PreparedText<GivenRow>[])[],
): Promise<void> {
  // What is refused is told when its part is written.
  const report = new Report()
  const fresh = new Map<string, GivenRow>()
  for (const part of parts) {
    const usable = part.filter(({ row, labels }) => labelsOf(row, labels, { questions, report }))
    for (const row of usable) fresh.set(row.hash, row)
    const hashes = usable.map(({ hash }) => hash)
    for (const { inputHash } of await findLabelsByHash(sql, set.id, hashes)) fresh.delete(inputHash)
  }
  const bytes = [...fresh.values()].reduce(
    (sum, { input, labels }) => sum + Buffer.byteLength(input) + JSON.stringify(labels).length,
    0,
  )
  checkCount((await countRows(sql, set.id)).examples + fresh.size)
  await checkStorage(sql, set, "examples", { rows: fresh.size, bytes })
}

function checkCount(examples: number): void {
  if (examples > questionSetLimits.examplesMax)
    throw new Fault(
      "conflict",
      `Cannot add the examples: the set would have ${examples}; at most ` +
        `${questionSetLimits.examplesMax} are kept`,
    )
}

interface KnownRow {
  /** Null for a row of this request. */
  readonly id: string | null
  readonly labels: Labels
  readonly teacherLabels: TeacherLabels
}

async function knownRows(
  sql: Sql,
  setId: string,
  rows: readonly PreparedText<GivenRow>[],
): Promise<Map<string, KnownRow>> {
  const hashes = rows.map(({ hash }) => hash)
  const examples = await findLabelsByHash(sql, setId, hashes)
  return new Map(
    examples.map(({ id, inputHash, labels, teacherLabels }) => [
      inputHash,
      { id, labels: decodeLabels(labels), teacherLabels: decodeTeacherLabels(teacherLabels) },
    ]),
  )
}

interface Adding {
  readonly questions: readonly SetQuestion[]
  readonly known: Map<string, KnownRow>
  /** By hash of the text: what is to be inserted or updated. */
  readonly changed: Map<string, KnownRow & { readonly stored: PlacedText; readonly hasPeoples: boolean }>
  /** Hashes of texts in parts before this one, of the same request. */
  readonly seen: ReadonlySet<string>
  readonly isReplacing: boolean
  readonly report: Report
}

function addRow(prepared: PreparedText<GivenRow>, adding: Adding): void {
  const { row, hash, stored, labels: given, teacher } = prepared
  const { known, changed, seen, isReplacing, report } = adding
  const labels = labelsOf(row, given, adding)
  if (!labels) return
  const before = known.get(hash)
  // A teacher contradicts no person: its answers stand beside people's labels, and a newer one replaces an older.
  const conflicts = before && teacher === undefined ? conflictsOf(before, labels) : []
  for (const [question, old, now] of conflicts)
    report.contradict({ row, id: before?.id ?? null, question, before: old, now })
  if (conflicts.length > 0 && !isReplacing) return
  const merged =
    teacher === undefined ? withLabels(before, labels) : withAnswers(before, labels, { ...adding, teacher })
  if (before && JSON.stringify(merged) === JSON.stringify(withLabels(before, {}))) {
    report.duplicates++
    return
  }
  if (!before) report.added++
  else if (before.id !== null && !changed.has(hash) && !seen.has(hash)) report.updated++
  const hasPeoples = teacher === undefined || changed.get(hash)?.hasPeoples === true
  const after = { id: before?.id ?? null, stored, ...merged, hasPeoples }
  known.set(hash, after)
  changed.set(hash, after)
}

type MergedLabels = Pick<KnownRow, "labels" | "teacherLabels">

const withLabels = (before: KnownRow | undefined, labels: Labels): MergedLabels => ({
  labels: { ...before?.labels, ...labels },
  teacherLabels: before?.teacherLabels ?? {},
})

/** They answer the questions as they are put now. */
const withAnswers = (
  before: KnownRow | undefined,
  labels: Labels,
  { questions, teacher: model }: Pick<Adding, "questions"> & { readonly teacher: string },
): MergedLabels => ({
  labels: before?.labels ?? {},
  teacherLabels: {
    ...before?.teacherLabels,
    ...Object.fromEntries(
      questions.flatMap((question): [string, TeacherLabel][] => {
        const label = Object.hasOwn(labels, question.name) ? labels[question.name] : undefined
        if (label === undefined) return []
        return [
          [question.name, { label, model, confidence: null, cost_usd: null, asked: askedHash(question) }],
        ]
      }),
    ),
  },
})

function labelsOf(
  row: number,
  given: GivenRow["labels"],
  { questions, report }: Pick<Adding, "questions" | "report">,
): Labels | null {
  try {
    return readLabels(given, questions)
  } catch (error) {
    if (!(error instanceof BadLabel)) throw error
    report.refuse(row, error.message)
    return null
  }
}

function conflictsOf({ labels }: KnownRow, now: Labels): [string, Label, Label][] {
  return Object.entries(now).flatMap(([question, label]) => {
    const before = Object.hasOwn(labels, question) ? labels[question] : undefined
    return before === undefined || before === label ? [] : [[question, before, label]]
  })
}

async function store(
  sql: Sql,
  now: Date,
  { setId, changed }: { readonly setId: string; readonly changed: Adding["changed"] },
): Promise<void> {
  const fresh = [...changed].filter(([, { id }]) => id === null)
  checkCount((await countRows(sql, setId)).examples + fresh.length)
  await insertExamples(
    sql,
    fresh.map(([inputHash, { stored, labels, teacherLabels, hasPeoples }]) => ({
      ...stored,
      inputHash,
      split: splitOf(inputHash),
      labels: JSON.stringify(labels),
      teacherLabels: JSON.stringify(teacherLabels),
      source: hasPeoples ? "added" : "teacher",
      createdAt: now,
      updatedAt: now,
    })),
  )
  await relabelExamples(
    sql,
    [...changed.values()].flatMap(({ id, labels, teacherLabels, hasPeoples }) =>
      id === null
        ? []
        : [
            {
              id,
              labels: JSON.stringify(labels),
              teacherLabels: JSON.stringify(teacherLabels),
              // The time of an example is that of people's labels.
              updatedAt: hasPeoples ? now : null,
            },
          ],
    ),
  )
}
