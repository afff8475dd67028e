/** The colors of a dimension's groups: models by their place in the organization's catalog, the same on every page. */
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import type { GroupBy } from "../../../src/contract/analytics.ts"
import { type Colors, colorsOf, restColor } from "../charts/colors.ts"
import { modelsQuery, useOrganization } from "../session.ts"

export function useSeriesColors(dimension: GroupBy, keys: readonly (string | null)[]): Colors {
  const { id } = useOrganization()
  const { data } = useQuery(modelsQuery(id))
  return useMemo(() => {
    if (dimension !== "model") return colorsOf(keys)
    // A color that changes once the catalog is there would be taken for another model.
    if (!data) return () => restColor
    return colorsOf(
      keys,
      data.map(({ model_sku }) => model_sku),
    )
  }, [dimension, keys, data])
}
