/** A new batch: a table, what to ask of every row of it, and what that costs. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo } from "react"
import { sentenceOf, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Segments, SelectField } from "../parts/field.tsx"
import { Figure } from "../parts/figure.tsx"
import { FileDrop } from "../parts/file-drop.tsx"
import { count, smallDollars } from "../parts/format.ts"
import { Notice, Page, Panel } from "../parts/page.tsx"
import { type Draft, toDecisions, whatIsMissing } from "../playground/draft.ts"
import { keptDraft } from "../playground/keep.ts"
import { ModelSelect } from "../playground/model-select.tsx"
import { firstModel } from "../playground/models.ts"
import { modelsQuery, useBrowserStorage, useOrganization, useTabStorage } from "../session.ts"
import { RowPreview } from "../tables/row-preview.tsx"
import { type Rows, fileBytesMax, readRows } from "../tables/rows.ts"
import { guessEvidence } from "../tables/guess-columns.ts"
import { useHeld } from "../tables/use-held.ts"
import { type Asked, ownQuestions, questionName, questionsOfSet } from "./asked.ts"
import { batchesKey } from "./batch-query.ts"
import { type ChosenSet, noSet } from "./chosen-set.ts"
import { estimateBatch } from "./price.ts"
import { SetChoice, useChosenSet } from "./set-choice.tsx"
import { startBatch } from "./start-batch.ts"
import { askedRows } from "./table-lines.ts"
import { t, tn } from "../i18n/translate.ts"

type Source = "set" | "draft"

interface Planned {
  readonly file: { readonly name: string; readonly rows: Rows } | null
  /** Why the last file was refused. */
  readonly error: string | null
  readonly evidence: string
  readonly source: Source
  readonly chosen: ChosenSet
  /** Of the draft; empty: the draft's own. */
  readonly model: string
}

const nothing: Planned = { file: null, error: null, evidence: "", source: "set", chosen: noSet, model: "" }

const sources = [
  { value: "set", label: t("A question set") },
  { value: "draft", label: t("The playground’s questions") },
] as const satisfies readonly { value: Source; label: string }[]

export function NewBatchPage(): ReactNode {
  const [planned, plan] = useHeld("new batch", nothing)
  const { file, error } = planned
  const take = (name: string, bytes: Uint8Array): void => {
    try {
      const rows = readRows(bytes, name)
      plan({ file: { name, rows }, error: null, evidence: guessEvidence(rows, null) })
    } catch (failure) {
      plan({ error: sentenceOf(failure) })
    }
  }
  return (
    <Page
      title={t("New batch")}
      about={t(
        "Every row of the table becomes a request. They run on this server in the background; live requests go first.",
      )}
    >
      <FileDrop
        name={
          file
            ? tn(file.rows.rows.length, "{name}: {count} row", "{name}: {count} rows", { name: file.name })
            : null
        }
        disabled={false}
        prompt={t("Drop a CSV, TSV or JSONL file here.")}
        label={t("Table")}
        bytesMax={fileBytesMax}
        onFile={take}
        onError={(sentence) => plan({ error: sentence })}
      />
      {error ? <Notice tone="bad">{error}</Notice> : null}
      {file ? <Asking planned={planned} file={file} plan={plan} /> : null}
    </Page>
  )
}

/** The questions of the playground, of this tab or of the latest. */
function useKeptDraft(): Draft | null {
  const [tab, browser] = [useTabStorage(), useBrowserStorage()]
  return useMemo(() => keptDraft(tab) ?? keptDraft(browser), [tab, browser])
}

