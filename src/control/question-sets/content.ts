/** The content of a version: checked, and compared with another. */
import { type Document, isScalar, parseDocument, stringify, visit } from "yaml"
import type { Catalog } from "../../base/catalog.ts"
import { task } from "../../base/peer/threads.ts"
import { VirtualModelError, checkVirtual, isVirtual } from "../../base/virtual-models.ts"
import { check, problemsMax } from "../../contract/check.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type QuestionSetContent,
  type SetQuestion,
  QuestionSetFile,
} from "../../contract/question-sets/content.ts"
import { sorted } from "../../store/question-sets/content.ts"
import type { Sql } from "../../store/sql.ts"
import { listVirtualModels } from "../../store/virtual-models.ts"
import { findAmong } from "../virtual-models.ts"

/** What was taught stays with a question that is still asked in the same words of the same model. */
export function keepArtefacts(
  content: QuestionSetContent,
  before: QuestionSetContent | null,
): QuestionSetContent {
  const known = new Map(before?.questions.map((question) => [question.name, question]))
  const questions = content.questions.map((question): SetQuestion => {
    if (question.artefact !== undefined) return question
    const old = known.get(question.name)
    const isSame = old && before?.model === content.model && wordingOf(old) === wordingOf(question)
    return { ...question, artefact: isSame ? (old.artefact ?? null) : null }
  })
  return { ...content, questions }
}

/** Everything that the model is asked. */
function wordingOf(question: SetQuestion): string {
  const { type, instructions } = question
  switch (question.type) {
    case "predicate":
      return JSON.stringify([type, instructions])
    case "choice":
      return JSON.stringify([
        type,
        instructions,
        question.choices.map(({ value, description }) => [value, description ?? ""]),
      ])
    case "score":
      return JSON.stringify([
        type,
        instructions,
        question.levels.map(({ label, description }) => [label, description ?? ""]),
      ])
  }
}

export function artefactsIn({ questions }: QuestionSetContent): string[] {
  return [...new Set(questions.flatMap(({ artefact }) => artefact ?? []))]
}

/** Throws Fault `invalid_body` where the model cannot classify. */
export async function checkModel(
  catalog: Catalog,
  sql: Sql,
  organizationId: string,
  sku: string,
): Promise<void> {
  const model = catalog.find(sku, "decisions")
  if (model?.kind === "generation") return
  if (!model && (await decides(catalog, sql, organizationId, sku))) return
  throw new Fault("invalid_body", `Cannot save the set: no model ${JSON.stringify(sku)} can classify`, {
    details: [{ path: "model", message: "no such classification model" }],
  })
}

/** Whether a virtual model of this name can classify. */
async function decides(catalog: Catalog, sql: Sql, organizationId: string, name: string): Promise<boolean> {
  const find = findAmong(catalog, await listVirtualModels(sql, organizationId))
  const named = find(name)
  try {
    return named !== null && isVirtual(named) && checkVirtual(find, named).has("decisions")
  } catch (error) {
    if (!(error instanceof VirtualModelError)) throw error
    return false
  }
}

export interface ContentChange {
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

/** Field by field; a question that is new or gone is one change. */
export function differenceOf(before: QuestionSetContent, after: QuestionSetContent): ContentChange[] {
  const { questions: oldQuestions, ...oldFields } = before
  const { questions: newQuestions, ...newFields } = after
  const old = new Map(oldQuestions.map((question) => [question.name, question]))
  const names = new Set([...old.keys(), ...newQuestions.map(({ name }) => name)])
  const current = new Map(newQuestions.map((question) => [question.name, question]))
  return [
    ...fieldChanges(oldFields, newFields, ""),
    ...orderChange(oldQuestions, newQuestions),
    ...[...names].flatMap((name) => questionChanges(old.get(name), current.get(name), `questions.${name}`)),
  ]
}

function questionChanges(
  before: SetQuestion | undefined,
  after: SetQuestion | undefined,
  path: string,
): ContentChange[] {
  if (before && after) return fieldChanges(before, after, `${path}.`)
  return [{ path, before: before ?? null, after: after ?? null }]
}

function fieldChanges(before: object, after: object, prefix: string): ContentChange[] {
  const [old, current] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  return [...new Set([...old.keys(), ...current.keys()])].toSorted().flatMap((field) => {
    const [was, is] = [old.get(field) ?? null, current.get(field) ?? null]
    const isSame = JSON.stringify(sorted(was)) === JSON.stringify(sorted(is))
    return isSame ? [] : [{ path: prefix + field, before: was, after: is }]
  })
}

function orderChange(before: readonly SetQuestion[], after: readonly SetQuestion[]): ContentChange[] {
  const [was, is] = [namesAlsoIn(before, after), namesAlsoIn(after, before)]
  return was.join() === is.join() ? [] : [{ path: "questions", before: was, after: is }]
}

const namesAlsoIn = (questions: readonly SetQuestion[], others: readonly SetQuestion[]): string[] =>
  questions.map(({ name }) => name).filter((name) => others.some((other) => other.name === name))

const schemaComment = "# yaml-language-server: $schema="

/**
 * What has its default is left out, so that a file stays as short as it was written. What was taught is not in the file: it
 * belongs to this installation, and stays with every question that is pushed back unchanged.
 */
export function writeFile(
  set: { readonly name: string; readonly description: string },
  content: QuestionSetContent,
  schemaUrl: string,
): string {
  const { model, questions, calibration } = content
  const file = {
    name: set.name,
    ...(set.description === "" ? {} : { description: set.description }),
    model,
    ...(calibration ? { calibration } : {}),
    questions: questions.map(
      ({ threshold, below, target_accuracy, calibration: own, artefact: _artefact, ...asked }) => ({
        ...asked,
        ...(threshold === null ? {} : { threshold }),
        ...(below === "abstain" ? {} : { below }),
        ...(target_accuracy === null ? {} : { target_accuracy }),
        ...(own ? { calibration: own } : {}),
      }),
    ),
  }
  return `${schemaComment}${schemaUrl}\n${stringify(file, { lineWidth: 100 })}`
}

/** Takes seconds for the largest file, so it is run in a thread. Throws Fault `invalid_body`. */
export const readFileTask = task(import.meta.url, readFile)

function readFile(yaml: string): QuestionSetFile {
  const found = parsed(yaml)
  const checked = check(QuestionSetFile, found, yaml.length)
  if (checked.success) return checked.data
  const details = checked.error.issues
    .slice(0, problemsMax)
    .map(({ path, message }) => ({ path: path.join("."), message }))
  const first = details[0]
  throw new Fault("invalid_body", `Cannot use the file: ${first?.path || "its top"}: ${first?.message}`, {
    details,
  })
}

function parsed(yaml: string): unknown {
  try {
    // The package compares every key with every other: minutes for a file of small keys.
    const document = parseDocument(yaml, { strict: true, uniqueKeys: false })
    if (document.errors[0]) throw document.errors[0]
    refuseRepeatedKeys(document)
    // Aliases would let a small file stand for a huge one.
    return document.toJS({ maxAliasCount: 0 }) as unknown
  } catch (cause) {
    throw new Fault("invalid_body", `Cannot use the file: it is not YAML: ${firstLine(cause)}`, { cause })
  }
}

function refuseRepeatedKeys(document: Document.Parsed): void {
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (seen.has(key.value)) throw new Error(`the key ${String(key.value)} is there twice`)
        seen.add(key.value)
      }
    },
  })
}

const firstLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split("\n", 1)[0] ?? ""
