/** Two evaluations side by side: their figures, and the rows on which their answers differ. */
import { Link, getRouteApi } from "@tanstack/react-router"
import { type ReactNode, useMemo, useState } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { answerOf, confidenceOf, evaluate } from "../../../src/scoring/evaluation.ts"
import { batchName, isEnded, useBatch, useResults } from "../batches/batch-query.ts"
import { Button } from "../parts/button.tsx"
import { Segments } from "../parts/field.tsx"
import { count, decimal, percent, probability } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { measureWords } from "../parts/measure-words.ts"
import { Empty, Loaded, Loading, Notice, Page, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import { goneSentence } from "./evaluation-page.tsx"
import { type Evaluated, differencesOf, isMoreThanChance } from "./difference.ts"
import { type JudgedRow, type JudgedRows, type RowPair, isRight, judgeRows, pairRows } from "./judged.ts"
import { t, tn } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/evaluate/compare")

export function ComparePage(): ReactNode {
  const { a, b } = route.useSearch()
  const [first, second] = [useBatch(a), useBatch(b)]
  return (
    <Page
      title={t("Compare evaluations")}
      about={t("The same rows, asked in two ways: A is the older evaluation, B the newer.")}
    >
      <Loaded query={first} label={t("Loading the first evaluation")}>
        {(one) => (
          <Loaded query={second} label={t("Loading the second evaluation")}>
            {(other) => <Both a={one} b={other} />}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

/** Undefined while it loads; null where it cannot be shown. */
function useJudged(batch: BatchObject): JudgedRows | null | undefined {
  const { data, error } = useResults(batch)
  return useMemo(() => {
    if (error) return null
    if (!data) return undefined
    return data.missing || !data.sheet ? null : judgeRows(data.sheet, data.lines)
  }, [data, error])
}

function Both({ a, b }: { a: BatchObject; b: BatchObject }): ReactNode {
  const [first, second] = [useJudged(a), useJudged(b)]
  if (!isEnded(a) || !isEnded(b))
    return <Notice tone="info">{t("One of them still runs. Come back when it is done.")}</Notice>
  if (first === null || second === null) return <Notice tone="warn">{goneSentence}</Notice>
  if (!first || !second) return <Loading label={t("Loading the answers")} />
  const pairs = pairRows(first.rows, second.rows)
  return (
    <>
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
        <About letter="A" batch={a} />
        <About letter="B" batch={b} />
      </div>
      {pairs.length === 0 ? (
        <div className="panel">
          <Empty icon="split" title={t("They have no rows in common")}>
            {t("Evaluations are compared on rows with the same text.")}
          </Empty>
        </div>
      ) : (
        <>
          <Measures pairs={pairs} />
          <Differences pairs={pairs} />
        </>
      )}
    </>
  )
}

function About({ letter, batch }: { letter: string; batch: BatchObject }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <div className="panel flex gap-3 px-4 py-3">
      <span
        aria-hidden="true"
        className="bg-accent-wash text-accent grid size-8 shrink-0 place-items-center rounded-full font-semibold"
      >
        {letter}
      </span>
      <div className="min-w-0 text-sm wrap-anywhere">
        <Link
          to="/o/$orgId/evaluate/$batchId"
          params={{ orgId, batchId: batch.id }}
          className="text-accent font-medium hover:underline"
        >
          {batchName(batch)}
        </Link>
        <p className="font-mono text-xs">{batch.metadata?.["model"]}</p>
        <p className="text-soft line-clamp-2 text-xs">{batch.metadata?.["question"]}</p>
      </div>
    </div>
  )
}

const measures: readonly {
  readonly name: string
  readonly of: (found: Evaluated) => number
  readonly show: (value: number) => string
  /** Its differences are points of a hundred. */
  readonly inPoints?: true
  readonly isBetterHigh: boolean
  readonly about: string
}[] = [
  {
    name: t("Accuracy"),
    about: measureWords.accuracy,
    of: ({ accuracy }) => accuracy,
    show: percent,
    inPoints: true,
    isBetterHigh: true,
  },
  {
    name: t("Macro F1"),
    about: measureWords.macroF1,
    of: ({ macroF1 }) => macroF1,
    show: (value) => decimal(value, 3),
    isBetterHigh: true,
  },
  {
    name: t("Brier score"),
    about: measureWords.brier,
    of: ({ brier }) => brier,
    show: (value) => decimal(value, 3),
    isBetterHigh: false,
  },
  {
    name: t("Calibration error"),
    about: measureWords.calibrationError,
    of: ({ calibrationError }) => calibrationError,
    show: percent,
    inPoints: true,
    isBetterHigh: false,
  },
  {
    name: t("Log loss"),
    about: measureWords.logLoss,
    of: ({ logLoss }) => logLoss,
    show: (value) => decimal(value, 3),
    isBetterHigh: false,
  },
]

function Measures({ pairs }: { pairs: readonly RowPair[] }): ReactNode {
  const [a, b] = useMemo(
    () => [evaluate(pairs.map((pair) => pair.a)), evaluate(pairs.map((pair) => pair.b))],
    [pairs],
  )
  const differences = useMemo(
    () =>
      differencesOf(
        pairs,
        measures.map(({ of }) => of),
      ),
    [pairs],
  )
  const rows = measures.flatMap(({ name, about, of, show, inPoints, isBetterHigh }, at) => {
    const difference = differences[at]
    if (!difference) return []
    const { value, low, high } = difference
    const isMore = isMoreThanChance(difference)
    const size = (shift: number): string =>
      `${shift < 0 ? "−" : "+"}${decimal((inPoints ? 100 : 1) * Math.abs(shift), inPoints ? 1 : 3)}`
    const shift = inPoints ? t("{size} points", { size: size(value) }) : size(value)
    const range = Number.isFinite(low) ? { low: size(low), high: size(high) } : null
    return [
      {
        name,
        about,
        a: show(of(a)),
        b: show(of(b)),
        shift: value === 0 ? t("same") : shift,
        rest: value === 0 ? "" : chanceWords(isMore, range, pairs.length),
        tone: isMore ? (value > 0 === isBetterHigh ? "text-accent" : "text-bad") : "text-soft",
      },
    ]
  })
  return (
    <section aria-label={t("Figures")} className="flex flex-col gap-2">
      <Table
        label={t("Figures")}
        rows={rows}
        rowKey={({ name }) => name}
        columns={[
          {
            name: t("Measure"),
            long: true,
            cell: ({ name, about }) => (
              <>
                <span className="font-medium">{name}</span>
                <span className="text-soft block text-xs">{about}</span>
              </>
            ),
          },
          { name: "A", align: "right", cell: (row) => <span className="number">{row.a}</span> },
          { name: "B", align: "right", cell: (row) => <span className="number">{row.b}</span> },
          {
            name: t("From A to B"),
            align: "right",
            cell: ({ shift, rest, tone }) => (
              <span className="number">
                <span className={`font-medium ${tone}`}>{shift}</span>
                <span className="text-soft text-xs">{rest}</span>
              </span>
            ),
          },
        ]}
      />
      <p className="text-soft text-xs">
        {tn(
          pairs.length,
          "Over the {count} row that both answered. The range has the true difference in 95 of 100 such comparisons. Green is surely better, red surely worse.",
          "Over the {count} rows that both answered. The range has the true difference in 95 of 100 such comparisons. Green is surely better, red surely worse.",
        )}
      </p>
    </section>
  )
}

/** Reads on after the difference. */
function chanceWords(isMore: boolean, range: { low: string; high: string } | null, rows: number): string {
  if (range === null)
    return isMore
      ? t(": more than chance")
      : tn(rows, ": not more than chance on {count} row", ": not more than chance on {count} rows")
  return isMore
    ? t(", between {low} and {high}: more than chance", range)
    : tn(
        rows,
        ", between {low} and {high}: not more than chance on {count} row",
        ", between {low} and {high}: not more than chance on {count} rows",
        range,
      )
}

const kinds = {
  all: { label: t("All"), holds: () => true },
  a: { label: t("Only A is right"), holds: ({ a, b }: RowPair) => isRight(a) && !isRight(b) },
  b: { label: t("Only B is right"), holds: ({ a, b }: RowPair) => !isRight(a) && isRight(b) },
} as const
type Kind = keyof typeof kinds
const kindNames: readonly Kind[] = ["all", "a", "b"]
const pageRows = 20

function Differences({ pairs }: { pairs: readonly RowPair[] }): ReactNode {
  const [kind, setKind] = useState<Kind>("all")
  const [shown, setShown] = useState(pageRows)
  const differing = pairs.filter(({ a, b }) => answerOf(a) !== answerOf(b))
  const rows = differing.filter(kinds[kind].holds)
  const options = kindNames.map((value) => ({
    value,
    label: `${kinds[value].label} (${count(differing.filter(kinds[value].holds).length)})`,
  }))
  return (
    <Panel
      title={t("Answers that differ ({differing} of {pairs})", {
        differing: count(differing.length),
        pairs: count(pairs.length),
      })}
    >
      {differing.length === 0 ? (
        <Empty icon="check" title={t("Every answer is the same")} />
      ) : (
        <div className="flex flex-col gap-3">
          <Segments label={t("Which")} value={kind} options={options} onChange={setKind} />
          <ol className="divide-line divide-y" aria-label={t("Answers that differ")}>
            {rows.slice(0, shown).map(({ a, b }) => (
              <li key={a.index} className="flex flex-col gap-1 py-2.5 text-sm">
                <p dir="auto" className="line-clamp-3 wrap-anywhere">
                  {a.evidence}
                </p>
                <p className="number flex flex-wrap gap-x-4 text-xs">
                  <Said letter="A" row={a} />
                  <Said letter="B" row={b} />
                  <span className="text-soft">{t("Label: {gold}", { gold: a.gold })}</span>
                </p>
              </li>
            ))}
          </ol>
          {rows.length > shown ? (
            <Button className="self-center" onClick={() => setShown(shown + pageRows)}>
              {t("Show more")}
            </Button>
          ) : null}
        </div>
      )}
    </Panel>
  )
}

function Said({ letter, row }: { letter: string; row: JudgedRow }): ReactNode {
  return (
    <span className={`inline-flex items-center gap-1 ${isRight(row) ? "text-accent" : "text-bad"}`}>
      <Icon name={isRight(row) ? "check" : "cross"} className="size-3.5" />
      {letter}: {answerOf(row)} {probability(confidenceOf(row))}
    </span>
  )
}
