/** The groups of a breakdown as a table of bars; a group's name leads to its requests alone. */
import type { ReactNode } from "react"
import type { OverviewResponse } from "../../../src/contract/analytics.ts"
import type { Colors } from "../charts/colors.ts"
import { withinSentence } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { Panel } from "../parts/page.tsx"
import { LogLink, logViewOf } from "../requests/log-link.tsx"
import { useKeyNames } from "./key-names.ts"
import { ViewLink, filtered } from "./view-link.tsx"
import { type View, filterFor, formatMetric, groupName, metricNames } from "./view.ts"
import { t, tn } from "../i18n/translate.ts"

export function Breakdown({
  data,
  view,
  colors,
}: {
  data: OverviewResponse["breakdown"]
  view: View
  colors: Colors
}): ReactNode {
  const format = formatMetric(data.metric)
  const nameOf = useKeyNames(data.dim)
  // Most groups have no errors, above all the one without an error.
  const rows = data.metric === "errors" ? data.rows.filter(({ value }) => value > 0) : data.rows
  const top = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE)
  return (
    <Panel title={t("By {group}", { group: withinSentence(groupName(data.dim)) })}>
      {rows.length === 0 ? <p className="text-soft text-sm">{t("Nothing in this range.")}</p> : null}
      <ul className="flex flex-col gap-1">
        {rows.map(({ key, value, count: many }) => (
          <li key={key} className="group relative flex items-center gap-2 rounded-md px-2 py-1.5 text-sm">
            <span
              aria-hidden="true"
              className="bg-accent-wash absolute inset-y-0 start-0 rounded-md"
              style={{ width: `${(value / top) * 100}%` }}
            />
            <span
              aria-hidden="true"
              className="relative size-2.5 shrink-0 rounded-sm"
              style={{ background: colors(key) }}
            />
            <ViewLink
              view={view}
              change={filtered(view, filterFor(data.dim, key))}
              className="relative min-w-0 flex-1 truncate hover:underline"
              title={t("Show only {nameOf}", { nameOf: nameOf(key) })}
            >
              {nameOf(key)}
            </ViewLink>
            {data.metric === "requests" || value === many ? null : (
              <span className="text-soft number relative text-xs">
                {tn(many, "{count} request", "{count} requests")}
              </span>
            )}
            <LogLink
              view={logViewOf(view, [
                filterFor(data.dim, key),
                ...(data.metric === "errors" ? ["result:error"] : []),
              ])}
              aria-label={t("Requests of {nameOf}: {metricNames} {format}", {
                nameOf: nameOf(key),
                metricNames: metricNames[data.metric],
                format: format(value),
              })}
              className="number text-accent relative font-medium underline-offset-2 hover:underline"
            >
              {format(value)}
            </LogLink>
            <ViewLink
              view={view}
              change={filtered(view, `!${filterFor(data.dim, key)}`)}
              aria-label={t("Leave out {nameOf}", { nameOf: nameOf(key) })}
              title={t("Leave out {nameOf}", { nameOf: nameOf(key) })}
              className="text-soft hover:bg-sunken hover:text-ink relative grid size-7 place-items-center rounded-md"
            >
              <Icon name="cross" />
            </ViewLink>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
