/** What people call keys, members and question sets, for lists that hold their ids. */
import { useQuery } from "@tanstack/react-query"
import { api } from "../api.ts"
import { useOrganization } from "../session.ts"
import { setsKey } from "../sets/set-query.ts"
import type { LogFilter } from "./log-view.ts"

interface Named {
  readonly id: string
  readonly name: string
}

export interface Names {
  readonly keys: readonly Named[]
  readonly members: readonly Named[]
  readonly sets: readonly Named[]
  /** The id where no name is known: of keys that have ended, and of those beyond the first page. */
  readonly of: (filter: LogFilter, id: string) => string
}

/** As many as the API gives at once. */
const listedMax = 200
const none: readonly Named[] = []

export function useNames(): Names {
  const { id: org_id } = useOrganization()
  const page = { params: { org_id }, query: { limit: listedMax } }
  const { data: keys = none } = useQuery({
    queryKey: ["keys", org_id, "all"],
    queryFn: async () => (await api.listApiKeys(page)).data,
  })
  const { data: found } = useQuery({
    queryKey: ["members", org_id, "all"],
    queryFn: async () => (await api.listMembers(page)).data,
  })
  const members = found?.map(({ user_id, name, email }) => ({ id: user_id, name: name ?? email })) ?? none
  const { data: sets = none } = useQuery({
    queryKey: [...setsKey(org_id), "all"],
    queryFn: async () => (await api.listQuestionSets(page)).data,
  })
  const lists: Partial<Record<LogFilter, readonly Named[]>> = {
    api_key_id: keys,
    principal_id: [...keys, ...members],
    question_set_id: sets,
  }
  return {
    keys,
    members,
    sets,
    of: (filter, id) => lists[filter]?.find((one) => one.id === id)?.name ?? id,
  }
}
