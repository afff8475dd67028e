/** Work on a set that takes long: followed until it ends, and cancelled on demand. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect, useRef } from "react"
import type { SetJob } from "../../../src/contract/question-sets/jobs.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { percent } from "../parts/format.ts"
import { Notice } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { type SetAddress, jobsKey, setsKey } from "./set-query.ts"
import { t } from "../i18n/translate.ts"

const pollMs = 1000

export const isUnderWay = ({ state }: Pick<SetJob, "state">): boolean =>
  state === "queued" || state === "running"

/** The newest job of a kind, as of now; null: there was none. Also of jobs that others started. */
export function useNewestJob(at: SetAddress, kind: SetJob["kind"]) {
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: [...jobsKey(at), kind],
    queryFn: async () =>
      (await api.listQuestionSetJobs({ params: at })).data.find((job) => job.kind === kind) ?? null,
    refetchInterval: ({ state }) => (state.data && isUnderWay(state.data) ? pollMs : false),
  })
  const isRunning = query.data ? isUnderWay(query.data) : false
  const wasRunning = useRef(false)
  useEffect(() => {
    // A job that has ended may have made a version.
    if (wasRunning.current && !isRunning) void queries.invalidateQueries({ queryKey: setsKey(at.org_id) })
    wasRunning.current = isRunning
  }, [queries, isRunning, at.org_id])
  return query
}

export function JobProgress({
  at,
  job,
  doing,
}: {
  at: SetAddress
  job: SetJob
  /** As in “Reading the examples”. */
  doing: string
}): ReactNode {
  const cancel = useWrite(
    async () => await api.cancelQuestionSetJob({ params: { ...at, job_id: job.id } }),
    [jobsKey(at)],
  )
  if (job.state === "failed") return <Notice tone="bad">{job.error ?? t("It failed.")}</Notice>
  if (job.state === "cancelled") return <Notice tone="plain">{t("Cancelled.")}</Notice>
  if (!isUnderWay(job)) return null
  return (
    <div className="flex flex-col gap-2">
      <div className="number flex items-center justify-between gap-3 text-xs">
        <span role="status" className="text-soft">
          {job.state === "queued" ? t("Waiting to start") : `${doing}: ${percent(job.progress)}`}
        </span>
        <Button small icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
          {t("Cancel")}
        </Button>
      </div>
      <ProgressBar label={doing} value={job.progress} />
      <p className="text-soft text-xs">{t("It continues while you look at other pages.")}</p>
      <ErrorNotice error={cancel.error} />
    </div>
  )
}
