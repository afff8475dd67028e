/** Evaluate: how good the answers are on rows whose answers are known. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { SequenceLink } from "../analytics/sequence-link.tsx"
import { ErrorText } from "../parts/error-text.tsx"
import { FileDrop } from "../parts/file-drop.tsx"
import { count, plural } from "../parts/format.ts"
import { Notice, Page, Panel } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { modelsQuery, useOrganization } from "../session.ts"
import { firstModel } from "../playground/models.ts"
import { useEvaluation } from "./evaluation.ts"
import { PlanForm } from "./plan-form.tsx"
import { whatIsWrong } from "./plan.ts"
import { Results } from "./results.tsx"
import { fileBytesMax } from "./rows.ts"
import type { Progress } from "./run.ts"

const sample = [
  "text,label",
  '"I want my money back, the shoes fell apart after two days.",yes',
  '"Could you tell me which sizes you have in stock?",no',
  '"Please refund the second charge on my card.",yes',
  '"The delivery was quick and the box was pretty. Thank you!",no',
  '"This is the third broken lamp. I am sending it back for a refund.",yes',
  '"How do I change the address of my order?",no',
  '"Return my payment or I will call the bank.",yes',
  '"Do you ship to Norway?",no',
].join("\n")

export function EvaluatePage(): ReactNode {
  const { id: orgId } = useOrganization()
  const models = useQuery(modelsQuery(orgId)).data ?? []
  const run = useEvaluation()
  const { file, error } = run
  // A file may be dropped before the list of models has arrived.
  const plan = run.plan && { ...run.plan, model: run.plan.model || firstModel(models, "decisions") }
  const wrong = plan && file ? whatIsWrong(plan, file.rows) : null
  return (
    <Page
      title="Evaluate"
      about="Measure a model on rows whose answers you know: accuracy, confidence and mistakes. Nothing leaves this server."
    >
      <FileDrop
        name={file ? `${file.name}: ${plural(file.rows.rows.length, "row")}` : null}
        disabled={run.busy}
        prompt="Drop a CSV or JSONL file here: a column of text, a column of labels."
        label="Labelled file"
        bytesMax={fileBytesMax}
        onText={run.take}
        onError={run.setError}
      >
        {file ? null : (
          <Button
            kind="bare"
            onClick={() => run.take("sample.csv", sample, "Does the customer ask for money back?")}
          >
            Use a sample
          </Button>
        )}
      </FileDrop>
      {error ? <Notice tone="bad">{error}</Notice> : null}
      {file && plan ? (
        <Panel title="What to ask">
          <PlanForm plan={plan} rows={file.rows} models={models} disabled={run.busy} onChange={run.setPlan} />
          <div className="mt-4 flex flex-wrap items-center gap-3">
            {run.busy ? (
              <>
                <Button icon="stop" onClick={run.cancel}>
                  Cancel
                </Button>
                <p className="text-soft text-xs">It continues while you look at other pages.</p>
              </>
            ) : (
              <Button
                kind="loud"
                icon="play"
                disabled={wrong !== null}
                onClick={() => run.start(plan, file.rows)}
              >
                Evaluate {plural(file.rows.rows.length, "row")}
              </Button>
            )}
            {wrong ? <p className="text-soft text-xs">{wrong}</p> : null}
          </div>
        </Panel>
      ) : null}
      {run.progress && file ? (
        <RunProgress progress={run.progress} total={file.rows.rows.length} busy={run.busy} />
      ) : null}
      {run.progress && run.ran && run.progress.done.length > 0 ? (
        <Results rows={run.progress.done} plan={run.ran} />
      ) : null}
    </Page>
  )
}

function RunProgress({
  progress,
  total,
  busy,
}: {
  progress: Progress
  total: number
  busy: boolean
}): ReactNode {
  const through = progress.done.length + progress.failed
  return (
    <div className="flex flex-col gap-2">
      <div className="number text-soft flex justify-between text-xs">
        <span role="status">
          {busy ? "Asking" : through < total ? "Stopped" : "Done"}: {count(through)} of {plural(total, "row")}
        </span>
        <span>{plural(progress.inputTokens, "token")}</span>
      </div>
      <ProgressBar label="Rows answered" value={through} max={total} />
      {progress.lastError ? (
        <Notice tone="bad">
          {plural(progress.failed, "row")} failed; the last one:{" "}
          <ErrorText error={progress.lastError.error} />
          {progress.lastError.sequenceId ? (
            <span className="mt-1 block text-xs">
              Recorded as <SequenceLink id={progress.lastError.sequenceId} />
            </span>
          ) : null}
        </Notice>
      ) : null}
    </div>
  )
}
