/** One measure over time, a line for each group; a group's name leads to its requests alone. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { type ReactNode, useMemo, useState } from "react"
import { type GroupedTimeseriesResponse, type Metric, dimensions } from "../../../src/contract/analytics.ts"
import { api } from "../api.ts"
import type { Colors } from "../charts/colors.ts"
import { TimeChart } from "../charts/time-chart.tsx"
import { SelectField } from "../parts/field.tsx"
import { moment, zone } from "../parts/format.ts"
import { Empty, Loaded, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { hasGaps, withGaps } from "./gaps.ts"
import { useKeyNames } from "./key-names.ts"
import { refreshMs, overviewQuery } from "./query.ts"
import { ViewLink, filtered } from "./view-link.tsx"
import { type View, dimensionNames, formatMetric, isCounted, metricNames } from "./view.ts"

const metricOptions = Object.entries(metricNames).map(([value, label]) => ({ value, label }))
const dimensionOptions = dimensions.map((value) => ({ value, label: dimensionNames[value] }))
/** As many groups as the server names. */
const groupsMax = "12"

export function OverTime({
  view,
  colors,
  onZoom,
  onChange,
}: {
  view: View
  colors: Colors
  onZoom: (startMs: number, endMs: number) => void
  onChange: (view: Partial<View>) => void
}): ReactNode {
  const series = useSeries(view)
  const gaps = hasGaps(view.metric)
  const requests = useSeries({ ...view, metric: "requests" }, { enabled: gaps, limit: groupsMax })
  return (
    <Panel
      title="Over time"
      actions={
        <div className="grid grid-cols-2 gap-2 max-sm:w-full">
          <div className="sm:w-40">
            <SelectField
              label="Measure"
              value={view.metric}
              options={metricOptions}
              onChange={(event) => onChange({ metric: event.target.value as Metric })}
            />
          </div>
          <div className="sm:w-40">
            <SelectField
              label="Split by"
              value={view.by}
              options={dimensionOptions}
              onChange={(event) => onChange({ by: event.target.value as View["by"] })}
            />
          </div>
        </div>
      }
    >
      <Loaded query={series} what="the chart">
        {(data) => (
          <SeriesChart
            data={data}
            requests={gaps ? requests.data : undefined}
            view={view}
            colors={colors}
            onZoom={onZoom}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function useSeries(view: View, options: { enabled?: boolean; limit?: string } = {}) {
  const { id: org_id } = useOrganization()
  const { enabled = true, ...limit } = options
  const query = { ...overviewQuery(view), ...limit, view: "timeseries" as const }
  return useQuery({
    queryKey: ["analytics", org_id, query],
    enabled,
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
    // With this view, the answer is a grouped timeseries.
    queryFn: async () =>
      (await api.getAnalyticsOverview({ params: { org_id }, query })) as GroupedTimeseriesResponse,
  })
}

function SeriesChart({
  data,
  requests,
  view,
  colors,
  onZoom,
}: {
  data: GroupedTimeseriesResponse
  requests: GroupedTimeseriesResponse | undefined
  view: View
  colors: Colors
  onZoom: (startMs: number, endMs: number) => void
}): ReactNode {
  const [at, setAt] = useState<number | null>(null)
  const nameOf = useKeyNames(data.dim)
  const timesMs = useMemo(() => data.buckets.map(({ t0 }) => t0), [data])
  const lines = useMemo(() => {
    const values = withGaps(data.series, data.metric, requests?.series ?? [])
    return data.series.map(({ key }, index) => ({
      key,
      name: nameOf(key),
      color: colors(key),
      values: values[index] ?? [],
    }))
  }, [data, requests, nameOf, colors])
  const format = useMemo(() => formatMetric(data.metric), [data.metric])
  if (lines.length === 0)
    return (
      <Empty icon="chart" title="No requests in this range">
        Ask something in the playground, or choose a longer range.
      </Empty>
    )
  return (
    <>
      <TimeChart
        title={`${metricNames[data.metric]} over time by ${dimensionNames[data.dim].toLowerCase()}`}
        timesMs={timesMs}
        lines={lines}
        format={format}
        whole={isCounted(data.metric)}
        onZoom={onZoom}
        onPoint={setAt}
      />
      <ul className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-xs" aria-label="Series">
        {lines.map(({ key, name, color, values }) => (
          <li key={name} className="flex min-w-0 items-center gap-1.5">
            <span className="size-2.5 shrink-0 rounded-sm" style={{ background: color }} />
            {key === null ? (
              <span className="truncate">{name}</span>
            ) : (
              <ViewLink
                view={view}
                change={filtered(view, `${data.dim}:${key}`)}
                title={`Show only ${name}`}
                className="truncate hover:underline"
              >
                {name}
              </ViewLink>
            )}
            {at === null ? null : (
              <strong className="number font-medium">
                {values[at] === null ? "no requests" : format(values[at] ?? 0)}
              </strong>
            )}
          </li>
        ))}
        <li className="text-soft number ml-auto">
          {at === null ? `Times in ${zone()}. Drag across the chart to zoom.` : moment(timesMs[at] ?? 0)}
        </li>
      </ul>
    </>
  )
}
