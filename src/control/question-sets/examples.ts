/** Examples of a question set: added row by row or from a file, checked, compared with what is known. */
import type { CallOf, Handlers, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type SetQuestion, questionSetLimits } from "../../contract/question-sets/content.ts"
import {
  type AddedRows,
  type Example as WireExample,
  addedRowsListedMax,
  type exampleTable,
  type Label,
} from "../../contract/question-sets/examples.ts"
import { nextTurn } from "../../base/next-turn.ts"
import { splitOf } from "../../scoring/teach/question.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import { lockOrganization } from "../../store/organizations.ts"
import {
  type Example,
  deleteCase,
  type TeacherLabels,
  decodeTeacherLabels,
  deleteExample,
  findExample,
  findLabelsByHash,
  insertExamples,
  pageCases,
  pageExamples,
  type PlacedText,
  putCases,
  relabelExamples,
  updateExample,
  openInput,
  sealInput,
  decodeLabels,
  type Labels,
} from "../../store/question-sets/examples.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import { checkStorage, countRows, decodeContent, type QuestionSet } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { acting, change, notFound, toList } from "../audited-change.ts"
import { BadLabel, readLabels } from "./labels.ts"
import type { QuestionSetDeps } from "./content.ts"
import { type UploadFormat, readUpload } from "./upload.ts"
import { lockReadSet, readSet, readVersion } from "./view.ts"
import { excerptOf, search } from "../search.ts"

type Table = typeof exampleTable

export function exampleHandlers(deps: QuestionSetDeps): Handlers<Table> {
  const { database } = deps
  const { cipher } = deps.content
  return {
    async listQuestionSetExamples(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      return await listExamples(deps, set.id, call)
    },
    addQuestionSetExamples: async (call) => {
      const { rows, replace } = call.body
      return await addRows(
        deps,
        call,
        rows.map((row, at) => ({ row: at + 1, ...row })),
        replace,
      )
    },
    uploadQuestionSetExamples: async (call) => await upload(deps, call),
    updateQuestionSetExample: async (call) => await relabel(deps, call),
    async deleteQuestionSetExample(call) {
      const { membership } = acting(call)
      await change(deps, call, async ({ sql, audit }) => {
        const set = await lockReadSet(sql, membership, call.params.set_id)
        if (!(await deleteExample(sql, set.id, call.params.example_id))) throw notFound("example")
        await audit("question_set.example.delete", set, { before: { id: call.params.example_id } })
      })
    },
    async listQuestionSetCases(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      return toList(await pageCases(database, set.id, call.query), (one) => ({
        id: one.id,
        input: openInput(cipher, one),
        expected: decodeLabels(one.expected),
        created_at: one.createdAt.toISOString(),
      }))
    },
    addQuestionSetCases: async (call) => await freeze(deps, call),
    async deleteQuestionSetCase(call) {
      const { membership } = acting(call)
      await change(deps, call, async ({ sql, audit }) => {
        const set = await lockReadSet(sql, membership, call.params.set_id)
        if (!(await deleteCase(sql, set.id, call.params.case_id))) throw notFound("case")
        await audit("question_set.case.delete", set, { before: { id: call.params.case_id } })
      })
    },
  }
}

const searchedPerStep = 100

async function listExamples(
  { database, content: { cipher } }: QuestionSetDeps,
  setId: string,
  { query, request }: CallOf<Table["listQuestionSetExamples"]>,
): Promise<{ data: WireExample[]; next_cursor: string | null }> {
  const { text, split } = query
  if (text === undefined)
    return toList(await pageExamples(database, setId, query), (example) => toExample(cipher, example))
  const page = await search(query, {
    stepRows: searchedPerStep,
    read: async (step) => await pageExamples(database, setId, { ...step, split }),
    cursorOf: ({ id }) => id,
    match: (example) => {
      const shown = toExample(cipher, example)
      const found = excerptOf(shown.input, text) === null ? null : shown
      return { found, characters: shown.input.length }
    },
    signal: request.signal,
  })
  return { data: page.items, next_cursor: page.nextCursor }
}

type SetCall = Pick<
  CallOf<Table["addQuestionSetExamples"]>,
  "principal" | "membership" | "params" | "request" | "idempotency"
>

interface GivenRow {
  /** From 1. */
  readonly row: number
  readonly input: string
  readonly labels: Readonly<Record<string, unknown>>
  /** The model whose answers the labels are; without one they are a person's. */
  readonly teacher?: string | undefined
}

