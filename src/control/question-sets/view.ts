/** Question sets and versions as they are found for a caller and shown on the wire. */
import type { Catalog } from "../../base/catalog.ts"
import type { Membership } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import type {
  QuestionSet as WireSet,
  QuestionSetItem,
  QuestionSetVersion,
} from "../../contract/question-sets/sets.ts"
import { decodeContent } from "../../store/question-sets/content.ts"
import { findLastCheck } from "../../store/question-sets/jobs.ts"
import {
  type QuestionSet,
  type SetLabel,
  type SetVersion,
  countRows,
  findSet,
  findVersion,
  listLabels,
  lockSet,
} from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { outdatedSets } from "./outdated.ts"

export async function readSet(
  sql: Sql,
  { organizationId }: Membership,
  idOrName: string,
): Promise<QuestionSet> {
  const set = await findSet(sql, organizationId, idOrName)
  if (!set) throw noSet()
  return set
}

export async function lockReadSet(
  sql: Sql,
  { organizationId }: Membership,
  idOrName: string,
): Promise<QuestionSet> {
  const set = await lockSet(sql, organizationId, idOrName)
  if (!set) throw noSet()
  return set
}

export async function readVersion(sql: Sql, set: QuestionSet, reference: string): Promise<SetVersion> {
  const version = await findVersion(sql, set, reference)
  if (!version)
    throw new Fault("not_found", `Cannot find the version: ${set.name} has no version or label ${reference}`)
  return version
}

const noSet = (): Fault =>
  new Fault("not_found", "Cannot find the question set: the organization has none of this name or id")

export function settingsOf(set: QuestionSet): Record<string, unknown> {
  return { name: set.name, description: set.description, shadow: shadowOf(set) }
}

export function shadowOf({ shadowVersion, shadowModel, shadowShare }: QuestionSet): WireSet["shadow"] {
  return shadowShare === 0 ? null : { version: shadowVersion, model: shadowModel, share: shadowShare }
}

interface SummaryOf {
  readonly content: QuestionSetContent
  readonly production: number | null
  readonly outdated: boolean
}

export function toSummary(
  set: QuestionSet,
  { content, production, outdated }: SummaryOf,
): Omit<QuestionSetItem, "examples"> {
  return {
    id: set.id,
    name: set.name,
    description: set.description,
    model: content.model,
    question_names: content.questions.map(({ name }) => name),
    latest_version: set.latest,
    production_version: production,
    outdated,
    created_by: set.createdBy,
    created_at: set.createdAt.toISOString(),
    updated_at: set.updatedAt.toISOString(),
    revision: Number(set.revision),
  }
}

export async function toView(catalog: Catalog, sql: Sql, set: QuestionSet): Promise<WireSet> {
  const labels = await listLabels(sql, set.id)
  const version = await readVersion(sql, set, "latest")
  const content = decodeContent(version.content)
  const production = labels.find(({ label }) => label === "production")?.number ?? null
  const check = await findLastCheck(sql, set.id)
  const outdated = await outdatedSets(catalog, sql, set.organizationId, [{ setId: set.id, content }])
  return {
    ...toSummary(set, { content, production, outdated: outdated.has(set.id) }),
    labels: labels.map(({ label, number, updatedAt }) => ({
      label,
      version: number,
      updated_at: updatedAt.toISOString(),
    })),
    questions: content.questions,
    calibration: content.calibration,
    hash: version.hash,
    shadow: shadowOf(set),
    counts: await countRows(sql, set.id),
    last_check: check && { job_id: check.id, state: check.state },
  }
}

export function toVersionItem(
  version: Omit<SetVersion, "content">,
  set: QuestionSet,
  labels: readonly SetLabel[],
): Omit<QuestionSetVersion, keyof QuestionSetContent> {
  const own = labels.filter(({ number }) => number === version.number).map(({ label }) => label)
  return {
    version: version.number,
    hash: version.hash,
    note: version.note,
    labels: version.number === set.latest ? ["latest", ...own] : own,
    created_by: version.createdBy,
    created_at: version.createdAt.toISOString(),
  }
}

export function toVersion(
  version: SetVersion,
  set: QuestionSet,
  labels: readonly SetLabel[],
): QuestionSetVersion {
  return { ...toVersionItem(version, set, labels), ...decodeContent(version.content) }
}
