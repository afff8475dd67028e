/** The errors of rows that failed, the most frequent ones. */
import type { ReactNode } from "react"
import { AttemptsLink } from "../requests/log-link.tsx"
import type { RowError } from "./row-errors.ts"
import { t, tn } from "../i18n/translate.ts"

const shownMax = 3

export function RowErrorList({ errors }: { errors: readonly RowError[] }): ReactNode {
  if (errors.length === 0) return null
  return (
    <ul aria-label={t("Why rows failed")}>
      {errors.slice(0, shownMax).map(({ code, message, rows, requestId }) => (
        <li key={message}>
          {tn(rows, "{count} row", "{count} rows")}: {message}{" "}
          <span className="font-mono text-xs">({code})</span>{" "}
          {requestId ? <AttemptsLink requestId={requestId} /> : null}
        </li>
      ))}
      {errors.length > shownMax ? (
        <li>{tn(errors.length - shownMax, "and {count} other error", "and {count} other errors")}</li>
      ) : null}
    </ul>
  )
}
