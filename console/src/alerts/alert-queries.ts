/** What the Alerts page reads, under keys that its writes refresh. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { api } from "../api.ts"
import { useOrganization } from "../session.ts"
import type { TargetNames } from "./rule-words.ts"

export const alertsKey = (org_id: string): readonly unknown[] => ["alerts", org_id]
export const rulesKey = (org_id: string): readonly unknown[] => [...alertsKey(org_id), "rules"]
export const webhooksKey = (org_id: string): readonly unknown[] => [...alertsKey(org_id), "webhooks"]
export const deliveriesKey = (org_id: string, webhookId: string): readonly unknown[] => [
  ...alertsKey(org_id),
  "deliveries",
  webhookId,
]

/** States change without anyone on this page: rules are evaluated and deliveries retried all the time. */
export const refreshMs = 10_000

export const alertOptionsQuery = (org_id: string) =>
  queryOptions({
    queryKey: [...alertsKey(org_id), "options"],
    staleTime: 60_000,
    queryFn: async () => await api.getAlertOptions({ params: { org_id } }),
  })

const listedMax = 200

/** How many rules fire: an organization has fewer of them than a page holds. */
export const firingQuery = (org_id: string) =>
  queryOptions({
    queryKey: [...rulesKey(org_id), "firing"],
    refetchInterval: 30_000,
    queryFn: async () => {
      const { data } = await api.listAlertRules({ params: { org_id }, query: { limit: listedMax } })
      return data.filter(({ state, enabled }) => enabled && state === "firing").length
    },
  })

/** What rules can be about, and how it is called; what is deleted keeps its id. */
export function useTargets() {
  const { id: org_id } = useOrganization()
  const { data: keys = [] } = useQuery({
    queryKey: ["key-names", org_id, "targets"],
    queryFn: async () => (await api.listApiKeys({ params: { org_id }, query: { limit: listedMax } })).data,
  })
  const { data: sets = [] } = useQuery({
    queryKey: ["sets", org_id, "targets"],
    queryFn: async () => (await api.listQuestionSets({ params: { org_id } })).data,
  })
  const names: TargetNames = {
    key: (id) => keys.find((one) => one.id === id)?.name ?? id,
    set: (id) => sets.find((one) => one.id === id)?.name ?? id,
  }
  return { keys, sets, names }
}
