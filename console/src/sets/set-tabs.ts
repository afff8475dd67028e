/** The tabs of a question set; which one is open is in the address. */
export const setTabs = [
  ["try", "Try"],
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
