/** Evaluate: how good the answers are on rows whose answers are known; and the evaluations so far. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useWrite } from "../api.ts"
import { batchesKey } from "../batches/batch-query.ts"
import { estimateBatch } from "../batches/price.ts"
import { useChosenSet } from "../batches/set-choice.tsx"
import { startBatch } from "../batches/start-batch.ts"
import { askedRows } from "../batches/table-lines.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { FileDrop } from "../parts/file-drop.tsx"
import { count, smallDollars } from "../parts/format.ts"
import { Notice, Page, Panel } from "../parts/page.tsx"
import { modelsQuery, useOrganization } from "../session.ts"
import { firstModel } from "../playground/models.ts"
import { RowPreview } from "../tables/row-preview.tsx"
import { type Rows, fileBytesMax } from "../tables/rows.ts"
import { noSet } from "../batches/chosen-set.ts"
import { useEvaluationDraft } from "./evaluation-draft.ts"
import { PlanForm } from "./plan-form.tsx"
import { type Plan, askedOf, labellingOf, whatIsWrong } from "./plan.ts"
import { Evaluations } from "./evaluations.tsx"
import { t, tn } from "../i18n/translate.ts"

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
  const draft = useEvaluationDraft()
  const { file, plan, error } = draft
  return (
    <Page
      title={t("Evaluate")}
      about={t(
        "Measure a model on rows whose answers you know: accuracy, confidence and mistakes. Nothing leaves this server.",
      )}
    >
      <FileDrop
        name={
          file
            ? tn(file.rows.rows.length, "{name}: {count} row", "{name}: {count} rows", { name: file.name })
            : null
        }
        disabled={false}
        prompt={t("Drop a CSV or JSONL file here: a column of text, a column of labels.")}
        label={t("Labelled file")}
        bytesMax={fileBytesMax}
        onFile={draft.take}
        onError={(sentence) => draft.change({ error: sentence })}
      >
        {file ? null : (
          <Button
            kind="bare"
            onClick={() =>
              draft.take(
                "sample.csv",
                new TextEncoder().encode(sample),
                "Does the customer ask for money back?",
              )
            }
          >
            {t("Use a sample")}
          </Button>
        )}
      </FileDrop>
      {error ? <Notice tone="bad">{error}</Notice> : null}
      {file && plan ? (
        <Prepare file={file} plan={plan} onChange={(next) => draft.change({ plan: next })} />
      ) : null}
      <Evaluations />
    </Page>
  )
}

function Prepare({
  file: { name, rows },
  plan: given,
  onChange,
}: {
  file: { readonly name: string; readonly rows: Rows }
  plan: Plan
  onChange: (plan: Plan) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const navigate = useNavigate()
  const queries = useQueryClient()
  // A file may be dropped before the list of models has arrived.
  const plan = { ...given, model: given.model || firstModel(models, "decisions") }
  const set = useChosenSet(plan.source === "set" ? plan.chosen : noSet)
  const wrong = whatIsWrong(plan, rows, set)
  const asked = askedOf(plan, set)
  const labelling = asked && labellingOf(plan, asked)
  const { evidence } = plan
  const places = askedRows({ rows, evidence, labelling })
  const start = useWrite(
    async () => {
      if (!asked) throw new Error(t("Choose what to ask."))
      return await startBatch(orgId, { name, rows, evidence, asked, labelling })
    },
    [batchesKey(orgId)],
    (batch) => {
      queries.setQueryData([...batchesKey(orgId), "one", batch.id], batch)
      void navigate({ to: "/o/$orgId/evaluate/$batchId", params: { orgId, batchId: batch.id } })
    },
  )
  return (
    <Panel title={t("What to ask")}>
      <div className="flex flex-col gap-4">
        <PlanForm
          plan={plan}
          rows={rows}
          set={set}
          models={models}
          disabled={start.isPending}
          onChange={onChange}
        />
        <RowPreview rows={rows} chosen={{ [plan.label]: t("Label"), [evidence]: t("Text") }} />
        <ErrorNotice error={start.error} />
        <div className="flex flex-wrap items-center gap-3">
          <Button
            kind="loud"
            icon="play"
            disabled={wrong !== null || places.length === 0}
            busy={start.isPending}
            onClick={() => start.mutate(undefined)}
          >
            {tn(places.length, "Evaluate {count} row", "Evaluate {count} rows")}
          </Button>
          <p className="text-soft number text-xs">
            {wrong ?? (asked ? priceOf(estimateBatch(textsOf(rows, evidence, places), asked, models)) : null)}
            {rows.rows.length > places.length
              ? ` ${tn(rows.rows.length - places.length, "{count} row without text or label will not be asked.", "{count} rows without text or label will not be asked.")}`
              : ""}
          </p>
        </div>
      </div>
    </Panel>
  )
}

const textsOf = ({ rows }: Rows, evidence: string, places: readonly number[]): string[] =>
  places.map((index) => rows[index]?.[evidence] ?? "")

const priceOf = ({ tokens, usd }: ReturnType<typeof estimateBatch>): string =>
  usd === null
    ? t("About {tokens} tokens.", { tokens: count(tokens) })
    : t("About {tokens} tokens, {usd}.", { tokens: count(tokens), usd: smallDollars(usd) })
