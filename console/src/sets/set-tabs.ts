/** The tabs of a question set; which one is open is in the address. */
import { t } from "../i18n/translate.ts"
export const setTabs = [
  ["try", t("Try")],
  ["questions", t("Questions")],
  ["versions", t("Versions")],
  ["examples", t("Examples")],
  ["teach", t("Teach")],
  ["threshold", t("Threshold")],
  ["cases", t("Cases")],
  ["shadow", t("Shadow")],
  ["monitoring", t("Monitoring")],
  ["review", t("Review")],
  ["use", t("Use")],
] as const
export type SetTab = (typeof setTabs)[number][0]

interface SetSearch {
  /** Left out: the questions. */
  readonly tab?: SetTab
}

export function readSetSearch(search: Record<string, unknown>): SetSearch {
  const known = setTabs.find(([tab]) => tab === search["tab"])
  return known && known[0] !== "questions" ? { tab: known[0] } : {}
}

/** In the storage of the tab: the text that is tried, also one that stood in the playground. */
export const triedTextEntry = "tried-text"
