/** Which sets were taught on another version of their model than answers today. */
import type { Catalog } from "../../base/catalog.ts"
import { VirtualModelError, isVirtual, resolveVirtual } from "../../base/virtual-models.ts"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import { listTaughtOn } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { listVirtualModels } from "../../store/virtual-models.ts"
import { findAmong } from "../virtual-models.ts"
import { artefactsIn } from "./content.ts"

export interface ListedContent {
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
    const { stages, isFirstSplit } = resolveVirtual(find, named, "")
    return isFirstSplit ? undefined : stages[0][0].version
  } catch (error) {
    if (!(error instanceof VirtualModelError)) throw error
    return undefined
  }
}
