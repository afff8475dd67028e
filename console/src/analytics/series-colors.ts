/** The colors of a dimension's groups: models by their place in the organization's catalog, the same on every page. */
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import type { Dimension } from "../../../src/contract/analytics.ts"
import { type Colors, colorsOf } from "../charts/colors.ts"
import { modelsQuery, useOrganization } from "../session.ts"

export function useSeriesColors(dimension: Dimension, keys: readonly (string | null)[]): Colors {
  const { id } = useOrganization()
  const { data } = useQuery(modelsQuery(id))
  return useMemo(() => {
    const catalog = dimension === "model" ? (data ?? []).map(({ model_sku }) => model_sku) : []
    return colorsOf(keys, catalog)
  }, [dimension, keys, data])
}
