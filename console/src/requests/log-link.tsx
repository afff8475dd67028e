/** A link to the requests behind a figure. */
import { Link } from "@tanstack/react-router"
import type { ComponentProps, ReactNode } from "react"
import type { View } from "../analytics/view.ts"
import { useOrganization } from "../session.ts"
import { type LogFilter, type LogView, emptyView, writeLogView } from "./log-view.ts"
import { t } from "../i18n/translate.ts"

export function LogLink({
  view,
  ...rest
}: {
  view: Partial<LogView>
  children?: ReactNode
} & Pick<ComponentProps<"a">, "className" | "title" | "aria-label">): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Link
      to="/o/$orgId/requests"
      params={{ orgId }}
      search={writeLogView({ ...emptyView, ...view })}
      title={t("Show the requests")}
      {...rest}
    />
  )
}

/** The records of a line of a batch that failed: each attempt has one. */
export function AttemptsLink({ requestId }: { requestId: string }): ReactNode {
  return (
    <LogLink
      view={{ range: "all", filters: { request_id: requestId } }}
      title={t("What is recorded of this request")}
      className="text-accent underline underline-offset-2"
    >
      {t("request")}
    </LogLink>
  )
}

/** The requests that a view of Analytics counts, or those of them that further filters leave. */
export function logViewOf(
  { range, filters }: View,
  more: readonly string[] = [],
  by: Partial<Record<LogFilter, string>> = {},
): LogView {
  return { range, filters: by, tags: [], more: [...new Set([...filters, ...more])] }
}
