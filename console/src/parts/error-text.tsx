/** What went wrong, in words, with the way on: Billing where payment is needed, a countdown where requests came too fast. */
import { Link, useParams } from "@tanstack/react-router"
import { type ReactNode, useEffect, useState } from "react"
import { ClientError, sentenceOf } from "../api.ts"
import { t, tn } from "../i18n/translate.ts"

export function ErrorText({ error }: { error: unknown }): ReactNode {
  const { orgId } = useParams({ strict: false })
  if (!(error instanceof ClientError)) return sentenceOf(error)
  if (error.status === 402 && orgId)
    return (
      <>
        {sentenceOf(error)}.{" "}
        <Link to="/o/$orgId/billing" params={{ orgId }} className="font-medium underline">
          {t("Open Billing")}
        </Link>
      </>
    )
  if (error.status === 429 && error.retryAfterMs !== null)
    return <TooMany key={error.retryAfterMs} waitMs={error.retryAfterMs} />
  return sentenceOf(error)
}

const secondMs = 1000

function TooMany({ waitMs }: { waitMs: number }): ReactNode {
  const [seconds, setSeconds] = useState(Math.max(1, Math.ceil(waitMs / secondMs)))
  const waiting = seconds > 0
  useEffect(() => {
    if (!waiting) return
    const timer = setInterval(() => setSeconds((left) => left - 1), secondMs)
    return () => clearInterval(timer)
  }, [waiting])
  if (!waiting) return t("Too many requests. You can try again now.")
  // Read out once, not every second.
  return (
    <span aria-live="off">
      {tn(
        seconds,
        "Too many requests. Try again in {count} second.",
        "Too many requests. Try again in {count} seconds.",
      )}
    </span>
  )
}
