/** One evaluation: how far it is, and at its end what it found. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { type BatchResults, batchName, isEnded, useBatch, useResults } from "../batches/batch-query.ts"
import { BatchActions } from "../batches/batch-actions.tsx"
import type { ResultLine } from "../batches/result-lines.ts"
import { BatchProgress } from "../batches/batch-status.tsx"
import type { Sheet } from "../batches/sheet.ts"
import { Button } from "../parts/button.tsx"
import { milliseconds, smallDollars } from "../parts/format.ts"
import { Loaded, Notice, Page, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { useEvaluationDraft } from "./evaluation-draft.ts"
import { judgeRows } from "./judged.ts"
import { Members } from "./members.tsx"
import { planOfSheet } from "./plan.ts"
import { Results } from "./results.tsx"
import { RowErrorList } from "./row-error-list.tsx"
import { rowErrors } from "./row-errors.ts"
import { t, tn } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/evaluate/$batchId")

export function EvaluationPage(): ReactNode {
  const { orgId, batchId } = route.useParams()
  const navigate = useNavigate()
  const query = useBatch(batchId)
  const batch = query.data
  return (
    <Page
      title={batch ? batchName(batch) : t("Evaluation")}
      about={
        batch ? (
          <>
            {batch.metadata?.["question"]}{" "}
            <span className="font-mono text-xs">{batch.metadata?.["model"]}</span>
          </>
        ) : null
      }
      actions={
        batch ? (
          <>
            {isEnded(batch) ? <Again batch={batch} /> : null}
            <BatchActions
              batch={batch}
              onDeleted={() => void navigate({ to: "/o/$orgId/evaluate", params: { orgId } })}
            />
          </>
        ) : null
      }
    >
      <Loaded query={query} label={t("Loading the evaluation")}>
        {(found) => (
          <>
            <Panel>
              <BatchProgress batch={found} of="row" />
            </Panel>
            {isEnded(found) ? <Outcome batch={found} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** The same rows, to be asked in another way. */
function Again({ batch }: { batch: BatchObject }): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const draft = useEvaluationDraft()
  const sheet = useResults(batch).data?.sheet
  if (!sheet) return null
  const again = ({ name, ...rest }: Sheet): void => {
    draft.change({ file: { name, rows: rest }, plan: planOfSheet({ name, ...rest }), error: null })
    void navigate({ to: "/o/$orgId/evaluate", params: { orgId } })
  }
  return (
    <Button icon="turn" onClick={() => again(sheet)}>
      {t("Evaluate again")}
    </Button>
  )
}

export const goneSentence = t(
  "The files of this evaluation have expired or were deleted: it cannot be shown any more.",
)

function Outcome({ batch }: { batch: BatchObject }): ReactNode {
  return (
    <Loaded query={useResults(batch)} label={t("Loading the results")}>
      {(results) => (
        <>
          <Judged results={results} />
          <Members batch={batch} results={results} />
        </>
      )}
    </Loaded>
  )
}

/** What the run came to: the answers' own cost and time, as each line of the results says. */
function Took({ lines }: { lines: readonly ResultLine[] }): ReactNode {
  const took = lines.flatMap((line) => line.took ?? [])
  if (took.length === 0) return null
  const usd = took.reduce((sum, { costUsd }) => sum + costUsd, 0)
  const timeMs = took.reduce((sum, { latencyMs }) => sum + latencyMs, 0)
  return (
    <p aria-label={t("Cost and time")} role="note" className="number text-soft text-xs">
      {t("It cost {usd} and took {time} of answering: {usdOf1000} for 1,000 rows, {timeOfRow} a row.", {
        usd: smallDollars(usd),
        time: milliseconds(timeMs),
        usdOf1000: smallDollars((1000 * usd) / took.length),
        timeOfRow: milliseconds(timeMs / took.length),
      })}
    </p>
  )
}

function Judged({ results }: { results: BatchResults }): ReactNode {
  const { sheet, lines, missing } = results
  const judged = useMemo(() => sheet && judgeRows(sheet, lines), [sheet, lines])
  const failed = lines.filter(({ error }) => error !== null).length
  if (missing || !judged) return <Notice tone="warn">{goneSentence}</Notice>
  return (
    <>
      {failed > 0 ? (
        <Notice tone="bad">
          {failed === lines.length
            ? t("No row was answered, so there is nothing to measure. Remove the cause, then evaluate again.")
            : tn(failed, "{count} row failed.", "{count} rows failed.")}
          <RowErrorList errors={rowErrors(lines)} />
        </Notice>
      ) : null}
      {judged.unknown > 0 ? (
        <Notice tone="warn">
          {tn(
            judged.unknown,
            "{count} row has a label that is no answer to the question, and is left out.",
            "{count} rows have a label that is no answer to the question, and are left out.",
          )}
        </Notice>
      ) : null}
      <Took lines={lines} />
      {sheet && judged.rows.length > 0 ? (
        <Results sheet={sheet} rows={judged.rows} isPredicate={judged.isPredicate} />
      ) : null}
    </>
  )
}
