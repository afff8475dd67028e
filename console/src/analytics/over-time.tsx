/** One measure over time, a line for each group; a group's name leads to its requests alone. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo, useState } from "react"
import { type GroupedTimeseriesResponse, type Metric, dimensions } from "../../../src/contract/analytics.ts"
import { tagKeyForm, tagLimits } from "../../../src/contract/tags.ts"
import { api } from "../api.ts"
import type { Colors } from "../charts/colors.ts"
import { TimeChart } from "../charts/time-chart.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { moment, withinSentence, zone } from "../parts/format.ts"
import { Empty, Loaded, Panel } from "../parts/page.tsx"
import { logViewOf } from "../requests/log-link.tsx"
import { writeLogView } from "../requests/log-view.ts"
import { useOrganization } from "../session.ts"
import { hasGaps, withGaps } from "./gaps.ts"
import { useKeyNames } from "./key-names.ts"
import { refreshMs, overviewQuery } from "./query.ts"
import { ViewLink, filtered } from "./view-link.tsx"
import {
  type View,
  dimensionNames,
  filterFor,
  formatMetric,
  groupName,
  isCounted,
  metricNames,
} from "./view.ts"
import { t } from "../i18n/translate.ts"

const metricOptions = Object.entries(metricNames).map(([value, label]) => ({ value, label }))
const byTag = "tag"
const dimensionOptions = [
  ...dimensions.map((value) => ({ value: value as string, label: dimensionNames[value] })),
  { value: byTag, label: t("Tag") },
]
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
  const tag = view.by.startsWith("tag:") ? view.by.slice("tag:".length) : null
  const [isNaming, setNaming] = useState(false)
  const series = useSeries(view)
  const gaps = hasGaps(view.metric)
  const requests = useSeries({ ...view, metric: "requests" }, { enabled: gaps, limit: groupsMax })
  return (
    <Panel
      title={t("Over time")}
      actions={
        <div className="grid grid-cols-2 gap-2 max-sm:w-full">
          <div className="sm:w-40">
            <SelectField
              label={t("Measure")}
              value={view.metric}
              options={metricOptions}
              onChange={(event) => onChange({ metric: event.target.value as Metric })}
            />
          </div>
          <div className="sm:w-40">
            <SelectField
              label={t("Split by")}
              value={tag === null && !isNaming ? view.by : byTag}
              options={dimensionOptions}
              onChange={({ target: { value } }) => {
                setNaming(value === byTag)
                if (value !== byTag) onChange({ by: value as View["by"] })
              }}
            />
          </div>
          {tag !== null || isNaming ? (
            <form
              className="col-span-2"
              onSubmit={(event) => {
                event.preventDefault()
                const given = new FormData(event.currentTarget).get("tag")
                const named = typeof given === "string" ? given.trim() : ""
                if (!tagKeyForm.test(named)) return
                setNaming(false)
                onChange({ by: `tag:${named}` })
              }}
            >
              <TextField
                key={tag}
                label={t("Tag")}
                name="tag"
                defaultValue={tag ?? ""}
                placeholder="team"
                maxLength={tagLimits.keyCharactersMax}
                hint={t("The name of a tag; Enter splits by its values.")}
              />
            </form>
          ) : null}
        </div>
      }
    >
      <Loaded query={series} label={t("Loading the chart")}>
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
    const all = data.series.map(({ key }, index) => ({
      key,
      name: nameOf(key),
      color: colors(key),
      values: values[index] ?? [],
    }))
    const failing = all.filter((line) => line.values.some((value) => value !== null && value > 0))
    return data.metric === "errors" && failing.length > 0 ? failing : all
  }, [data, requests, nameOf, colors])
  const format = useMemo(() => formatMetric(data.metric), [data.metric])
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const pick = (bucket: GroupedTimeseriesResponse["buckets"][number] | undefined): void => {
    if (!bucket) return
    const errors = data.metric === "errors" || data.metric === "error_rate" ? ["result:error"] : []
    const range = { startMs: bucket.t0, endMs: bucket.t1 }
    const search = writeLogView({ ...logViewOf(view, errors), range })
    void navigate({ to: "/o/$orgId/requests", params: { orgId }, search })
  }
  if (lines.length === 0)
    return (
      <Empty icon="chart" title={t("No requests in this range")}>
        {t("Ask something in the playground, or choose a longer range.")}
      </Empty>
    )
  return (
    <>
      <TimeChart
        title={t("{metric} over time by {group}", {
          metric: metricNames[data.metric],
          group: withinSentence(groupName(data.dim)),
        })}
        timesMs={timesMs}
        lines={lines}
        format={format}
        whole={isCounted(data.metric)}
        onZoom={onZoom}
        onPoint={setAt}
        onPick={(index) => pick(data.buckets[index])}
      />
      <ul className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-xs" aria-label={t("Series")}>
        {lines.map(({ key, name, color, values }) => (
          <li key={name} className="flex min-w-0 items-center gap-1.5">
            <span className="size-2.5 shrink-0 rounded-sm" style={{ background: color }} />
            {key === null ? (
              <span className="truncate">{name}</span>
            ) : (
              <ViewLink
                view={view}
                change={filtered(view, filterFor(data.dim, key))}
                title={t("Show only {name}", { name })}
                className="truncate hover:underline"
              >
                {name}
              </ViewLink>
            )}
            {at === null ? null : (
              <strong className="number font-medium">
                {values[at] === null ? t("no requests") : format(values[at] ?? 0)}
              </strong>
            )}
          </li>
        ))}
        <li className="text-soft number ms-auto">
          {at === null
            ? t("Times in {zone}. Click for the requests of a moment; drag to zoom.", { zone: zone() })
            : moment(timesMs[at] ?? 0)}
        </li>
      </ul>
    </>
  )
}
