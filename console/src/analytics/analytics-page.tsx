/** Analytics: what happened to requests, over time and by group; every view has an address. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo, useState } from "react"
import {
  type GroupedTimeseriesResponse,
  type Metric,
  type OverviewResponse,
  dimensions,
} from "../../../src/contract/analytics.ts"
import { ClientError, api } from "../api.ts"
import { seriesColors } from "../charts/colors.ts"
import { TimeChart } from "../charts/time-chart.tsx"
import { Button } from "../parts/button.tsx"
import { Segments, SelectField } from "../parts/field.tsx"
import { count, milliseconds, moment, percent, shortCount } from "../parts/format.ts"
import { Empty, Loaded, Page, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { Breakdown } from "./breakdown.tsx"
import { useKeyNames } from "./key-names.ts"
import { FindSequence } from "./find-sequence.tsx"
import {
  type View,
  dimensionNames,
  formatMetric,
  keyName,
  metricNames,
  presetNames,
  presets,
  rangeOf,
  readChip,
  readView,
  writeView,
  type Preset,
} from "./view.ts"

const route = getRouteApi("/o/$orgId/analytics")
const refreshMs = 30_000

export function AnalyticsPage(): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const view = readView(route.useSearch())
  const show = (next: Partial<View>): void =>
    void navigate({ to: "/o/$orgId/analytics", params: { orgId }, search: writeView({ ...view, ...next }) })
  const overview = useOverview(view)
  if (overview.error instanceof ClientError && overview.error.status === 503)
    return (
      <Page title="Analytics">
        <div className="panel">
          <Empty icon="chart" title="Analytics is not configured">
            This installation has no analytics engine. Its operator can install the package <code>chdb</code>{" "}
            or set <code>UMPIRE_CLICKHOUSE_URL</code>. Everything else works without it.
          </Empty>
        </div>
      </Page>
    )
  return (
    <Page title="Analytics" actions={<RangeControl view={view} onChange={show} />}>
      <Filters view={view} onChange={show} />
      <Loaded query={overview} what="analytics">
        {(data) => (
          <>
            <Summary summary={data.summary} metric={view.metric} onPick={(metric) => show({ metric })} />
            <Course
              view={view}
              onZoom={(startMs, endMs) => show({ range: { startMs, endMs } })}
              onChange={show}
            />
            <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
              <div className="flex min-w-0 flex-col gap-4">
                <Breakdown
                  data={data.breakdown}
                  view={view}
                  onFilter={(filter) => show({ filters: [...new Set([...view.filters, filter])] })}
                />
                <FindSequence />
              </div>
              <div className="flex min-w-0 flex-col gap-4">
                <Counts title="Results" rows={data.status.rows} />
                <Counts title="Tool calls" rows={data.tool_calls.rows} />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** A preset moves with the clock, in steps, so that a query is not new at every paint. */
function useQueryOf(view: View) {
  const step = Math.floor(Date.now() / refreshMs) * refreshMs
  const { startMs, endMs } = rangeOf(view, step + refreshMs)
  return {
    range_start: String(startMs),
    range_end: String(endMs),
    group_by: view.by,
    metric: view.metric,
    f: [...view.filters],
  }
}

function useOverview(view: View) {
  const { id: org_id } = useOrganization()
  const query = useQueryOf(view)
  return useQuery({
    queryKey: ["analytics", org_id, query],
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
    // Without a view, the answer is an overview.
    queryFn: async () => (await api.getAnalyticsOverview({ params: { org_id }, query })) as OverviewResponse,
  })
}

function RangeControl({
  view,
  onChange,
}: {
  view: View
  onChange: (view: Partial<View>) => void
}): ReactNode {
  const options = (Object.keys(presets) as Preset[]).map((value) => ({ value, label: presetNames[value] }))
  if (typeof view.range === "string")
    return (
      <Segments
        label="Range"
        value={view.range}
        options={options}
        onChange={(range) => onChange({ range })}
      />
    )
  return (
    <span className="flex flex-wrap items-center gap-2 text-xs">
      {moment(view.range.startMs)} to {moment(view.range.endMs)}
      <Button small icon="turn" onClick={() => onChange({ range: "24h" })}>
        Zoom out
      </Button>
    </span>
  )
}

