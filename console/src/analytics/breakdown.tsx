/** The groups of a breakdown as a table of bars; a group becomes a filter at a click. */
import type { ReactNode } from "react"
import type { OverviewResponse } from "../../../src/contract/analytics.ts"
import { Button } from "../parts/button.tsx"
import { count } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { useKeyNames } from "./key-names.ts"
import { type View, dimensionNames, formatMetric, metricNames } from "./view.ts"

export function Breakdown({
  data,
  view,
  onFilter,
}: {
  data: OverviewResponse["breakdown"]
  view: View
  onFilter: (filter: string) => void
}): ReactNode {
  const format = formatMetric(data.metric)
  const nameOf = useKeyNames(data.dim)
  const top = Math.max(...data.rows.map(({ value }) => value), Number.MIN_VALUE)
  return (
    <Panel title={`By ${dimensionNames[data.dim].toLowerCase()}`}>
      {data.rows.length === 0 ? <p className="text-soft text-sm">Nothing in this range.</p> : null}
      <ul className="flex flex-col gap-1">
        {data.rows.map(({ key, value, count: many }) => (
          <li key={key} className="group relative flex items-center gap-2 rounded-md px-2 py-1.5 text-sm">
            <span
              aria-hidden="true"
              className="bg-accent-wash absolute inset-y-0 left-0 rounded-md"
              style={{ width: `${(value / top) * 100}%` }}
            />
            <button
              type="button"
              className="relative min-w-0 flex-1 truncate text-left hover:underline"
              title={`Show only ${nameOf(key)}`}
              onClick={() => onFilter(`${view.by}:${key}`)}
            >
              {nameOf(key)}
            </button>
            {data.metric === "requests" ? null : (
              <span className="text-soft number relative text-xs">{count(many)} requests</span>
            )}
            <strong className="number relative font-medium" title={metricNames[data.metric]}>
              {format(value)}
            </strong>
            <Button
              kind="bare"
              small
              icon="cross"
              className="relative"
              aria-label={`Leave out ${nameOf(key)}`}
              onClick={() => onFilter(`!${view.by}:${key}`)}
            />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
