/** The errors of rows that failed, the most frequent ones. */
import type { ReactNode } from "react"
import { plural } from "../parts/format.ts"
import { AttemptsLink } from "../requests/log-link.tsx"
import type { RowError } from "./row-errors.ts"

const shownMax = 3

export function RowErrorList({ errors }: { errors: readonly RowError[] }): ReactNode {
  if (errors.length === 0) return null
  return (
    <ul aria-label="Why rows failed">
      {errors.slice(0, shownMax).map(({ code, message, rows, requestId }) => (
        <li key={message}>
          {plural(rows, "row")}: {message} <span className="font-mono text-xs">({code})</span>{" "}
          {requestId ? <AttemptsLink requestId={requestId} /> : null}
        </li>
      ))}
      {errors.length > shownMax ? <li>and {plural(errors.length - shownMax, "other error")}</li> : null}
    </ul>
  )
}
