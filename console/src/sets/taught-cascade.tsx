/** What a taught set is expected to do whose model is a cascade: beside its models, and by question. */
import type { ReactNode } from "react"
import type { TaughtCascadeReport, TeachResult } from "../../../src/contract/question-sets/jobs.ts"
import { count, decimal, milliseconds, percent, smallDollars } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { t } from "../i18n/translate.ts"

type Measured = Omit<TaughtCascadeReport["stages"][number], "model">

interface ModelRow extends Measured {
  readonly name: string
}

export function TaughtCascade({
  cascade,
  questions,
}: {
  cascade: TaughtCascadeReport
  questions: TeachResult["questions"]
}): ReactNode {
  const models: ModelRow[] = [
    { ...cascade, name: t("The cascade"), asked: 1 },
    ...cascade.stages.map((stage) => ({ ...stage, name: t("{model} alone", { model: stage.model }) })),
  ]
  const sent = questions.flatMap((one) => (one.cascade ? [{ name: one.name, ...one.cascade }] : []))
  return (
    <Panel title={t("The cascade")}>
      <div className="flex flex-col gap-4">
        <p className="text-soft max-w-3xl text-sm">
          {cascade.measured_on === "held_out"
            ? t("Measured on {requests} held-out examples, with every model asked about each.", {
                requests: count(cascade.requests),
              })
            : t("Measured on {requests} examples by cross-validation, with every model asked about each.", {
                requests: count(cascade.requests),
              })}{" "}
          {t("Lower bounds hold with 95% confidence.")}
        </p>
        <Table
          label={t("The cascade beside its models")}
          rows={models}
          rowKey={({ name }) => name}
          columns={[
            { name: t("Model"), cell: ({ name }) => <span className="font-medium">{name}</span> },
            { name: t("Accuracy"), align: "right", cell: accuracy },
            {
              name: t("Cost of 1,000 requests"),
              align: "right",
              cell: ({ cost_usd }) => smallDollars(1000 * Number(cost_usd)),
            },
            {
              name: t("Time of a request"),
              align: "right",
              cell: ({ latency_ms }) => milliseconds(latency_ms),
            },
            { name: t("Requests that ask it"), align: "right", cell: ({ asked }) => percent(asked) },
          ]}
        />
        <p className="text-soft max-w-3xl text-sm">
          {t(
            "An answer goes to the next model when its probability is below the threshold of the question. The answers of both are then combined by their weights, or the later one counts alone.",
          )}
        </p>
        <Table
          label={t("What each question sends on")}
          rows={sent}
          rowKey={({ name }) => name}
          columns={[
            { name: t("Question"), cell: ({ name }) => <span className="font-medium">{name}</span> },
            {
              name: t("Threshold"),
              align: "right",
              cell: ({ thresholds }) => thresholds.map(thresholdWord).join(", "),
            },
            {
              name: t("Target accuracy"),
              align: "right",
              cell: ({ target }) => (target === null ? t("none") : percent(target)),
            },
            { name: t("Accuracy"), align: "right", cell: accuracy },
            {
              name: t("Sent on"),
              align: "right",
              cell: ({ asked }) => asked.slice(1).map(percent).join(", "),
            },
            {
              name: t("Answers combined"),
              align: "right",
              cell: ({ blends }) => blends.map(combined).join(", "),
            },
          ]}
        />
      </div>
    </Panel>
  )
}

const accuracy = (row: { readonly accuracy: number; readonly accuracy_low: number }): string =>
  t("{accuracy} (at least {accuracyLow})", {
    accuracy: percent(row.accuracy),
    accuracyLow: percent(row.accuracy_low),
  })

const combined = (blend: { readonly first: number; readonly later: number } | null): string =>
  blend
    ? t("{first} × earlier + {later} × later", {
        first: decimal(blend.first, 2),
        later: decimal(blend.later, 2),
      })
    : t("Later one alone")

const thresholdWord = (threshold: number): string =>
  threshold === 0 ? t("Never sent on") : percent(threshold)
