/** What an evaluation found: figures, confusion, calibration, a threshold to try, and the worst mistakes first. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useMemo, useState } from "react"
import { answerOf, confidenceOf, evaluate } from "../../../src/scoring/evaluation.ts"
import { wilson } from "../../../src/scoring/teach/figures.ts"
import { SequenceLink } from "../analytics/sequence-link.tsx"
import type { Sheet } from "../batches/sheet.ts"
import { Button } from "../parts/button.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, decimal, percent } from "../parts/format.ts"
import { measureWords } from "../parts/measure-words.ts"
import { Empty, Notice, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { saveCsv } from "../tables/save-file.ts"
import { ByLanguage } from "./by-language.tsx"
import { type JudgedRow, atThreshold } from "./judged.ts"
import { Confusion, Reliability } from "./result-charts.tsx"
import { SaveExamples, type SavedExamples } from "./save-examples.tsx"
import { t, tn } from "../i18n/translate.ts"
import { T } from "../i18n/sentence.tsx"

const mistakesShownMax = 25

export function Results({
  sheet,
  rows,
  isPredicate,
}: {
  sheet: Sheet
  rows: readonly JudgedRow[]
  isPredicate: boolean
}): ReactNode {
  const found = useMemo(() => evaluate(rows), [rows])
  const classes = rows[0]?.classes ?? []
  return (
    <section aria-label={t("Results")} className="flex flex-col gap-4">
      <dl className="number grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-3">
        <Figure
          framed
          name={t("Accuracy")}
          value={percent(found.accuracy)}
          about={`${measureWords.accuracy} ${expectedWords(rows)}`}
        />
        <Figure
          framed
          name={t("Majority guess")}
          value={percent(found.majority)}
          about={measureWords.majority}
        />
        <Figure framed name={t("Macro F1")} value={decimal(found.macroF1, 3)} about={measureWords.macroF1} />
        <Figure framed name={t("Brier score")} value={decimal(found.brier, 3)} about={measureWords.brier} />
        <Figure
          framed
          name={t("Calibration error")}
          value={percent(found.calibrationError)}
          about={measureWords.calibrationError}
        />
        <Figure framed name={t("Log loss")} value={decimal(found.logLoss, 3)} about={measureWords.logLoss} />
      </dl>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <Panel title={t("Confusion")}>
          <Confusion classes={classes} confusion={found.confusion} />
        </Panel>
        <Panel title={t("Reliability")}>
          <Reliability bins={found.reliability} />
        </Panel>
      </div>
      <ByLanguage rows={rows} />
      <Threshold rows={rows} predicate={isPredicate} />
      <Mistakes
        sheet={sheet}
        rows={rows}
        onExport={() => saveCsv("umpire-evaluation.csv", exportLines(rows))}
      />
    </section>
  )
}

/** What so many rows can say of rows like them. */
function expectedWords(rows: readonly JudgedRow[]): string {
  const { low, high } = wilson(Float64Array.from(rows, (row) => Number(answerOf(row) === row.gold)))
  return t("On rows like these expect {low} to {high}.", { low: percent(low), high: percent(high) })
}

function Threshold({ rows, predicate }: { rows: readonly JudgedRow[]; predicate: boolean }): ReactNode {
  const [threshold, setThreshold] = useState(0.5)
  const { precision, recall, accepted } = atThreshold(rows, predicate ? "yes" : null, threshold)
  return (
    <Panel title={t("Threshold")}>
      <div className="flex flex-col gap-3">
        <label className="flex items-center gap-3 text-sm">
          <span className="shrink-0">{predicate ? t("Say yes from") : t("Trust answers from")}</span>
          <input
            type="range"
            min={0}
            max={1}
            step={0.01}
            value={threshold}
            onChange={(event) => setThreshold(Number(event.target.value))}
            className="accent-accent min-w-0 flex-1"
          />
          <output className="number w-12 text-end font-medium">{percent(threshold)}</output>
        </label>
        <dl className="number flex flex-wrap gap-x-8 gap-y-2 text-sm">
          <Inline
            name={t("Precision")}
            value={precision === null ? t("none to judge") : percent(precision)}
          />
          <Inline name={t("Recall")} value={percent(recall)} />
          <Inline name={predicate ? t("Answered yes") : t("Trusted")} value={percent(accepted)} />
        </dl>
        <p className="text-soft text-xs">
          {predicate
            ? t(
                "Precision: of the rows answered yes, how many are yes. Recall: of the rows that are yes, how many are found.",
              )
            : t(
                "Precision: of the answers trusted, how many are right. Recall: of all rows, how many are trusted and right.",
              )}
        </p>
      </div>
    </Panel>
  )
}