function Asking({
  planned,
  file,
  plan,
}: {
  planned: Planned
  file: NonNullable<Planned["file"]>
  plan: (change: Partial<Planned>) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const draft = useKeptDraft()
  const set = useChosenSet(planned.chosen)
  const { evidence, source } = planned
  const model = planned.model || draft?.model || firstModel(models, "decisions")
  // The evidence comes from the rows.
  const missing = draft ? whatIsMissing({ ...draft, api: "decisions", evidence: "-", model }) : null
  const asked: Asked | null =
    source === "set"
      ? set && questionsOfSet(set)
      : draft && !missing
        ? ownQuestions(model, toDecisions(draft, model).questions)
        : null
  return (
    <>
      <Panel title={t("What to ask")}>
        <div className="flex flex-col gap-4">
          <Segments
            label={t("Questions from")}
            value={source}
            options={sources}
            onChange={(value) => plan({ source: value })}
          />
          <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-4">
            <SelectField
              label={t("Column with the text")}
              value={evidence}
              options={file.rows.columns.map((value) => ({ value, label: value }))}
              onChange={(event) => plan({ evidence: event.target.value })}
            />
            {source === "set" ? (
              <SetChoice chosen={planned.chosen} onChange={(chosen) => plan({ chosen })} />
            ) : (
              <div className="flex flex-col gap-1">
                <span className="label">{t("Model")}</span>
                <ModelSelect
                  tall
                  label={t("Model")}
                  models={models}
                  value={model}
                  onChange={(value) => plan({ model: value })}
                />
              </div>
            )}
          </div>
          {source === "draft" && (!draft || missing) ? (
            <Notice tone="warn">
              {missing
                ? t("The playground’s draft cannot be asked: {missing}", { missing })
                : t("The playground has no draft.")}
            </Notice>
          ) : null}
          {asked ? <QuestionList asked={asked} /> : null}
          <RowPreview rows={file.rows} chosen={{ [evidence]: t("Text") }} />
        </div>
      </Panel>
      {asked ? <Price file={file} evidence={evidence} asked={asked} onStarted={() => plan(nothing)} /> : null}
    </>
  )
}

function QuestionList({ asked: { questions } }: { asked: Asked }): ReactNode {
  return (
    <ol aria-label={t("Questions")} className="divide-line border-line divide-y rounded-lg border text-sm">
      {questions.map((asked, index) => (
        <li key={index} className="flex flex-col gap-0.5 px-3 py-2">
          <span dir="auto" className="wrap-anywhere">
            {asked.instructions}
          </span>
          <span className="text-soft text-xs wrap-anywhere">
            <span className="font-mono">{questionName(asked, index)}</span>
            {asked.type === "predicate" ? `: ${t("yes or no")}` : null}
            {asked.type === "choice"
              ? `: ${asked.choices.map(({ value }) => String(value)).join(", ")}`
              : null}
            {asked.type === "score" ? `: ${asked.levels.map(({ label }) => label).join(" < ")}` : null}
          </span>
        </li>
      ))}
    </ol>
  )
}

function Price({
  file: { name, rows },
  evidence,
  asked,
  onStarted,
}: {
  file: NonNullable<Planned["file"]>
  evidence: string
  asked: Asked
  onStarted: () => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const navigate = useNavigate()
  const queries = useQueryClient()
  const texts = useMemo(
    () => askedRows({ rows, evidence, labelling: null }).map((index) => rows.rows[index]?.[evidence] ?? ""),
    [rows, evidence],
  )
  const { tokens, usd } = estimateBatch(texts, asked, models)
  const blank = rows.rows.length - texts.length
  const start = useWrite(
    async () => await startBatch(orgId, { name, rows, evidence, asked, labelling: null }),
    [batchesKey(orgId)],
    (batch) => {
      onStarted()
      queries.setQueryData([...batchesKey(orgId), "one", batch.id], batch)
      void navigate({ to: "/o/$orgId/batches/$batchId", params: { orgId, batchId: batch.id } })
    },
  )
  return (
    <Panel title={t("Price")}>
      <div className="flex flex-col gap-4">
        <dl className="number grid grid-cols-2 gap-3 sm:max-w-xl sm:grid-cols-3">
          <Figure name={t("Rows")} value={count(texts.length)} />
          <Figure name={t("Tokens, about")} value={count(tokens)} />
          <Figure name={t("Price, about")} value={usd === null ? t("unknown") : smallDollars(usd)} />
        </dl>
        <p className="text-soft text-xs">
          {t(
            "The tokens are estimated from the length of the texts; each row is charged by what it really takes.",
          )}
          {blank > 0
            ? ` ${tn(blank, "{count} row has no text and will not be asked.", "{count} rows have no text and will not be asked.")}`
            : ""}
        </p>
        <ErrorNotice error={start.error} />
        <Button
          kind="loud"
          icon="play"
          className="self-start"
          busy={start.isPending}
          disabled={texts.length === 0}
          onClick={() => start.mutate(undefined)}
        >
          {tn(texts.length, "Start with {count} row", "Start with {count} rows")}
        </Button>
      </div>
    </Panel>
  )
}
