/** The workers of every gateway: one row for a worker and model, with what all gateways have there. */
import type { ReactNode } from "react"
import { type FleetState, type WorkerState, isSilent } from "../../../src/contract/fleet-report.ts"
import { count, milliseconds } from "../parts/format.ts"
import { Badge } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { t } from "../i18n/translate.ts"

export interface FleetWorker extends WorkerState {
  readonly model: string
  /** How many gateways know it, and how many of them find it healthy. */
  readonly gateways: number
  readonly healthyAt: number
}

/** Gateways count their own requests: a queue of the fleet is the sum. One that is silent no longer counts. */
function workersOf({ gateways, drained_workers }: FleetState): FleetWorker[] {
  const rows = new Map<string, FleetWorker>()
  for (const gateway of gateways.filter((one) => !isSilent(one)))
    for (const { model, workers } of gateway.models)
      for (const worker of workers) {
        const key = `${model}\n${worker.id}`
        const known = rows.get(key)
        rows.set(key, {
          ...worker,
          model,
          drained: drained_workers.includes(worker.id),
          gateways: (known?.gateways ?? 0) + 1,
          healthyAt: (known?.healthyAt ?? 0) + (worker.healthy ? 1 : 0),
          breaker: known && known.breaker !== "closed" ? known.breaker : worker.breaker,
          running: (known?.running ?? 0) + worker.running,
          waiting: (known?.waiting ?? 0) + worker.waiting,
          outstanding_tokens: (known?.outstanding_tokens ?? 0) + worker.outstanding_tokens,
          failures: (known?.failures ?? 0) + worker.failures,
        })
      }
  return [...rows.values()]
}

export function WorkerTable({
  state,
  action,
}: {
  state: FleetState
  action: (worker: FleetWorker) => ReactNode
}): ReactNode {
  return (
    <Table
      label={t("Workers")}
      rows={workersOf(state)}
      rowKey={({ model, id }) => `${model} ${id}`}
      columns={[
        {
          name: t("Worker"),
          cell: ({ model, id }) => (
            <>
              <span className="font-mono text-xs">{id}</span>
              <span className="text-soft block text-xs">{model}</span>
            </>
          ),
        },
        { name: t("Health"), cell: (worker) => <Health worker={worker} /> },
        { name: t("Breaker"), cell: ({ breaker }) => breaker.replace("_", " ") },
        { name: t("Running"), align: "right", cell: ({ running }) => count(running) },
        { name: t("Waiting"), align: "right", cell: ({ waiting }) => count(waiting) },
        { name: t("Tokens"), align: "right", cell: ({ outstanding_tokens }) => count(outstanding_tokens) },
        {
          name: t("Latency"),
          align: "right",
          cell: ({ latency_ms }) => (latency_ms === null ? "–" : milliseconds(latency_ms)),
        },
        { name: t("Failures"), align: "right", cell: ({ failures }) => count(failures) },
        { ...actionsColumn<FleetWorker>(true, action) },
      ]}
    />
  )
}

function Health({ worker: { gateways, healthyAt, drained } }: { worker: FleetWorker }): ReactNode {
  return (
    <span className="inline-flex flex-wrap gap-1">
      {healthyAt === gateways ? <Badge tone="good">{t("Up")}</Badge> : null}
      {healthyAt === 0 ? <Badge tone="bad">{t("Down")}</Badge> : null}
      {healthyAt > 0 && healthyAt < gateways ? (
        <Badge tone="warn">{t("Up at {healthyAt} of {gateways}", { healthyAt, gateways })}</Badge>
      ) : null}
      {drained ? <Badge tone="warn">{t("Drained")}</Badge> : null}
    </span>
  )
}
