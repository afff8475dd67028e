/** Examples and frozen cases of a question set: listed, added row by row or from a file, labelled anew, deleted. */
import type { CallOf, Handlers, Handle, OutputOf } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import type { Example as WireExample, exampleTable } from "../../contract/question-sets/examples.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import { lockOrganization } from "../../store/organizations.ts"
import {
  type Example,
  deleteCase,
  decodeTeacherLabels,
  deleteExample,
  findExample,
  pageCases,
  pageExamples,
  updateExample,
  openInput,
  decodeLabels,
  findCaseHashes,
  putCases,
} from "../../store/question-sets/examples.ts"
import { checkStorage, decodeContent, countRows } from "../../store/question-sets/sets.ts"
import { acting, change, notFound, toList } from "../audited-change.ts"
import { excerptOf, search } from "../search.ts"
import { addRows, Report } from "./add-rows.ts"
import type { QuestionSetDeps } from "./content.ts"
import { readOrRefuse } from "./labels.ts"
import { type UploadFormat, readUpload } from "./upload.ts"
import { lockReadSet, readSet, readVersion } from "./view.ts"
import { writeInParts } from "./write-in-parts.ts"

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
      const numbered = rows.map((row, at) => ({ row: at + 1, ...row }))
      return await addRows(deps, call, { rows: numbered, isReplacing: replace })
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
    addQuestionSetCases: async (call) => await addCases(deps, call),
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
  return await addRows(deps, call, { rows, isReplacing: call.query.replace === "true", report })
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

type AddCases = (typeof exampleTable)["addQuestionSetCases"]

/** Freezes texts with the answers that every version must give. */
async function addCases(deps: QuestionSetDeps, call: CallOf<AddCases>): Promise<OutputOf<AddCases>> {
  const rows = call.body.cases
  const action = "question_set.cases.add"
  let addedBefore = 0
  return await writeInParts(deps, call, {
    rows,
    idPrefix: "case",
    async checkRoom({ sql, set, questions }, parts) {
      const fresh = new Map<string, number>()
      for (const { hash, input, expected } of parts.flat())
        fresh.set(hash, Buffer.byteLength(input) + JSON.stringify(readOrRefuse(expected, questions)).length)
      for (const hash of await findCaseHashes(sql, set.id, [...fresh.keys()])) fresh.delete(hash)
      checkCount((await countRows(sql, set.id)).cases + fresh.size)
      const bytes = [...fresh.values()].reduce((sum, own) => sum + own, 0)
      await checkStorage(sql, set, "cases", { rows: fresh.size, bytes })
    },
    async write({ sql, now, set, questions }, part) {
      // Of equal texts the last one stands.
      const byHash = new Map(
        part.map(({ hash, stored, expected }) => [
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
      checkCount((await countRows(sql, set.id)).cases)
      return added
    },
    written(added) {
      addedBefore += added
    },
    async end({ sql, set, audit }, addedLast) {
      await checkStorage(sql, set, "cases")
      const added = addedBefore + addedLast
      const counts = { added, updated: rows.length - added }
      await audit(action, set, { after: counts })
      return counts
    },
    action,
    soFar: () => ({ added: addedBefore }),
  })
}

function checkCount(cases: number): void {
  if (cases > questionSetLimits.casesMax)
    throw new Fault("conflict", `Cannot add the cases: at most ${questionSetLimits.casesMax} are kept`)
}