function Filters({ view, onChange }: { view: View; onChange: (view: Partial<View>) => void }): ReactNode {
  if (view.filters.length === 0) return null
  return (
    <ul className="flex flex-wrap gap-2" aria-label="Filters">
      {view.filters.map((filter) => {
        const { dimension, value, excluded } = readChip(filter)
        const name = dimensions.find((one) => one === dimension)
        const words = `${name ? dimensionNames[name] : dimension} ${excluded ? "is not" : "is"} ${keyName(value)}`
        return (
          <li
            key={filter}
            className="bg-accent-wash text-accent flex items-center gap-1 rounded-full py-0.5 pr-1 pl-3 text-xs"
          >
            {words}
            <button
              type="button"
              aria-label={`Remove the filter ${words}`}
              className="hover:bg-panel grid size-5 place-items-center rounded-full"
              onClick={() => onChange({ filters: view.filters.filter((one) => one !== filter) })}
            >
              ×
            </button>
          </li>
        )
      })}
    </ul>
  )
}

function Summary({
  summary,
  metric,
  onPick,
}: {
  summary: OverviewResponse["summary"]
  metric: Metric
  onPick: (metric: Metric) => void
}): ReactNode {
  const figures: [Metric, string][] = [
    ["requests", count(summary.requests)],
    ["error_rate", percent(summary.error_rate)],
    ["in_tokens", shortCount(summary.in_tokens)],
    ["out_tokens", shortCount(summary.out_tokens)],
    ["p50_latency", milliseconds(summary.p50_latency_ms)],
    ["p95_latency", milliseconds(summary.p95_latency_ms)],
  ]
  return (
    <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6" role="group" aria-label="Summary">
      {figures.map(([name, value]) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === metric}
          onClick={() => onPick(name)}
          className={`panel hover:border-strong px-3 py-2.5 text-left ${name === metric ? "!border-accent" : ""}`}
        >
          <span className="label block">{metricNames[name]}</span>
          <span className="number text-lg font-semibold">{value}</span>
        </button>
      ))}
    </div>
  )
}

const metricOptions = Object.entries(metricNames).map(([value, label]) => ({ value, label }))
const dimensionOptions = dimensions.map((value) => ({ value, label: dimensionNames[value] }))

function Course({
  view,
  onZoom,
  onChange,
}: {
  view: View
  onZoom: (startMs: number, endMs: number) => void
  onChange: (view: Partial<View>) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const query = { ...useQueryOf(view), view: "timeseries" as const }
  const series = useQuery({
    queryKey: ["analytics", org_id, query],
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
    // With this view, the answer is a grouped timeseries.
    queryFn: async () =>
      (await api.getAnalyticsOverview({ params: { org_id }, query })) as GroupedTimeseriesResponse,
  })
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
        {(data) => <SeriesChart data={data} onZoom={onZoom} />}
      </Loaded>
    </Panel>
  )
}

function SeriesChart({
  data,
  onZoom,
}: {
  data: GroupedTimeseriesResponse
  onZoom: (startMs: number, endMs: number) => void
}): ReactNode {
  const [at, setAt] = useState<number | null>(null)
  const nameOf = useKeyNames(data.dim)
  const timesMs = useMemo(() => data.buckets.map(({ t0 }) => t0), [data])
  const lines = useMemo(
    () =>
      data.series.map(({ key, values }, index) => ({
        name: nameOf(key),
        color: key === null ? (seriesColors.at(-1) ?? "") : (seriesColors[index % seriesColors.length] ?? ""),
        values,
      })),
    [data, nameOf],
  )
  const format = useMemo(() => formatMetric(data.metric), [data.metric])
  if (lines.length === 0)
    return (
      <Empty icon="chart" title="Nothing happened in this range">
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
        onZoom={onZoom}
        onPoint={setAt}
      />
      <ul className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-xs" aria-label="Series">
        {lines.map(({ name, color, values }) => (
          <li key={name} className="flex min-w-0 items-center gap-1.5">
            <span className="size-2.5 shrink-0 rounded-sm" style={{ background: color }} />
            <span className="truncate">{name}</span>
            {at === null ? null : <strong className="number font-medium">{format(values[at] ?? 0)}</strong>}
          </li>
        ))}
        <li className="text-soft number ml-auto">
          {at === null ? "Drag across the chart to zoom." : moment(timesMs[at] ?? 0)}
        </li>
      </ul>
    </>
  )
}

function Counts({
  title,
  rows,
}: {
  title: string
  rows: readonly { key: string; count: number }[]
}): ReactNode {
  const all = rows.reduce((sum, row) => sum + row.count, 0)
  return (
    <Panel title={title}>
      {rows.length === 0 ? (
        <p className="text-soft text-sm">None.</p>
      ) : (
        <dl className="number grid grid-cols-[1fr_auto_auto] gap-x-4 gap-y-1 text-sm">
          {rows.map(({ key, count: many }) => (
            <div key={key} className="contents">
              <dt className="truncate">{keyName(key)}</dt>
              <dd className="text-right">{count(many)}</dd>
              <dd className="text-soft text-right">{percent(many / all)}</dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  )
}
