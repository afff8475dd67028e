/** Batches: tables and files of requests that run asynchronously. */
import { Link, useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { Button } from "../parts/button.tsx"
import { ago, moment } from "../parts/format.ts"
import { MoreButton } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Page } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import { BatchActions } from "./batch-actions.tsx"
import { BatchFilterBar, useBatchFilters } from "./batch-filters.tsx"
import { givenName, isEvaluation, useBatchName, useBatches } from "./batch-query.ts"
import { SmallProgress, StatusBadge } from "./batch-status.tsx"
import { t } from "../i18n/translate.ts"

export function BatchesPage(): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const { fields, change, filters, isFiltered } = useBatchFilters()
  const batches = useBatches(filters)
  const create = (
    <Button
      kind="loud"
      icon="plus"
      onClick={() => void navigate({ to: "/o/$orgId/batches/new", params: { orgId } })}
    >
      {t("New batch")}
    </Button>
  )
  return (
    <Page
      title={t("Batches")}
      about={t("Questions about every row of a table, asked in the background. Live requests go first.")}
      actions={batches.data?.length || isFiltered ? create : null}
    >
      {batches.data?.length || isFiltered ? <BatchFilterBar fields={fields} onChange={change} /> : null}
      <Loaded query={batches} label={t("Loading batches")}>
        {(rows) =>
          rows.length === 0 && isFiltered ? (
            <div className="panel">
              <Empty icon="search" title={t("No batch has this name and state")} />
            </div>
          ) : rows.length === 0 ? (
            <div className="panel">
              <Empty icon="stack" title={t("No batches yet")} action={create}>
                {t(
                  "Upload a table as CSV, TSV or JSON lines, choose what to ask of every row, and see the price before it starts. Programs make batches with OpenAI’s Files and Batch APIs.",
                )}
              </Empty>
            </div>
          ) : (
            <BatchTable rows={rows} />
          )
        }
      </Loaded>
      <MoreButton query={batches} />
    </Page>
  )
}

/** Evaluations have a page of their own. */
function BatchLink({ batch }: { batch: BatchObject }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Link
      to={isEvaluation(batch) ? "/o/$orgId/evaluate/$batchId" : "/o/$orgId/batches/$batchId"}
      params={{ orgId, batchId: batch.id }}
      className="text-accent font-medium wrap-anywhere hover:underline"
    >
      {useBatchName(batch)}
    </Link>
  )
}

function BatchTable({ rows }: { rows: readonly BatchObject[] }): ReactNode {
  return (
    <Table
      label={t("Batches")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Name"),
          cell: (batch) => (
            <>
              <BatchLink batch={batch} /> {isEvaluation(batch) ? <Badge>{t("Evaluation")}</Badge> : null}
              {givenName(batch) === null ? (
                <span className="text-soft block font-mono text-xs">{batch.id}</span>
              ) : null}
              {batch.metadata?.["question"] ? (
                <span className="text-soft line-clamp-2 max-w-md text-xs">{batch.metadata["question"]}</span>
              ) : null}
            </>
          ),
        },
        {
          name: t("Asked"),
          cell: ({ endpoint, metadata }) => (
            <span className="font-mono text-xs">{metadata?.["model"] ?? endpoint}</span>
          ),
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
        actionsColumn(true, (batch: BatchObject) => <BatchActions batch={batch} />),
      ]}
    />
  )
}
