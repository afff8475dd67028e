/** How the groups of a dimension read: API keys and endpoints by their names, everything else as it is. */
import { useQuery } from "@tanstack/react-query"
import { useCallback } from "react"
import type { GroupBy } from "../../../src/contract/analytics.ts"
import { api } from "../api.ts"
import { endpointName } from "../requests/request-table.tsx"
import { useOrganization } from "../session.ts"
import { keyName } from "./view.ts"

/** Keys that have ended, and those beyond the first page, keep their ids. */
export function useKeyNames(dimension: GroupBy): (key: string | null) => string {
  const { id: org_id } = useOrganization()
  const { data } = useQuery({
    queryKey: ["key-names", org_id],
    enabled: dimension === "api_key_id",
    queryFn: async () => (await api.listApiKeys({ params: { org_id } })).data,
  })
  return useCallback(
    (key) => {
      if (dimension === "call_source" && key) return endpointName(key)
      const named = dimension === "api_key_id" ? data?.find(({ id }) => id === key) : undefined
      return named?.name ?? keyName(key)
    },
    [data, dimension],
  )
}
