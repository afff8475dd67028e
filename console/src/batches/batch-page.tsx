/** One batch: how far it is, and at its end its answers as charts and as a table, its errors, and its files. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, moment } from "../parts/format.ts"
import { Loaded, Notice, Page, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { AttemptsLink } from "../requests/log-link.tsx"
import { useOrganization } from "../session.ts"
import { saveCsv, saveFile } from "../tables/save-file.ts"
import { AnswerCharts } from "./answer-charts.tsx"
import { BatchActions } from "./batch-actions.tsx"
import { questionName } from "./asked.ts"
import { readFile } from "./batch-files.ts"
import { type BatchResults, batchName, isEnded, useBatch, useBatchName, useResults } from "./batch-query.ts"
import { BatchProgress } from "./batch-status.tsx"
import { ResultTable, RowName } from "./result-table.tsx"
import { type ResultRow, joinedLines, resultRows, tokensOf } from "./results.ts"
import { t } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/batches/$batchId")

export function BatchPage(): ReactNode {
  const { orgId, batchId } = route.useParams()
  const navigate = useNavigate()
  const query = useBatch(batchId)
  const batch = query.data
  return (
    <Page
      title={useBatchName(batch) ?? t("Batch")}
      about={batch?.metadata?.["question"]}
      actions={
        batch ? (
          <>
            {isEnded(batch) ? <Downloads batch={batch} /> : null}
            <BatchActions
              batch={batch}
              onDeleted={() => void navigate({ to: "/o/$orgId/batches", params: { orgId } })}
            />
          </>
        ) : null
      }
    >
      <Loaded query={query} label={t("Loading the batch")}>
        {(found) => (
          <>
            <Panel>
              <div className="flex flex-col gap-4">
                <BatchProgress batch={found} of={found.metadata?.["kind"] === "table" ? "row" : "line"} />
                <Facts batch={found} />
              </div>
            </Panel>
            {isEnded(found) ? <Outcome batch={found} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Facts({ batch }: { batch: BatchObject }): ReactNode {
  const { id, endpoint, metadata, created_at, expires_at } = batch
  const endedAt = batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at
  return (
    // The id stays on one line: a column as wide as it is, and a row of its own on a phone.
    <dl className="grid grid-cols-2 gap-3 *:last:col-span-2 lg:grid-cols-[1fr_1fr_1fr_max-content] lg:*:last:col-span-1">
      <Figure look="plain" name={t("Asked")} value={metadata?.["model"] ?? endpoint} />
      <Figure look="plain" name={t("Created")} value={moment(created_at * 1000)} />
      {endedAt === null ? (
        <Figure look="plain" name={t("Must end by")} value={moment(expires_at * 1000)} />
      ) : (
        <Figure look="plain" name={t("Ended")} value={moment(endedAt * 1000)} />
      )}
      <Figure look="plain" name={t("Id")} value={id} />
    </dl>
  )
}

const gone = {
  expired: t("The files of this batch have expired or were deleted: its answers cannot be shown any more."),
  "too large": t("The answers are too many to be shown here: download them."),
} as const

function Outcome({ batch }: { batch: BatchObject }): ReactNode {
  const results = useResults(batch)
  return (
    <Loaded query={results} label={t("Loading the answers")}>
      {(found) =>
        found.missing ? (
          <Notice tone="warn">{gone[found.missing]}</Notice>
        ) : (
          <Answers batch={batch} results={found} />
        )
      }
    </Loaded>
  )
}

function Answers({ batch, results }: { batch: BatchObject; results: BatchResults }): ReactNode {
  const rows = useMemo(() => resultRows(batch, results), [batch, results])
  const answered = rows.filter(({ error }) => error === null)
  const failed = rows.filter(({ error }) => error !== null)
  const instructions = new Map(
    results.sheet?.questions.map((asked, index) => [questionName(asked, index), asked.instructions]),
  )
  return (
    <>
      {answered.length > 0 ? (
        <>
          <AnswerCharts rows={answered} instructions={instructions} />
          <ResultTable rows={answered} />
          <p className="text-soft number text-xs">
            {t("{tokensOf} tokens in all.", { tokensOf: count(tokensOf(results)) })}
          </p>
        </>
      ) : null}
      {failed.length > 0 ? <Errors rows={failed} /> : null}
    </>
  )
}

const errorsShownMax = 100

function Errors({ rows }: { rows: readonly ResultRow[] }): ReactNode {
  return (
    <section aria-label={t("Errors")} className="flex flex-col gap-3">
      <h2 className="text-sm font-semibold">{t("Errors ({rows})", { rows: count(rows.length) })}</h2>
      <Table
        label={t("Errors")}
        rows={rows.slice(0, errorsShownMax)}
        rowKey={({ name }) => name}
        columns={[
          {
            name: t("Row"),
            cell: ({ index, name }) => <RowName index={index} name={name} />,
          },
          {
            name: t("Error"),
            cell: ({ error }) => <span className="text-bad font-mono text-xs">{error?.code}</span>,
          },
          { name: t("Why"), long: true, cell: ({ error }) => error?.message },
          {
            name: t("Request"),
            quiet: true,
            align: "right",
            cell: ({ error }) => (error?.requestId ? <AttemptsLink requestId={error.requestId} /> : null),
          },
        ]}
      />
      {rows.length > errorsShownMax ? (
        <p className="text-soft text-xs">
          {t("The first {errorsShownMax}; the files have all.", { errorsShownMax })}
        </p>
      ) : null}
    </section>
  )
}

function Downloads({ batch }: { batch: BatchObject }): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: results } = useResults(batch)
  const { id, output_file_id, error_file_id } = batch
  const save = useWrite(async ({ fileId, name }: { fileId: string; name: string }) => {
    saveFile(name, await readFile(orgId, fileId), "application/jsonl")
  }, [])
  return (
    <>
      {results && !results.missing && results.lines.length > 0 ? (
        <Button
          icon="download"
          onClick={() =>
            saveCsv(`${baseName(batch)}-answers.csv`, joinedLines(resultRows(batch, results), results))
          }
        >
          {t("CSV")}
        </Button>
      ) : null}
      {output_file_id ? (
        <Button
          icon="download"
          busy={save.isPending}
          onClick={() => save.mutate({ fileId: output_file_id, name: `${id}_output.jsonl` })}
        >
          {t("Answers as JSONL")}
        </Button>
      ) : null}
      {error_file_id ? (
        <Button
          icon="download"
          busy={save.isPending}
          onClick={() => save.mutate({ fileId: error_file_id, name: `${id}_error.jsonl` })}
        >
          {t("Errors as JSONL")}
        </Button>
      ) : null}
      <ErrorNotice error={save.error} />
    </>
  )
}

const baseName = (batch: BatchObject): string => batchName(batch).replace(/\.\w+$/, "")
