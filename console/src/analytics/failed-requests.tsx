/** The latest failed requests behind a view of errors, each leading to its record. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { api } from "../api.ts"
import { clockTime, moment } from "../parts/format.ts"
import { Loaded, Panel } from "../parts/page.tsx"
import { LogLink, logViewOf } from "../requests/log-link.tsx"
import { useOrganization } from "../session.ts"
import { overviewQuery, refreshMs } from "./query.ts"
import { SequenceLink } from "./sequence-link.tsx"
import type { View } from "./view.ts"
import { t } from "../i18n/translate.ts"

const shownMax = 10

export function FailedRequests({ view }: { view: View }): ReactNode {
  const { id: org_id } = useOrganization()
  const failed = logViewOf(view, ["result:error"])
  const { range_start, range_end } = overviewQuery(view)
  const query = { range_start, range_end, f: [...failed.more], limit: shownMax }
  const found = useQuery({
    queryKey: ["requests", org_id, query],
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
    queryFn: async () => (await api.listSequences({ params: { org_id }, query })).data,
  })
  return (
    <Panel
      title={t("Failed requests")}
      actions={
        <LogLink view={failed} className="text-accent text-xs hover:underline">
          {t("Show all")}
        </LogLink>
      }
    >
      <Loaded query={found} label={t("Loading failed requests")}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="text-soft text-sm">{t("None in this range.")}</p>
          ) : (
            <ul aria-label={t("Failed requests")} className="divide-line -my-1.5 divide-y text-sm">
              {rows.map(({ seq_id, timestamp, error_code, error_message, model }) => (
                <li key={seq_id} className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 py-1.5">
                  <time
                    dateTime={new Date(timestamp).toISOString()}
                    title={moment(timestamp)}
                    className="number text-soft text-xs"
                  >
                    {clockTime(timestamp)}
                  </time>
                  <SequenceLink id={seq_id}>
                    <span className="text-bad font-mono text-xs">{error_code}</span>
                  </SequenceLink>
                  <span
                    className="text-soft min-w-0 flex-1 basis-60 truncate text-xs"
                    title={error_message ?? ""}
                  >
                    {error_message ?? model}
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  )
}
