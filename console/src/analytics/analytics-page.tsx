/** Analytics: what happened to requests, over time and by group; every view has an address. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo } from "react"
import { type Metric, type OverviewResponse, dimensions } from "../../../src/contract/analytics.ts"
import { ClientError, api } from "../api.ts"
import type { Colors } from "../charts/colors.ts"
import { Button } from "../parts/button.tsx"
import { Segments } from "../parts/field.tsx"
import { count, milliseconds, moment, percent, shortCount } from "../parts/format.ts"
import { Empty, Loaded, Page, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { Breakdown } from "./breakdown.tsx"
import { FailedRequests } from "./failed-requests.tsx"
import { FindSequence } from "./find-sequence.tsx"
import { useKeyNames } from "./key-names.ts"
import { OverTime } from "./over-time.tsx"
import { overviewQuery, refreshMs } from "./query.ts"
import { useSeriesColors } from "./series-colors.ts"
import { ViewLink, filtered } from "./view-link.tsx"
import {
  type View,
  dimensionNames,
  isAboutErrors,
  keyName,
  metricNames,
  presetNames,
  presets,
  readChip,
  readView,
  writeView,
  type Preset,
} from "./view.ts"

const route = getRouteApi("/o/$orgId/analytics")

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
            This installation keeps no events. Its operator can set{" "}
            <code>UMPIRE_ANALYTICS_EMBEDDED=true</code> or <code>UMPIRE_CLICKHOUSE_URL</code>. Everything else
            works without it.
          </Empty>
        </div>
      </Page>
    )
  return (
    <Page title="Analytics" actions={<RangeControl view={view} onChange={show} />}>
      <Filters view={view} onChange={show} />
      <Loaded query={overview} what="analytics">
        {(data) => <Overview data={data} view={view} onChange={show} />}
      </Loaded>
    </Page>
  )
}

function Overview({
  data,
  view,
  onChange,
}: {
  data: OverviewResponse
  view: View
  onChange: (view: Partial<View>) => void
}): ReactNode {
  const keys = useMemo(() => data.breakdown.rows.map(({ key }) => key), [data])
  const colors = useSeriesColors(data.breakdown.dim, keys)
  const resultColors = useSeriesColors(
    "result",
    useMemo(() => data.status.rows.map(({ key }) => key), [data]),
  )
  return (
    <>
      <Summary summary={data.summary} metric={view.metric} onPick={(metric) => onChange({ metric })} />
      <OverTime
        view={view}
        colors={colors}
        onZoom={(startMs, endMs) => onChange({ range: { startMs, endMs } })}
        onChange={onChange}
      />
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <div className="flex min-w-0 flex-col gap-4">
          <Breakdown data={data.breakdown} view={view} colors={colors} />
          {isAboutErrors(view) ? <FailedRequests view={view} /> : null}
          <FindSequence />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <Counts
            title="Results"
            rows={data.status.rows}
            colors={resultColors}
            view={view}
            changeFor={(result) => ({
              ...filtered(view, `result:${result}`),
              ...(result === "error" ? { metric: "errors", by: "error_code" } : {}),
            })}
          />
          <Counts
            title="Tool calls"
            rows={data.tool_calls.rows}
            view={view}
            changeFor={(tool) => filtered(view, `tool_calls:${tool}`)}
          />
        </div>
      </div>
    </>
  )
}

function useOverview(view: View) {
  const { id: org_id } = useOrganization()
  const query = overviewQuery(view)
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
  const byKey = view.filters.some((filter) => readChip(filter).dimension === "api_key_id")
  const nameOfKey = useKeyNames(byKey ? "api_key_id" : "model")
  if (view.filters.length === 0) return null
  return (
    <ul className="flex flex-wrap gap-2" aria-label="Filters">
      {view.filters.map((filter) => {
        const { dimension, value, excluded } = readChip(filter)
        const name = dimensions.find((one) => one === dimension)
        const shown = name === "api_key_id" ? nameOfKey(value) : keyName(value)
        const words = `${name ? dimensionNames[name] : dimension} ${excluded ? "is not" : "is"} ${shown}`
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

function Counts({
  title,
  rows,
  view,
  colors,
  changeFor,
}: {
  title: string
  rows: readonly { key: string; count: number }[]
  view: View
  colors?: Colors
  /** The view that a row leads to. */
  changeFor: (key: string) => Partial<View>
}): ReactNode {
  const all = rows.reduce((sum, row) => sum + row.count, 0)
  return (
    <Panel title={title}>
      {rows.length === 0 ? (
        <p className="text-soft text-sm">None.</p>
      ) : (
        <dl className="number grid grid-cols-[minmax(0,1fr)_auto_auto] gap-x-4 gap-y-1 text-sm">
          {rows.map(({ key, count: many }) => (
            <div key={key} className="contents">
              <dt className="flex min-w-0 items-center gap-2">
                {colors ? (
                  <span className="size-2.5 shrink-0 rounded-sm" style={{ background: colors(key) }} />
                ) : null}
                <ViewLink
                  view={view}
                  change={changeFor(key)}
                  title={`Show only ${keyName(key)}`}
                  className="truncate hover:underline"
                >
                  {keyName(key)}
                </ViewLink>
              </dt>
              <dd className="text-right">{count(many)}</dd>
              <dd className="text-soft text-right">{percent(many / all)}</dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  )
}
