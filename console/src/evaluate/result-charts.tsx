/** The two drawings of an evaluation: which classes are taken for which, and whether stated confidence is earned. */
import type { ReactNode } from "react"
import type { ReliabilityBin } from "../../../src/scoring/evaluation.ts"
import { count, percent } from "../parts/format.ts"
import { t, tn } from "../i18n/translate.ts"

const classesShownMax = 20

export function Confusion({
  classes,
  confusion,
  caption = t("Rows: what it is. Columns: what was answered."),
}: {
  caption?: string
  classes: readonly string[]
  confusion: ReadonlyMap<string, ReadonlyMap<string, number>>
}): ReactNode {
  const shown = classes.slice(0, classesShownMax)
  const most = Math.max(1, ...[...confusion.values()].flatMap((row) => [...row.values()]))
  return (
    <div className="overflow-x-auto" tabIndex={0} role="group" aria-label={t("Confusion matrix")}>
      <table className="number w-full border-separate border-spacing-0.5 text-xs">
        <caption className="text-soft mb-1 text-start">{caption}</caption>
        <thead>
          <tr>
            <td />
            {shown.map((name) => (
              <th key={name} scope="col" className="max-w-24 truncate px-1 py-1 font-medium" title={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((gold) => (
            <tr key={gold}>
              <th scope="row" className="max-w-32 truncate pe-2 text-start font-medium" title={gold}>
                {gold}
              </th>
              {shown.map((answered) => {
                const many = confusion.get(gold)?.get(answered) ?? 0
                return (
                  <td
                    key={answered}
                    className="relative h-9 min-w-10 rounded-md text-center"
                    title={`${gold}, ${answered}: ${many}`}
                  >
                    <span
                      aria-hidden="true"
                      className={`absolute inset-0 rounded-md ${many === 0 ? "bg-sunken" : gold === answered ? "bg-bar" : "bg-bad"}`}
                      style={{ opacity: many === 0 ? 1 : 0.12 + 0.3 * (many / most) }}
                    />
                    <span className="relative">{count(many)}</span>
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {classes.length > classesShownMax ? (
        <p className="text-soft mt-1 text-xs">
          {t("The first {classesShownMax} classes are shown.", { classesShownMax })}
        </p>
      ) : null}
    </div>
  )
}

const size = 220
const edge = 42

export function Reliability({ bins }: { bins: readonly ReliabilityBin[] }): ReactNode {
  const filled = bins.filter((bin) => bin.count > 0)
  const most = Math.max(1, ...filled.map((bin) => bin.count))
  const x = (share: number): number => edge + share * (size - edge - 6)
  const y = (share: number): number => size - edge - share * (size - edge - 6)
  return (
    <figure className="flex flex-col items-center gap-2">
      <svg
        viewBox={`0 0 ${size} ${size}`}
        className="w-full max-w-60 overflow-visible"
        role="img"
        aria-label={t("Reliability diagram: {filled}", {
          filled: filled
            .map((bin) =>
              t("stated {meanConfidence}, right {accuracy}", {
                meanConfidence: percent(bin.meanConfidence),
                accuracy: percent(bin.accuracy),
              }),
            )
            .join("; "),
        })}
      >
        <rect x={x(0)} y={y(1)} width={x(1) - x(0)} height={y(0) - y(1)} className="fill-sunken" rx={4} />
        <line x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} className="stroke-strong" strokeDasharray="4 3" />
        {filled.map((bin) => (
          <circle
            key={bin.from}
            cx={x(bin.meanConfidence)}
            cy={y(bin.accuracy)}
            r={3 + 6 * Math.sqrt(bin.count / most)}
            className="fill-bar stroke-panel"
          >
            <title>
              {tn(
                bin.count,
                "{count} row: stated {meanConfidence}, right {accuracy}",
                "{count} rows: stated {meanConfidence}, right {accuracy}",
                { meanConfidence: percent(bin.meanConfidence), accuracy: percent(bin.accuracy) },
              )}
            </title>
          </circle>
        ))}
        {[0, 0.5, 1].map((tick) => (
          <g key={tick} className="fill-soft text-[9px]">
            <text x={x(tick)} y={size - edge + 12} textAnchor="middle">
              {`${100 * tick}%`}
            </text>
            <text x={edge - 5} y={y(tick) + 3} textAnchor="end">
              {`${100 * tick}%`}
            </text>
          </g>
        ))}
        <text x={x(0.5)} y={size - 5} textAnchor="middle" className="fill-soft text-[9px]">
          {t("stated probability")}
        </text>
        <text
          x={9}
          y={y(0.5)}
          textAnchor="middle"
          transform={`rotate(-90 9 ${y(0.5)})`}
          className="fill-soft text-[9px]"
        >
          {t("how often right")}
        </text>
      </svg>
      <figcaption className="text-soft text-xs">
        {t("On the line, the model is as sure as it is right. Larger dots hold more rows.")}
      </figcaption>
    </figure>
  )
}
