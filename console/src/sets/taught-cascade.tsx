/** What a taught set is expected to do whose model is a cascade: beside its models, and by question. */
import type { ReactNode } from "react"
import type { TaughtCascadeReport, TeachResult } from "../../../src/contract/question-sets/jobs.ts"
import { count, decimal, milliseconds, percent, smallDollars } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"

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
    { ...cascade, name: "The cascade", asked: 1 },
    ...cascade.stages.map((stage) => ({ ...stage, name: `${stage.model} alone` })),
  ]
  const sent = questions.flatMap((one) => (one.cascade ? [{ name: one.name, ...one.cascade }] : []))
  return (
    <Panel title="The cascade">
      <div className="flex flex-col gap-4">
        <p className="text-soft max-w-3xl text-sm">
          Measured on {count(cascade.requests)}{" "}
          {cascade.measured_on === "held_out" ? "held-out examples" : "examples by cross-validation"}, with
          every model asked about each. Lower bounds hold with 95% confidence.
        </p>
        <Table
          label="The cascade beside its models"
          rows={models}
          rowKey={({ name }) => name}
          columns={[
            { name: "Model", cell: ({ name }) => <span className="font-medium">{name}</span> },
            { name: "Accuracy", align: "right", cell: accuracy },
            {
              name: "Cost of 1,000 requests",
              align: "right",
              cell: ({ cost_usd }) => smallDollars(1000 * Number(cost_usd)),
            },
            {
              name: "Time of a request",
              align: "right",
              cell: ({ latency_ms }) => milliseconds(latency_ms),
            },
            { name: "Requests that ask it", align: "right", cell: ({ asked }) => percent(asked) },
          ]}
        />
        <p className="text-soft max-w-3xl text-sm">
          An answer goes to the next model when its probability is below the threshold of the question. The
          answers of both are then combined by their weights, or the later one counts alone.
        </p>
        <Table
          label="What each question sends on"
          rows={sent}
          rowKey={({ name }) => name}
          columns={[
            { name: "Question", cell: ({ name }) => <span className="font-medium">{name}</span> },
            {
              name: "Threshold",
              align: "right",
              cell: ({ thresholds }) => thresholds.map(thresholdWord).join(", "),
            },
            {
              name: "Target accuracy",
              align: "right",
              cell: ({ target }) => (target === null ? "none" : percent(target)),
            },
            { name: "Accuracy", align: "right", cell: accuracy },
            { name: "Sent on", align: "right", cell: ({ asked }) => asked.slice(1).map(percent).join(", ") },
            {
              name: "Answers combined",
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
  `${percent(row.accuracy)} (at least ${percent(row.accuracy_low)})`

const combined = (blend: { readonly first: number; readonly later: number } | null): string =>
  blend ? `${decimal(blend.first, 2)} × earlier + ${decimal(blend.later, 2)} × later` : "Later one alone"

const thresholdWord = (threshold: number): string => (threshold === 0 ? "Never sent on" : percent(threshold))