function Inline({ name, value }: { name: string; value: string }): ReactNode {
  return (
    <div className="flex items-baseline gap-2">
      <dt className="label">{name}</dt>
      <dd className="text-base font-semibold">{value}</dd>
    </div>
  )
}

function savedSentence({ added, known, leftOut }: SavedExamples): string {
  return `${savedWords(added, count(known), count(leftOut))} ${t("Teach the set to learn from them.")}`
}

function savedWords(added: number, known: string, leftOut: string): string {
  if (known === "0" && leftOut === "0") return tn(added, "{count} example saved.", "{count} examples saved.")
  if (leftOut === "0")
    return tn(
      added,
      "{count} example saved, {known} known already.",
      "{count} examples saved, {known} known already.",
      { known },
    )
  if (known === "0")
    return tn(
      added,
      "{count} example saved, {leftOut} left out, because they contradict a known example or are too long.",
      "{count} examples saved, {leftOut} left out, because they contradict a known example or are too long.",
      { leftOut },
    )
  return tn(
    added,
    "{count} example saved, {known} known already, {leftOut} left out, because they contradict a known example or are too long.",
    "{count} examples saved, {known} known already, {leftOut} left out, because they contradict a known example or are too long.",
    { known, leftOut },
  )
}

/** The surer the model was of a wrong answer, the earlier it stands. */
function Mistakes({
  sheet,
  rows,
  onExport,
}: {
  sheet: Sheet
  rows: readonly JudgedRow[]
  onExport: () => void
}): ReactNode {
  const wrong = rows
    .filter((row) => answerOf(row) !== row.gold)
    .toSorted((a, b) => confidenceOf(b) - confidenceOf(a))
  const { id: orgId } = useOrganization()
  const [isSaving, setSaving] = useState(false)
  const [saved, setSaved] = useState<SavedExamples | null>(null)
  return (
    <Panel
      title={t("Mistakes ({wrong})", { wrong: count(wrong.length) })}
      actions={
        <div className="flex flex-wrap gap-2">
          <Button small icon="plus" onClick={() => setSaving(true)}>
            {t("Teach a set from these rows")}
          </Button>
          <Button small icon="download" onClick={onExport}>
            {t("Export all rows")}
          </Button>
        </div>
      }
    >
      {isSaving ? (
        <SaveExamples sheet={sheet} rows={rows} onSaved={setSaved} onClose={() => setSaving(false)} />
      ) : null}
      {saved ? (
        <Notice
          tone="good"
          action={
            <Link
              to="/o/$orgId/sets/$setName"
              params={{ orgId, setName: saved.setName }}
              search={{ tab: "teach" }}
              className="underline underline-offset-2"
            >
              {t("Teach {setName}", { setName: saved.setName })}
            </Link>
          }
        >
          {savedSentence(saved)}
        </Notice>
      ) : null}
      {wrong.length === 0 ? (
        <Empty icon="check" title={t("Every row is right")} />
      ) : (
        <ol className="divide-line divide-y" aria-label={t("Mistakes, worst first")}>
          {wrong.slice(0, mistakesShownMax).map((row) => (
            <li key={row.index} className="flex flex-col gap-1 py-2.5 text-sm">
              <p className="line-clamp-3 wrap-anywhere">{row.evidence}</p>
              <p className="number text-xs">
                <T
                  text="<bad>said {answer}</bad><soft> with {confidence}, is </soft><good>{label}</good><soft2> · row {row}</soft2>"
                  answer={answerOf(row)}
                  confidence={percent(confidenceOf(row))}
                  label={row.gold}
                  row={row.index + 1}
                  bad={(children) => <span className="text-bad">{children}</span>}
                  soft={(children) => <span className="text-soft">{children}</span>}
                  soft2={(children) => <span className="text-soft">{children}</span>}
                  good={(children) => <span className="text-accent">{children}</span>}
                />
                {row.sequenceId ? (
                  <>
                    <span className="text-soft"> · </span>
                    <SequenceLink id={row.sequenceId}>{t("request")}</SequenceLink>
                  </>
                ) : null}
              </p>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  )
}

function exportLines(rows: readonly JudgedRow[]): string[][] {
  const classes = rows[0]?.classes ?? []
  const header = ["row", "text", "label", "answer", "right", ...classes.map((name) => `p(${name})`)]
  const lines = rows
    .toSorted((a, b) => a.index - b.index)
    .map((row) => [
      String(row.index + 1),
      row.evidence,
      row.gold,
      answerOf(row),
      String(answerOf(row) === row.gold),
      ...row.probabilities.map(String),
    ])
  return [header, ...lines]
}