/** A growing report; lists are cut, counts are not. */
class Report {
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

async function addRows(
  deps: QuestionSetDeps,
  call: SetCall,
  rows: readonly GivenRow[],
  isReplacing: boolean,
  report = new Report(),
): Promise<AddedRows> {
  const { membership, organizationId } = acting(call)
  const { database } = deps
  const named = await readSet(database, membership, call.params.set_id)
  const setId = named.id
  const { signal } = call.request
  const prepared = await prepareTexts(deps, { rows, setId, idPrefix: "ex", signal })
  const parts = partsOf(prepared)
  if (parts.length > 1) await checkRoom(database, named, parts)
  let soFar = report
  const seen = new Set<string>()
  const addPart = async (sql: Sql, now: Date, part: readonly Prepared<GivenRow>[]) => {
    // Two that add to sets of the same organization are measured one after the other.
    await lockOrganization(sql, organizationId)
    const set = await lockReadSet(sql, membership, call.params.set_id)
    const { questions } = decodeContent((await readVersion(sql, set, "latest")).content)
    checkSame(set, setId)
    const known = await knownRows(sql, set.id, part)
    const changed: Adding["changed"] = new Map()
    // A transaction may be run again: what its first run found does not count.
    const found = soFar.copy()
    for (const row of part) addRow(row, { questions, known, changed, seen, isReplacing, report: found })
    await store(sql, now, { setId: set.id, changed })
    return { set, found, changed }
  }
  for (const part of parts.slice(0, -1)) {
    signal.throwIfAborted()
    const now = new Date(deps.clock.nowMs())
    const { found, changed } = await database.transaction(async (sql) => await addPart(sql, now, part))
    soFar = found
    for (const hash of changed.keys()) seen.add(hash)
  }
  return await change(deps, call, async ({ sql, now, audit }) => {
    const { set, found } = await addPart(sql, now, parts.at(-1) ?? [])
    await checkStorage(sql, set, "examples")
    const wire = found.toWire()
    const refused = wire.refused_count + wire.contradictions_count
    await audit("question_set.examples.add", set, {
      after: { added: wire.added, updated: wire.updated, refused },
    })
    return wire
  })
}

/** An embedded database runs one transaction at a time: those of others go between the parts of a large one. */
const rowsPerPart = 500

function partsOf<Row>(rows: readonly Row[]): Row[][] {
  return Array.from({ length: Math.ceil(rows.length / rowsPerPart) }, (_, at) =>
    rows.slice(at * rowsPerPart, (at + 1) * rowsPerPart),
  )
}

/** Before the first of several parts: what has no room at the end is refused whole. */
async function checkRoom(
  sql: Sql,
  set: QuestionSet,
  parts: readonly (readonly Prepared<GivenRow>[])[],
): Promise<void> {
  const { questions } = decodeContent((await readVersion(sql, set, "latest")).content)
  const fresh = new Map<string, GivenRow>()
  for (const part of parts) {
    const usable = part.filter(({ labels }) => areLabels(labels, questions))
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

function areLabels(labels: GivenRow["labels"], questions: readonly SetQuestion[]): boolean {
  try {
    readLabels(labels, questions)
    return true
  } catch (error) {
    if (error instanceof BadLabel) return false
    throw error
  }
}

function checkCount(examples: number): void {
  if (examples > questionSetLimits.examplesMax)
    throw new Fault(
      "conflict",
      `Cannot add the examples: the set would have ${examples}; at most ` +
        `${questionSetLimits.examplesMax} are kept`,
    )
}

type Prepared<Row> = Row & { readonly hash: string; readonly stored: PlacedText }

/** Some milliseconds of work, also with the longest texts. */
const preparedBytesPerTurn = 256 * 1024

/** Before the transaction, which holds an embedded database: texts are hashed and encrypted while others have their turns. */
async function prepareTexts<Row extends { readonly input: string }>(
  { ids, content }: QuestionSetDeps,
  given: {
    readonly rows: readonly Row[]
    readonly setId: string
    readonly idPrefix: "ex" | "case"
    readonly signal: AbortSignal
  },
): Promise<Prepared<Row>[]> {
  const { rows, setId, idPrefix, signal } = given
  const prepared: Prepared<Row>[] = []
  let sinceTurn = 0
  for (const row of rows) {
    const place = { id: ids.next(idPrefix), setId }
    const stored = { ...place, ...sealInput(content.cipher, place, row.input) }
    prepared.push({ ...row, hash: rowHash(row.input), stored })
    sinceTurn += row.input.length + perTextBytes
    if (sinceTurn < preparedBytesPerTurn) continue
    sinceTurn = 0
    await nextTurn()
    signal.throwIfAborted()
  }
  return prepared
}

/** What a short text costs beside its bytes, in bytes. */
const perTextBytes = 2048

/** A set that was deleted meanwhile may have a successor of the same name, for which the texts are not encrypted. */
function checkSame(set: QuestionSet, preparedFor: string): void {
  if (set.id !== preparedFor) throw notFound("question set")
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
  rows: readonly Prepared<GivenRow>[],
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

function addRow(prepared: Prepared<GivenRow>, adding: Adding): void {
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
  const merged = mergeLabels(before, labels, teacher)
  if (before && JSON.stringify(merged) === JSON.stringify(mergeLabels(before, {}, undefined))) {
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

function mergeLabels(
  before: KnownRow | undefined,
  labels: Labels,
  model: string | undefined,
): Pick<KnownRow, "labels" | "teacherLabels"> {
  if (model === undefined)
    return { labels: { ...before?.labels, ...labels }, teacherLabels: before?.teacherLabels ?? {} }
  const answers = Object.entries(labels).map(
    ([name, label]) => [name, { label, model, confidence: null, cost_usd: null }] as const,
  )
  return {
    labels: before?.labels ?? {},
    teacherLabels: { ...before?.teacherLabels, ...Object.fromEntries(answers) },
  }
}

function labelsOf(row: number, given: GivenRow["labels"], { questions, report }: Adding): Labels | null {
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

const upload: Handle<QuestionSetDeps, Table["uploadQuestionSetExamples"]> = async (deps, call) => {
  const { membership, organizationId } = acting(call)
  // Before a thread works on it: whose set it is.
  const set = await readSet(deps.database, membership, call.params.set_id)
  const { questions } = decodeContent((await readVersion(deps.database, set, "latest")).content)
  const isCsv = /^text\/csv/i.test(call.request.header("content-type") ?? "")
  const format: UploadFormat = isCsv ? "csv" : "jsonl"
  const job = { format, bytes: call.body, questions: questions.map(({ name }) => name) }
  const uploaded = await readUpload(organizationId, job, call.request.signal)
  const report = new Report()
  const rows = uploaded.flatMap((row, at) => {
    if (typeof row !== "string") return [{ row: at + 1, ...row }]
    report.refuse(at + 1, row)
    return []
  })
  return await addRows(deps, call, rows, call.query.replace === "true", report)
}

const relabel: Handle<QuestionSetDeps, Table["updateQuestionSetExample"]> = async (deps, call) => {
  const { membership, organizationId } = acting(call)
  return await change(deps, call, async ({ sql, now, audit }) => {
    await lockOrganization(sql, organizationId)
    const set = await lockReadSet(sql, membership, call.params.set_id)
    const before = await findExample(sql, set.id, call.params.example_id)
    if (!before) throw notFound("example")
    const { questions } = decodeContent((await readVersion(sql, set, "latest")).content)
    const removed = new Set(
      Object.entries(call.body.labels).flatMap(([name, label]) => (label === null ? [name] : [])),
    )
    const given = Object.entries(call.body.labels).filter(([, label]) => label !== null)
    const kept = Object.entries(decodeLabels(before.labels)).filter(([name]) => !removed.has(name))
    const labels = given.length === 0 ? {} : readOrRefuse(Object.fromEntries(given), questions)
    const merged = JSON.stringify({ ...Object.fromEntries(kept), ...labels })
    const after = await updateExample(sql, before.id, merged, now)
    if (!after) throw notFound("example")
    await checkStorage(sql, set, "labels")
    await audit("question_set.example.update", set, { before: audited(before), after: audited(after) })
    return toExample(deps.content.cipher, after)
  })
}

const freeze: Handle<QuestionSetDeps, Table["addQuestionSetCases"]> = async (deps, call) => {
  const { membership, organizationId } = acting(call)
  const rows = call.body.cases
  const { id: setId } = await readSet(deps.database, membership, call.params.set_id)
  const prepared = await prepareTexts(deps, { rows, setId, idPrefix: "case", signal: call.request.signal })
  return await change(deps, call, async ({ sql, now, audit }) => {
    await lockOrganization(sql, organizationId)
    const set = await lockReadSet(sql, membership, call.params.set_id)
    checkSame(set, setId)
    const { questions } = decodeContent((await readVersion(sql, set, "latest")).content)
    // Of equal texts the last one stands.
    const byHash = new Map(
      prepared.map(({ hash, stored, expected }) => [
        hash,
        {
          ...stored,
          inputHash: hash,
          expected: JSON.stringify(readOrRefuse(expected, questions)),
          createdAt: now,
        },
      ]),
    )
    const added = await putCases(sql, [...byHash.values()])
    const { cases } = await countRows(sql, set.id)
    if (cases > questionSetLimits.casesMax)
      throw new Fault("conflict", `Cannot add the cases: at most ${questionSetLimits.casesMax} are kept`)
    await checkStorage(sql, set, "cases")
    const counts = { added, updated: rows.length - added }
    await audit("question_set.cases.add", set, { after: counts })
    return counts
  })
}

export function readOrRefuse(
  labels: Readonly<Record<string, unknown>>,
  questions: readonly SetQuestion[],
): Labels {
  try {
    return readLabels(labels, questions)
  } catch (error) {
    if (!(error instanceof BadLabel)) throw error
    throw new Fault("invalid_body", `Cannot use the labels: ${error.message}`, {
      details: [{ path: "labels", message: error.message }],
    })
  }
}

const audited = ({ id, labels }: Example) => ({ id, labels: decodeLabels(labels) })

function toExample(cipher: ContentCipher, example: Example): WireExample {
  const { id, labels, teacherLabels, split, source, createdAt, updatedAt } = example
  return {
    id,
    input: openInput(cipher, example),
    labels: decodeLabels(labels),
    teacher_labels: decodeTeacherLabels(teacherLabels),
    split,
    source,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  }
}
