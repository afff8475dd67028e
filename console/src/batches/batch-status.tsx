/** How far a batch is: its state in a word, its bar, and a button that stops it. */
import type { ReactNode } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { count } from "../parts/format.ts"
import { Badge, Notice, type Tone } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { useOrganization } from "../session.ts"
import { organizationHeader } from "./batch-files.ts"
import { batchesKey, isEnded } from "./batch-query.ts"
import { t, tn } from "../i18n/translate.ts"

const looks: Readonly<Record<BatchObject["status"], readonly [word: string, tone: Tone]>> = {
  validating: [t("Checking"), "info"],
  in_progress: [t("Running"), "info"],
  finalizing: [t("Writing results"), "info"],
  completed: [t("Done"), "good"],
  cancelling: [t("Cancelling"), "warn"],
  cancelled: [t("Cancelled"), "plain"],
  expired: [t("Expired"), "warn"],
  failed: [t("Failed"), "bad"],
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
      <span className="text-soft text-xs">
        {isEnded(batch) ? t("Nothing was asked") : t("Not yet counted")}
      </span>
    )
  return (
    <div className="number flex min-w-28 flex-col gap-1 text-xs">
      <ProgressBar
        label={t("Lines done")}
        value={throughOf(batch)}
        failed={failed}
        max={Math.max(1, total)}
      />
      <span className="text-soft">
        {t("{throughOf} of {total}", { throughOf: count(throughOf(batch)), total: count(total) })}
        {failed > 0 ? (
          <span className="text-bad"> · {t("{failed} failed", { failed: count(failed) })}</span>
        ) : null}
      </span>
    </div>
  )
}

export function BatchProgress({
  batch,
  of = "line",
}: {
  batch: BatchObject
  of?: "line" | "row"
}): ReactNode {
  const { id: orgId } = useOrganization()
  const cancel = useWrite(
    async () => await api.cancelBatch({ params: { batch_id: batch.id }, headers: organizationHeader(orgId) }),
    [batchesKey(orgId)],
  )
  const { total, failed } = batch.request_counts
  const mayCancel = batch.status === "validating" || batch.status === "in_progress"
  return (
    <div className="flex flex-col gap-2">
      <div className="number text-soft flex flex-wrap items-center justify-between gap-x-4 gap-y-1 text-xs">
        <span role="status">{progressWords(batch, of)}</span>
        {mayCancel ? (
          <Button small icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
            {t("Cancel")}
          </Button>
        ) : null}
      </div>
      <ProgressBar label={t("Progress")} value={throughOf(batch)} failed={failed} max={Math.max(1, total)} />
      {isEnded(batch) ? null : (
        <p className="text-soft text-xs">
          {t("It runs on the server, beside live requests: leave this page, or sign out, and come back.")}
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

/** "Running: 12 of 40 rows, 2 failed". */
function progressWords(batch: BatchObject, of: "line" | "row"): string {
  const { total, failed } = batch.request_counts
  const [state] = looks[batch.status]
  if (total === 0) return state
  const values = { state, done: count(throughOf(batch)), failed: count(failed) }
  if (of === "row")
    return failed > 0
      ? tn(
          total,
          "{state}: {done} of {count} row, {failed} failed",
          "{state}: {done} of {count} rows, {failed} failed",
          values,
        )
      : tn(total, "{state}: {done} of {count} row", "{state}: {done} of {count} rows", values)
  return failed > 0
    ? tn(
        total,
        "{state}: {done} of {count} line, {failed} failed",
        "{state}: {done} of {count} lines, {failed} failed",
        values,
      )
    : tn(total, "{state}: {done} of {count} line", "{state}: {done} of {count} lines", values)
}

const errorsShownMax = 20

/** Why the batch as a whole failed. */
export function BatchErrorList({ batch: { errors } }: { batch: BatchObject }): ReactNode {
  if (!errors || errors.data.length === 0) return null
  return (
    <ul aria-label={t("Why the batch failed")}>
      {errors.data.slice(0, errorsShownMax).map(({ line, message, code, param }, index) => (
        <li key={index}>
          {line === null ? "" : `${t("Line {line}", { line: count(line) })}: `}
          {message} <span className="font-mono text-xs">({param ? `${code}, ${param}` : code})</span>
        </li>
      ))}
      {errors.data.length > errorsShownMax ? (
        <li>{t("and {data} more", { data: count(errors.data.length - errorsShownMax) })}</li>
      ) : null}
    </ul>
  )
}
