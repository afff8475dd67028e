/** How often each answer was given, and how sure the model was of it. */
import type { ReactNode } from "react"
import { SmallBars } from "../charts/small-bars.tsx"
import { colorsOf } from "../charts/colors.ts"
import { count, percent } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { type ResultRow, questionNames } from "./results.ts"
import { t, tn } from "../i18n/translate.ts"

const answersShownMax = 12
const binCount = 10

export function AnswerCharts({
  rows,
  instructions,
}: {
  rows: readonly ResultRow[]
  /** By the name of the question. */
  instructions: ReadonlyMap<string, string>
}): ReactNode {
  return (
    <div className="grid grid-cols-1 gap-4 md:grid-cols-[repeat(auto-fit,minmax(20rem,1fr))]">
      {questionNames(rows).map((name) => (
        <QuestionChart key={name} name={name} about={instructions.get(name) ?? null} rows={rows} />
      ))}
    </div>
  )
}

function QuestionChart({
  name,
  about,
  rows,
}: {
  name: string
  about: string | null
  rows: readonly ResultRow[]
}): ReactNode {
  const given = rows.flatMap(({ answers }) => answers.filter((answer) => answer.name === name))
  const sure = given.flatMap(({ probability }) => (probability === null ? [] : [probability]))
  if (sure.length === 0) return null
  // Where a set abstains it gives no answer, as monitoring counts it.
  const groups = [...Map.groupBy(given, ({ verdict, answer }) => verdict ?? answer)]
    .map(([answer, { length }]) => ({ answer, many: length }))
    .toSorted((a, b) => b.many - a.many)
  const colors = colorsOf(groups.map(({ answer }) => answer))
  const most = groups[0]?.many ?? 1
  const mean = sure.reduce((sum, one) => sum + one, 0) / sure.length
  return (
    <Panel title={name}>
      <div className="flex flex-col gap-4">
        {about ? (
          <p dir="auto" className="text-soft line-clamp-2 text-sm wrap-anywhere">
            {about}
          </p>
        ) : null}
        <ol aria-label={t("Answers to {name}", { name })} className="number flex flex-col gap-1.5 text-sm">
          {groups.slice(0, answersShownMax).map(({ answer, many }) => (
            <li key={answer} className="grid grid-cols-[minmax(4rem,30%)_1fr_auto] items-center gap-2">
              <span className="truncate" title={answer}>
                {answer}
              </span>
              <span aria-hidden="true" className="bg-sunken h-4 overflow-hidden rounded-sm">
                <span
                  className="block h-full rounded-sm"
                  style={{ width: `${(many / most) * 100}%`, background: colors(answer) }}
                />
              </span>
              <span className="text-end text-xs whitespace-nowrap">
                {count(many)} <span className="text-soft">({percent(many / given.length)})</span>
              </span>
            </li>
          ))}
        </ol>
        {groups.length > answersShownMax ? (
          <p className="text-soft text-xs">
            {tn(groups.length - answersShownMax, "and {count} other answer", "and {count} other answers")}
          </p>
        ) : null}
        <SmallBars
          title={t("Probability of the answer")}
          summary={t("{mean} on average", { mean: percent(mean) })}
          bars={binsOf(sure)}
          colors={["var(--color-bar)"]}
          read={({ values: [many = 0] }) => tn(many, "{count} answer", "{count} answers")}
        />
      </div>
    </Panel>
  )
}

function binsOf(sure: readonly number[]): { label: string; values: readonly number[] }[] {
  const bins = Array.from({ length: binCount }, () => 0)
  for (const one of sure) {
    const bin = Math.min(binCount - 1, Math.floor(one * binCount))
    bins[bin] = (bins[bin] ?? 0) + 1
  }
  return bins.map((many, bin) => ({
    label: t("{low} to {high}%", { low: (bin * 100) / binCount, high: ((bin + 1) * 100) / binCount }),
    values: [many],
  }))
}
