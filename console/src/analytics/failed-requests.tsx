/** The failed requests behind a view of errors, each by its request id, so that an error count leads to its errors. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { OverviewResponse } from "../../../src/contract/analytics.ts"
import { api } from "../api.ts"
import { count, plural } from "../parts/format.ts"
import { Loaded, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { overviewQuery, refreshMs } from "./query.ts"
import { ViewLink, filtered } from "./view-link.tsx"
import { type View, keyName } from "./view.ts"

const shownMax = 20

export function FailedRequests({ view }: { view: View }): ReactNode {
  const { id: org_id } = useOrganization()
  const failed: View = { ...view, ...filtered(view, "result:error"), metric: "errors", by: "request_id" }
  const query = overviewQuery(failed)
  const found = useQuery({
    queryKey: ["analytics", org_id, query],
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
    // Without a view, the answer is an overview.
    queryFn: async () => (await api.getAnalyticsOverview({ params: { org_id }, query })) as OverviewResponse,
  })
  return (
    <Panel title="Failed requests">
      <Loaded query={found} what="failed requests">
        {({ breakdown: { rows }, summary }) =>
          rows.length === 0 ? (
            <p className="text-soft text-sm">None in this range.</p>
          ) : (
            <>
              <ul aria-label="Failed requests" className="columns-1 gap-6 text-xs sm:columns-2">
                {rows.slice(0, shownMax).map(({ key, value }) => (
                  <li key={key} className="flex items-baseline gap-2 py-0.5">
                    <ViewLink
                      view={failed}
                      change={{ filters: [`request_id:${key}`], by: "error_code" }}
                      title={`Show the error of ${keyName(key)}`}
                      className="text-accent min-w-0 truncate font-mono hover:underline"
                    >
                      {keyName(key)}
                    </ViewLink>
                    {value > 1 ? <span className="text-soft number">{count(value)} times</span> : null}
                  </li>
                ))}
              </ul>
              <p className="text-soft mt-3 text-xs">
                By request id, the header <code className="font-mono">x-request-id</code> of the response.
                {rows.length > shownMax
                  ? ` The first ${shownMax} of ${plural(summary.errors, "error")}: choose a shorter range or an error to see others.`
                  : ""}
              </p>
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}
