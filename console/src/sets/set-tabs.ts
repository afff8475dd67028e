/** The tabs of a question set; which one is open is in the address. */
export const setTabs = [
  ["questions", "Questions"],
  ["versions", "Versions"],
  ["examples", "Examples"],
  ["teach", "Teach"],
  ["threshold", "Threshold"],
  ["cases", "Cases"],
  ["shadow", "Shadow"],
  ["monitoring", "Monitoring"],
  ["review", "Review"],
  ["use", "Use"],
] as const
export type SetTab = (typeof setTabs)[number][0]

export interface SetSearch {
  /** Left out: the questions. */
  readonly tab?: SetTab
}

export function readSetSearch(search: Record<string, unknown>): SetSearch {
  const known = setTabs.find(([tab]) => tab === search["tab"])
  return known && known[0] !== "questions" ? { tab: known[0] } : {}
}
