/** How the groups of a dimension read: API keys by their names, everything else as it is. */
import { useQuery } from "@tanstack/react-query"
import { useCallback } from "react"
import type { Dimension } from "../../../src/contract/analytics.ts"
import { api } from "../api.ts"
import { useOrganization } from "../session.ts"
import { keyName } from "./view.ts"

/** Keys that have ended, and those beyond the first page, keep their ids. */
export function useKeyNames(dimension: Dimension): (key: string | null) => string {
  const { id: org_id } = useOrganization()
  const { data } = useQuery({
    queryKey: ["key-names", org_id],
    enabled: dimension === "api_key_id",
    queryFn: async () => (await api.listApiKeys({ params: { org_id } })).data,
  })
  return useCallback(
    (key) => {
      const named = dimension === "api_key_id" ? data?.find(({ id }) => id === key) : undefined
      return named?.name ?? keyName(key)
    },
    [data, dimension],
  )
}
