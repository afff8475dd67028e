/** One question set as its page reads it, and the lists that a change of it makes stale. */
import { queryOptions } from "@tanstack/react-query"
import { api } from "../api.ts"

export interface SetAddress {
  readonly org_id: string
  /** The id of the set, which stays when it gets another name. */
  readonly set_id: string
}

export const setQuery = (org_id: string, set_id: string) =>
  queryOptions({
    queryKey: ["sets", org_id, "one", set_id],
    queryFn: async () => await api.getQuestionSet({ params: { org_id, set_id } }),
  })

/** Everything about the sets of an organization: lists, pages, versions, examples and jobs. */
export const setsKey = (org_id: string): readonly unknown[] => ["sets", org_id]

export const versionsKey = ({ org_id, set_id }: SetAddress): readonly unknown[] => [
  ...setsKey(org_id),
  "versions",
  set_id,
]
export const examplesKey = ({ org_id, set_id }: SetAddress): readonly unknown[] => [
  ...setsKey(org_id),
  "examples",
  set_id,
]
export const jobsKey = ({ org_id, set_id }: SetAddress): readonly unknown[] => [
  ...setsKey(org_id),
  "jobs",
  set_id,
]
export const casesKey = ({ org_id, set_id }: SetAddress): readonly unknown[] => [
  ...setsKey(org_id),
  "cases",
  set_id,
]
