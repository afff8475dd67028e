/** Analytics: what happened to requests, over time and by group; every view has an address. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo } from "react"
import {
  type Dimension,
  type Metric,
  type OverviewResponse,
  dimensions,
} from "../../../src/contract/analytics.ts"
import { ClientError, api } from "../api.ts"
import type { Colors } from "../charts/colors.ts"
import { Button } from "../parts/button.tsx"
import { Segments } from "../parts/field.tsx"
import { count, milliseconds, moment, percent, shortCount } from "../parts/format.ts"
import { Empty, Loaded, Page, Panel } from "../parts/page.tsx"
import { LogLink, logViewOf } from "../requests/log-link.tsx"
import type { LogView } from "../requests/log-view.ts"
import { useOrganization } from "../session.ts"
import { Breakdown } from "./breakdown.tsx"
import { FailedRequests } from "./failed-requests.tsx"
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
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

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
      <Page title={t("Analytics")}>
        <div className="panel">
          <Empty icon="chart" title={t("Analytics is not configured")}>
            <T
              text="This installation keeps no events. Its operator can set <code>UMPIRE_ANALYTICS_EMBEDDED=true</code> or <code2>UMPIRE_CLICKHOUSE_URL</code2>. Everything else works without it."
              code={(children) => <code>{children}</code>}
              code2={(children) => <code>{children}</code>}
            />
          </Empty>
        </div>
      </Page>
    )
  return (
    <Page title={t("Analytics")} actions={<RangeControl view={view} onChange={show} />}>
      <Filters view={view} onChange={show} />
      <Loaded query={overview} label={t("Loading analytics")}>
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
      <Summary summary={data.summary} view={view} onPick={(metric) => onChange({ metric })} />
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
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <Counts
            title={t("Results")}
            dimension="result"
            rows={data.status.rows}
            colors={resultColors}
            view={view}
            changeFor={(result) => ({
              ...filtered(view, `result:${result}`),
              ...(result === "error" ? { metric: "errors", by: "error_code" } : {}),
            })}
          />
          <Counts
            title={t("Tool calls")}
            dimension="tool_calls"
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
        label={t("Range")}
        value={view.range}
        options={options}
        onChange={(range) => onChange({ range })}
      />
    )
  return (
    <span className="flex flex-wrap items-center gap-2 text-xs">
      {t("{startMs} to {endMs}", { startMs: moment(view.range.startMs), endMs: moment(view.range.endMs) })}
      <Button small icon="turn" onClick={() => onChange({ range: "24h" })}>
        {t("Zoom out")}
      </Button>
    </span>
  )
}

function Filters({ view, onChange }: { view: View; onChange: (view: Partial<View>) => void }): ReactNode {
  const byKey = view.filters.some((filter) => readChip(filter).dimension === "api_key_id")
  const nameOfKey = useKeyNames(byKey ? "api_key_id" : "model")
  const nameOfEndpoint = useKeyNames("call_source")
  if (view.filters.length === 0) return null
  return (
    <ul className="flex flex-wrap gap-2" aria-label={t("Filters")}>
      {view.filters.map((filter) => {
        const { dimension, value, excluded } = readChip(filter)
        const name = dimensions.find((one) => one === dimension)
        const shown =
          name === "api_key_id"
            ? nameOfKey(value)
            : name === "call_source"
              ? nameOfEndpoint(value)
              : keyName(value)
        const filtered = { name: name ? dimensionNames[name] : dimension, value: shown }
        const words = excluded ? t("{name} is not {value}", filtered) : t("{name} is {value}", filtered)
        return (
          <li
            key={filter}
            className="bg-accent-wash text-accent flex items-center gap-1 rounded-full py-0.5 pe-1 ps-3 text-xs"
          >
            {words}
            <button
              type="button"
              aria-label={t("Remove the filter {words}", { words })}
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
  view,
  onPick,
}: {
  summary: OverviewResponse["summary"]
  view: View
  onPick: (metric: Metric) => void
}): ReactNode {
  const { errors, p50_latency_ms: median, p95_latency_ms: slow } = summary
  /** Without requests there is neither a rate nor a latency. */
  const known = (value: string): string => (summary.requests === 0 ? "–" : value)
  const figures: readonly (readonly [Metric, string, LogView, string])[] = [
    ["requests", count(summary.requests), logViewOf(view), t("Show the requests")],
    [
      "error_rate",
      known(percent(summary.error_rate)),
      logViewOf(view, ["result:error"]),
      tn(errors, "{count} error", "{count} errors"),
    ],
    ["in_tokens", shortCount(summary.in_tokens), logViewOf(view), t("Show the requests")],
    ["out_tokens", shortCount(summary.out_tokens), logViewOf(view), t("Show the requests")],
    ["p50_latency", known(milliseconds(median)), slowerThan(view, median), t("Slower half")],
    ["p95_latency", known(milliseconds(slow)), slowerThan(view, slow), t("Slowest 5%")],
  ]
  return (
    <div
      className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6"
      role="group"
      aria-label={t("Summary")}
    >
      {figures.map(([name, value, requests, words]) => (
        <div
          key={name}
          className={`panel hover:border-strong flex flex-col ${name === view.metric ? "!border-accent" : ""}`}
        >
          <button
            type="button"
            aria-pressed={name === view.metric}
            title={t("Draw it over time")}
            onClick={() => onPick(name)}
            className="rounded-t-xl px-3 pt-2.5 text-start"
          >
            <span className="label block">{metricNames[name]}</span>
            <span className="number text-lg font-semibold">{value}</span>
          </button>
          <LogLink
            view={requests}
            aria-label={name === "error_rate" ? words : `${words}: ${metricNames[name]}`}
            className={`mx-3 mb-2 self-start text-xs hover:underline ${name === "error_rate" && errors > 0 ? "text-bad font-medium" : "text-accent"}`}
          >
            {words}
          </LogLink>
        </div>
      ))}
    </div>
  )
}

const slowerThan = (view: View, ms: number): LogView =>
  logViewOf(view, [], { latency_ms_min: String(Math.round(ms)) })

function Counts({
  title,
  dimension,
  rows,
  view,
  colors,
  changeFor,
}: {
  title: string
  dimension: Dimension
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
        <p className="text-soft text-sm">{t("None.")}</p>
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
                  title={t("Show only {keyName}", { keyName: keyName(key) })}
                  className="truncate hover:underline"
                >
                  {keyName(key)}
                </ViewLink>
              </dt>
              <dd className="text-end">
                <LogLink
                  view={logViewOf(view, [`${dimension}:${key}`])}
                  aria-label={t("Requests: {keyName}, {many}", { keyName: keyName(key), many: count(many) })}
                  className={`underline-offset-2 hover:underline ${key === "error" ? "text-bad font-medium" : "text-accent"}`}
                >
                  {count(many)}
                </LogLink>
              </dd>
              <dd className="text-soft text-end">{percent(many / all)}</dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  )
}
