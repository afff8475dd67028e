/** The evaluations of the organization; two of them are chosen to stand side by side. */
import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { BatchActions } from "../batches/batch-actions.tsx"
import { BatchFilterBar, useBatchFilters } from "../batches/batch-filters.tsx"
import { batchName, useBatches } from "../batches/batch-query.ts"
import { SmallProgress, StatusBadge } from "../batches/batch-status.tsx"
import { Button } from "../parts/button.tsx"
import { ago, moment } from "../parts/format.ts"
import { MoreButton } from "../parts/more.tsx"
import { Empty, Loaded } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

const comparedCount = 2

export function Evaluations(): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const [chosen, setChosen] = useState<readonly string[]>([])
  const { fields, change, filters, isFiltered } = useBatchFilters()
  const batches = useBatches({ ...filters, kind: "evaluation" })
  // Ids are in the order of time.
  const [a, b] = chosen.toSorted()
  return (
    <Loaded query={batches} label={t("Loading evaluations")}>
      {(rows) => {
        return (
          <>
            {rows.length > 0 || isFiltered ? (
              <section aria-label={t("Evaluations")} className="flex flex-col gap-3">
                <div className="flex flex-wrap items-center justify-between gap-2">
                  <div>
                    <h2 className="text-sm font-semibold">{t("Evaluations")}</h2>
                    <p className="text-soft text-xs">{t("Tick two to see them side by side.")}</p>
                  </div>
                  <Button
                    small
                    icon="split"
                    disabled={chosen.length !== comparedCount}
                    onClick={() =>
                      void navigate({
                        to: "/o/$orgId/evaluate/compare",
                        params: { orgId },
                        search: { a: a ?? "", b: b ?? "" },
                      })
                    }
                  >
                    {t("Compare two")}
                  </Button>
                </div>
                <BatchFilterBar fields={fields} onChange={change} />
                {rows.length === 0 ? (
                  <div className="panel">
                    <Empty icon="search" title={t("No evaluation has this name and state")} />
                  </div>
                ) : null}
                <EvaluationTable
                  rows={rows}
                  chosen={chosen}
                  // Of more than two, the first chosen gives way.
                  onChoose={(id, isChosen) =>
                    setChosen([...chosen.filter((one) => one !== id), ...(isChosen ? [id] : [])].slice(-2))
                  }
                />
              </section>
            ) : null}
            <MoreButton query={batches} />
          </>
        )
      }}
    </Loaded>
  )
}

function EvaluationTable({
  rows,
  chosen,
  onChoose,
}: {
  rows: readonly BatchObject[]
  chosen: readonly string[]
  onChoose: (id: string, isChosen: boolean) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Table
      label={t("Evaluations")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Name"),
          cell: (batch) => (
            <>
              <Link
                to="/o/$orgId/evaluate/$batchId"
                params={{ orgId, batchId: batch.id }}
                className="text-accent font-medium wrap-anywhere hover:underline"
              >
                {batchName(batch)}
              </Link>
              <span className="text-soft line-clamp-2 max-w-md text-xs">{batch.metadata?.["question"]}</span>
            </>
          ),
        },
        {
          name: t("Asked"),
          cell: ({ metadata }) => <span className="font-mono text-xs">{metadata?.["model"]}</span>,
        },
        { name: t("State"), cell: (batch) => <StatusBadge batch={batch} /> },
        { name: t("Progress"), cell: (batch) => <SmallProgress batch={batch} /> },
        {
          name: t("Created"),
          cell: ({ created_at }) => (
            <span className="whitespace-nowrap" title={moment(created_at * 1000)}>
              {ago(created_at * 1000)}
            </span>
          ),
        },
        {
          name: t("Compare"),
          quiet: true,
          align: "right",
          cell: (batch) => (
            <input
              type="checkbox"
              aria-label={t("Compare {batchName} with {metadata}", {
                batchName: batchName(batch),
                metadata: batch.metadata?.["model"] ?? "",
              })}
              className="accent-accent ms-auto block size-4"
              checked={chosen.includes(batch.id)}
              onChange={(event) => onChoose(batch.id, event.target.checked)}
            />
          ),
        },
        actionsColumn(true, (batch: BatchObject) => <BatchActions batch={batch} />),
      ]}
    />
  )
}
