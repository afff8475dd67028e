/** Question sets and versions as they are found for a caller and shown on the wire. */
import type { Catalog } from "../../base/catalog.ts"
import { choosingNothing, isVirtual, resolveVirtual, VirtualModelError } from "../../base/virtual-models.ts"
import type { Membership } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import type {
  QuestionSetItem,
  QuestionSetVersion,
  QuestionSet as WireSet,
} from "../../contract/question-sets/sets.ts"
import { findAmong } from "../virtual-models.ts"
import { listVirtualModels } from "../../store/organization-snapshot.ts"
import { findLastCheck } from "../../store/question-sets/jobs.ts"
import {
  countRows,
  decodeContent,
  findSet,
  findVersion,
  listLabels,
  listTaughtOn,
  lockSet,
  type QuestionSet,
  type SetLabel,
  type SetVersion,
} from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { artefactsIn } from "./content.ts"

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

function shadowOf(set: QuestionSet): WireSet["shadow"] {
  const { shadowVersion, shadowModel, shadowShare, shadowCostMaxDayUsd } = set
  return shadowShare === 0
    ? null
    : {
        version: shadowVersion,
        model: shadowModel,
        share: shadowShare,
        cost_max_day_usd: shadowCostMaxDayUsd,
      }
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

/** Which sets were taught on another version of their model than answers today. */
interface ListedContent {
  readonly setId: string
  readonly content: QuestionSetContent
}

/** The ids of those sets; a model whose version is not known before it answers outdates none. */
export async function outdatedSets(
  catalog: Catalog,
  sql: Sql,
  organizationId: string,
  listed: readonly ListedContent[],
): Promise<ReadonlySet<string>> {
  const taught = listed.filter(({ content }) => artefactsIn(content).length > 0)
  if (taught.length === 0) return new Set()
  const hashes = taught.flatMap(({ content }) => artefactsIn(content))
  const setIds = taught.map(({ setId }) => setId)
  const found = await listTaughtOn(sql, setIds, [...new Set(hashes)])
  const find = findAmong(catalog, await listVirtualModels(sql, organizationId))
  const isOutdated = ({ setId, content }: ListedContent): boolean => {
    const version = versionOf(find, content.model)
    const own = new Set(artefactsIn(content))
    const isOther = (one: (typeof found)[number]): boolean =>
      one.setId === setId && own.has(one.hash) && one.modelVersion !== version
    return version !== undefined && found.some(isOther)
  }
  return new Set(taught.filter(isOutdated).map(({ setId }) => setId))
}

/** Of the first model that is asked. */
function versionOf(find: ReturnType<typeof findAmong>, name: string): string | undefined {
  const named = find(name)
  if (!named || !isVirtual(named)) return named?.version
  try {
    const { stages, isFirstSplit } = resolveVirtual(find, named, choosingNothing)
    return isFirstSplit ? undefined : stages[0][0].version
  } catch (error) {
    if (!(error instanceof VirtualModelError)) throw error
    return undefined
  }
}
