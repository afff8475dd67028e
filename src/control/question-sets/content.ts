/** The content of a version: checked, and compared with another. */
import type { Catalog } from "../../base/catalog.ts"
import { findRuleFlaw } from "../../base/evidence-rules.ts"
import { checkVirtual, isVirtual, VirtualModelError } from "../../base/virtual-models.ts"
import { problemsMax } from "../../contract/check.ts"
import { Fault } from "../../contract/errors.ts"
import type { QuestionSetContent, SetQuestion } from "../../contract/question-sets/content.ts"
import type { ControlDeps } from "../audited-change.ts"
import type { ContentAccess } from "../content/settings.ts"
import { findAmong } from "../virtual-models.ts"
import { listVirtualModels } from "../../store/organization-snapshot.ts"
import { sorted } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"

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

/** Everything that the model is asked, and the rules that its answers were taught with. */
function wordingOf(question: SetQuestion): string {
  const { type, instructions } = question
  const rules = (question.rules ?? []).map(({ when, answer, compare, weight }) => [
    when,
    answer,
    compare,
    weight,
  ])
  switch (question.type) {
    case "predicate":
      return JSON.stringify([type, instructions, rules])
    case "choice":
      return JSON.stringify([
        type,
        instructions,
        question.choices.map(({ value, description }) => [value, description ?? ""]),
        rules,
      ])
    case "score":
      return JSON.stringify([
        type,
        instructions,
        question.levels.map(({ label, description }) => [label, description ?? ""]),
        rules,
      ])
  }
}

/** Throws Fault `invalid_body` for rules that cannot be read. */
export function checkRules({ questions }: QuestionSetContent): void {
  const details = questions.flatMap(({ rules = [] }, question) =>
    rules.flatMap(({ when }, at) => {
      const message = findRuleFlaw(when)
      return message === null ? [] : [{ path: `questions.${question}.rules.${at}.when`, message }]
    }),
  )
  const [first] = details
  if (first)
    throw new Fault("invalid_body", `Cannot save the set: a rule cannot be used: ${first.message}`, {
      details: details.slice(0, problemsMax),
    })
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

interface ContentChange {
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

/** What the handlers of question sets are made of. */
export interface QuestionSetDeps extends ControlDeps {
  /** Encrypts the texts of examples. */
  readonly content: Pick<ContentAccess, "cipher">
  readonly catalog: Catalog
  /** The address of this installation, where editors find the schema of a file. */
  publicUrl(): string
}
