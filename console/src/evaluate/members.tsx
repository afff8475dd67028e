/** A cascade beside its members on the same rows: accuracy against cost and against time, as a drawing and as a table. */
import { useQueries, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { evaluate } from "../../../src/scoring/evaluation.ts"
import { useWrite } from "../api.ts"
import { ownQuestions } from "../batches/asked.ts"
import {
  type BatchResults,
  batchesKey,
  isEnded,
  resultsQuery,
  useBatches,
  useResults,
} from "../batches/batch-query.ts"
import type { Sheet } from "../batches/sheet.ts"
import { startBatch } from "../batches/start-batch.ts"
import { BatchErrorList } from "../batches/batch-status.tsx"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { listWords, milliseconds, percent, smallDollars } from "../parts/format.ts"
import { Notice, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { modelsQuery, useOrganization } from "../session.ts"
import { type TradeOff, TradeOffChart } from "./trade-off-chart.tsx"
import { judgeRows } from "./judged.ts"
import { memberBatches } from "./member-batches.ts"
import { RowErrorList } from "./row-error-list.tsx"
import { rowErrors } from "./row-errors.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

/** Nothing where the model is no cascade. */
export function Members({ batch, results }: { batch: BatchObject; results: BatchResults }): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const { data: all = [] } = useBatches({ kind: "evaluation" })
  const { sheet } = results
  const stages = models.find(({ model_sku }) => model_sku === sheet?.model)?.virtual?.cascade?.models
  const members = stages && [...new Set(stages)]
  const asked = memberBatches(all, batch.id, members ?? [])
  const beside = asked.flatMap((one) => one.batch ?? [])
  const found = useQueries({ queries: beside.map((one) => resultsQuery(orgId, one)) })
  // Where no row was answered there is nothing to compare, and the page says why.
  if (!sheet || !members || results.lines.every(({ error }) => error !== null)) return null
  const own = tradeOffOf(sheet.model, batch.id, results)
  if (!own)
    return (
      <Panel title={t("The cascade beside its models")}>
        <Notice tone="info">
          {t("This evaluation does not say what its rows cost and took. Evaluate again to compare.")}
        </Notice>
      </Panel>
    )
  const others = beside.flatMap((one, at) => {
    const data = found[at]?.data
    return data ? (tradeOffOf(one.metadata?.["model"] ?? "", one.id, data) ?? []) : []
  })
  const missing = asked.flatMap((one) => (one.batch ? [] : one.model))
  return (
    <Panel title={t("The cascade beside its models")}>
      <div className="flex flex-col gap-4">
        {asked.map(({ model, failed }) =>
          failed ? <NoResult key={model} model={model} batch={failed} /> : null,
        )}
        {missing.length > 0 ? <Start batch={batch} sheet={sheet} models={missing} /> : null}
        {beside.some((one) => !isEnded(one)) ? (
          <Notice tone="info">{t("Its models are being asked about the same rows.")}</Notice>
        ) : null}
        {others.length > 0 ? <TradeOffs points={[own, ...others]} /> : null}
      </div>
    </Panel>
  )
}

function NoResult({ model, batch }: { model: string; batch: BatchObject }): ReactNode {
  const { id: orgId } = useOrganization()
  const { data } = useResults(batch)
  const link = (
    <Link
      to="/o/$orgId/evaluate/$batchId"
      params={{ orgId, batchId: batch.id }}
      className="font-mono text-xs underline underline-offset-2"
    >
      {model}
    </Link>
  )
  return (
    <Notice tone="bad">
      {batch.status === "cancelled" ? (
        <T text="The evaluation of {model} was cancelled. Ask it again to compare." model={link} />
      ) : (
        <T
          text="The evaluation of {model} has no result to compare. Remove the cause, then ask it again."
          model={link}
        />
      )}
      <BatchErrorList batch={batch} />
      <RowErrorList errors={rowErrors(data?.lines ?? [])} />
    </Notice>
  )
}

/** Null where nothing can be judged, or the files do not say what a row took. */
function tradeOffOf(name: string, id: string, { sheet, lines }: BatchResults): TradeOff | null {
  const judged = sheet && judgeRows(sheet, lines)
  const took = lines.flatMap((line) => line.took ?? [])
  if (!judged || judged.rows.length === 0 || took.length === 0) return null
  return {
    id,
    name,
    rows: judged.rows.length,
    accuracy: evaluate(judged.rows).accuracy,
    costUsd: mean(took.map(({ costUsd }) => costUsd)),
    latencyMs: mean(took.map(({ latencyMs }) => latencyMs)),
  }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

function Start({
  batch,
  sheet,
  models,
}: {
  batch: BatchObject
  sheet: Sheet
  models: readonly string[]
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { name, columns, rows, evidence, questions, labelling } = sheet
  const start = useWrite(async () => {
    for (const model of models)
      await startBatch(orgId, {
        name,
        rows: { columns, rows },
        evidence,
        asked: ownQuestions(model, questions),
        labelling,
        comparedWith: batch.id,
      })
  }, [batchesKey(orgId)])
  return (
    <div className="flex flex-col items-start gap-2">
      <p className="text-soft max-w-3xl text-sm">
        {t(
          "Ask {models} about the same rows, to see what the cascade gains and what it costs. Each row is charged.",
          { models: listWords(models) },
        )}
      </p>
      <Button icon="play" busy={start.isPending} onClick={() => start.mutate(undefined)}>
        {tn(models.length, "Evaluate {count} model of the cascade", "Evaluate {count} models of the cascade")}
      </Button>
      <ErrorNotice error={start.error} />
    </div>
  )
}

function TradeOffs({ points }: { points: readonly TradeOff[] }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <TradeOffChart
          title={t("Accuracy by cost")}
          unit={t("Cost of 1,000 rows")}
          points={points}
          of={({ costUsd }) => 1000 * costUsd}
          show={smallDollars}
        />
        <TradeOffChart
          title={t("Accuracy by time")}
          unit={t("Mean time of a row")}
          points={points}
          of={({ latencyMs }) => latencyMs}
          show={milliseconds}
        />
      </div>
      <Table
        label={t("The cascade and its models")}
        rows={points}
        rowKey={({ id }) => id}
        columns={[
          {
            name: t("Model"),
            cell: ({ id, name }) => (
              <Link
                to="/o/$orgId/evaluate/$batchId"
                params={{ orgId, batchId: id }}
                className="text-accent font-mono text-xs hover:underline"
              >
                {name}
              </Link>
            ),
          },
          { name: t("Rows"), align: "right", cell: ({ rows }) => rows },
          { name: t("Accuracy"), align: "right", cell: ({ accuracy }) => percent(accuracy) },
          {
            name: t("Cost of 1,000 rows"),
            align: "right",
            cell: ({ costUsd }) => smallDollars(1000 * costUsd),
          },
          { name: t("Mean time of a row"), align: "right", cell: ({ latencyMs }) => milliseconds(latencyMs) },
        ]}
      />
      <p className="text-soft text-xs">
        {t(
          "The dot is the cascade, the rings are its models; higher and further left is better. Times are those of rows in a batch, which wait for live requests and share the models with other rows.",
        )}
      </p>
    </>
  )
}
