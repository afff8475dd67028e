/** The versions of a set for a list to choose from. */
import type { QuestionSetVersionItem } from "../../../src/contract/question-sets/sets.ts"
import { api } from "../api.ts"
import { usePages } from "../parts/more.tsx"
import { type SetAddress, versionsKey } from "./set-query.ts"
import { t } from "../i18n/translate.ts"

export function useVersionList(at: SetAddress): readonly QuestionSetVersionItem[] {
  const versions = usePages(
    versionsKey(at),
    async (query) => await api.listQuestionSetVersions({ params: at, query }),
  )
  return versions.data ?? []
}

/** With the chosen one, which may be older than those listed. */
export function versionOptions(
  versions: readonly QuestionSetVersionItem[],
  chosen: string,
): readonly { readonly value: string; readonly label: string }[] {
  const options = versions.map(({ version, labels }) => ({
    value: String(version),
    label: labels.includes("production")
      ? t("Version {version} (production)", { version })
      : t("Version {version}", { version }),
  }))
  const known = chosen === "" || options.some(({ value }) => value === chosen)
  return known ? options : [...options, { value: chosen, label: t("Version {chosen}", { chosen }) }]
}
