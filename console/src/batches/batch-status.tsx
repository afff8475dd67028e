/** How far a batch is: its state in a word, its bar, and a button that stops it. */
import type { ReactNode } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { count, plural } from "../parts/format.ts"
import { Badge, Notice, type Tone } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { useOrganization } from "../session.ts"
import { organizationHeader } from "./batch-files.ts"
import { batchesKey, isEnded } from "./batch-query.ts"

const looks: Readonly<Record<BatchObject["status"], readonly [word: string, tone: Tone]>> = {
  validating: ["Checking", "info"],
  in_progress: ["Running", "info"],
  finalizing: ["Writing results", "info"],
  completed: ["Done", "good"],
  cancelling: ["Cancelling", "warn"],
  cancelled: ["Cancelled", "plain"],
  expired: ["Expired", "warn"],
  failed: ["Failed", "bad"],
}

export function StatusBadge({ batch }: { batch: BatchObject }): ReactNode {
  const [word, tone] = looks[batch.status]
  return <Badge tone={tone}>{word}</Badge>
}

const throughOf = ({ request_counts: { completed, failed } }: BatchObject): number => completed + failed

/** For a list. */
export function SmallProgress({ batch }: { batch: BatchObject }): ReactNode {
  const { total, failed } = batch.request_counts
  if (total === 0)
    return (
      <span className="text-soft text-xs">{isEnded(batch) ? "Nothing was asked" : "Not yet counted"}</span>
    )
  return (
    <div className="number flex min-w-28 flex-col gap-1 text-xs">
      <ProgressBar label="Lines done" value={throughOf(batch)} failed={failed} max={Math.max(1, total)} />
      <span className="text-soft">
        {count(throughOf(batch))} of {count(total)}
        {failed > 0 ? <span className="text-bad"> · {count(failed)} failed</span> : null}
      </span>
    </div>
  )
}

export function BatchProgress({ batch, of = "line" }: { batch: BatchObject; of?: string }): ReactNode {
  const { id: orgId } = useOrganization()
  const cancel = useWrite(
    async () => await api.cancelBatch({ params: { batch_id: batch.id }, headers: organizationHeader(orgId) }),
    [batchesKey(orgId)],
  )
  const { total, failed } = batch.request_counts
  const [word] = looks[batch.status]
  const mayCancel = batch.status === "validating" || batch.status === "in_progress"
  return (
    <div className="flex flex-col gap-2">
      <div className="number text-soft flex flex-wrap items-center justify-between gap-x-4 gap-y-1 text-xs">
        <span role="status">
          {word}
          {total > 0 ? `: ${count(throughOf(batch))} of ${plural(total, of)}` : ""}
          {failed > 0 ? `, ${count(failed)} failed` : ""}
        </span>
        {mayCancel ? (
          <Button small icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
            Cancel
          </Button>
        ) : null}
      </div>
      <ProgressBar label="Progress" value={throughOf(batch)} failed={failed} max={Math.max(1, total)} />
      {isEnded(batch) ? null : (
        <p className="text-soft text-xs">
          It runs on the server, beside live requests: leave this page, or sign out, and come back.
        </p>
      )}
      <ErrorNotice error={cancel.error} />
      {batch.errors && batch.errors.data.length > 0 ? (
        <Notice tone="bad">
          <BatchErrorList batch={batch} />
        </Notice>
      ) : null}
    </div>
  )
}

const errorsShownMax = 20

/** Why the batch as a whole failed. */
export function BatchErrorList({ batch: { errors } }: { batch: BatchObject }): ReactNode {
  if (!errors || errors.data.length === 0) return null
  return (
    <ul aria-label="Why the batch failed">
      {errors.data.slice(0, errorsShownMax).map(({ line, message, code, param }, index) => (
        <li key={index}>
          {line === null ? "" : `Line ${count(line)}: `}
          {message} <span className="font-mono text-xs">({param ? `${code}, ${param}` : code})</span>
        </li>
      ))}
      {errors.data.length > errorsShownMax ? (
        <li>and {count(errors.data.length - errorsShownMax)} more</li>
      ) : null}
    </ul>
  )
}
