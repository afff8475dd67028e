/** Calibrates a chat model on questions with known answers; says first what that can cost. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect } from "react"
import type { CheckState, ConnectedModelView } from "../../../src/contract/platform/connected-models.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { count, exactDollars, percent } from "../parts/format.ts"
import { Loaded, Notice } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { useOrganization } from "../session.ts"
import { connectedKey } from "./connect-dialog.tsx"
import { decidesBy } from "./method-words.ts"
import { t, tn } from "../i18n/translate.ts"

const everyMs = 1_000

export function CheckDialog({
  model,
  onClose,
}: {
  model: ConnectedModelView
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const params = { org_id, connected_model_id: model.id }
  const queries = useQueryClient()
  const queryKey = ["model-check", model.id]
  const state = useQuery({
    queryKey,
    staleTime: 0,
    queryFn: async () => await api.checkConnectedModel({ params, body: {} }),
    refetchInterval: ({ state: { data } }) => (data?.state === "running" ? everyMs : false),
  })
  const begin = useWrite(
    async (cost_max_usd: string) => await api.checkConnectedModel({ params, body: { cost_max_usd } }),
    [],
    (begun) => queries.setQueryData(queryKey, begun),
  )
  const isDone = state.data?.state === "done"
  useEffect(() => {
    if (!isDone) return
    for (const key of [["models", org_id], connectedKey(org_id)])
      void queries.invalidateQueries({ queryKey: [...key] })
  }, [isDone, org_id, queries])
  return (
    <Dialog title={t("Calibrate {model}", { model: model.sku })} onClose={onClose}>
      <div className="flex flex-col gap-4 text-sm">
        <Loaded query={state} label={t("Loading what it costs")}>
          {(data) => (
            <Progress state={data} onBegin={() => begin.mutate(data.cost_usd)} busy={begin.isPending} />
          )}
        </Loaded>
        <ErrorNotice error={begin.error} />
      </div>
    </Dialog>
  )
}

function Progress({
  state,
  busy,
  onBegin,
}: {
  state: CheckState
  busy: boolean
  onBegin: () => void
}): ReactNode {
  const { rows, done, cost_usd, method, accuracy, problem } = state
  switch (state.state) {
    case "needless":
      return <p>{t("{how}, which needs no calibration.", { how: decidesBy(method) })}</p>
    case "estimate":
    case "failed":
      return (
        <>
          {problem ? <Notice tone="bad">{t("The last one failed: {problem}", { problem })}</Notice> : null}
          <p>
            {t(
              "It is asked {rows} questions with known answers, and how sure it may be of each kind is fitted on them.",
              { rows: count(rows) },
            )}{" "}
            {decidesBy(method)}.{" "}
            {t(
              "That costs at most {usd}, which your account with the provider pays; no organization is charged.",
              { usd: exactDollars(cost_usd) },
            )}
          </p>
          <Button kind="loud" className="self-start" busy={busy} onClick={onBegin}>
            {t("Ask {rows} questions", { rows: count(rows) })}
          </Button>
        </>
      )
    case "running":
      return (
        <>
          <p role="status">
            {t("{done} of {rows} questions are answered. It goes on when this is closed.", {
              done: count(done),
              rows: count(rows),
            })}
          </p>
          <ProgressBar label={t("Questions answered")} value={done} max={rows} />
        </>
      )
    case "done":
      return (
        <>
          <Notice tone="good">
            {t("Calibrated: it is right on {accuracy} of {rows} questions. It cost {usd}.", {
              accuracy: percent(accuracy ?? 0),
              rows: count(rows),
              usd: exactDollars(cost_usd),
            })}
          </Notice>
          <LeftOut rows={state.left_out} />
        </>
      )
  }
}

function LeftOut({ rows }: { rows: CheckState["left_out"] }): ReactNode {
  if (rows.length === 0) return null
  return (
    <>
      <p>
        {tn(
          rows.length,
          "{count} question is left out, because the server does not answer it. The others calibrate the model.",
          "{count} questions are left out, because the server does not answer them. The others calibrate the model.",
        )}
      </p>
      <ul
        aria-label={t("Questions left out")}
        // A list that scrolls is reached by keys.
        tabIndex={0}
        className="bg-sunken flex max-h-48 flex-col gap-1 overflow-auto rounded-md p-2 text-xs wrap-anywhere"
      >
        {rows.map(({ row, reason }) => (
          <li key={row}>{t("Question {row}: {reason}", { row, reason })}</li>
        ))}
      </ul>
    </>
  )
}
