/** What a threshold keeps: how many rows are answered, and how often those answers are wrong. */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { Artefact } from "../../../src/contract/question-sets/jobs.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { Button } from "../parts/button.tsx"
import { Figure } from "../parts/figure.tsx"
import { Segments } from "../parts/field.tsx"
import { percent } from "../parts/format.ts"
import { Empty, Loaded, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import type { SetAddress } from "./set-query.ts"
import { TabLink } from "./tab-link.tsx"
import { artefactQuery } from "./taught-question.tsx"
import type { SetEditor } from "./use-set-editor.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

export function ThresholdTab({
  set,
  at,
  editor,
}: {
  set: QuestionSet
  at: SetAddress
  editor: SetEditor
}): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const taught = set.questions.flatMap(({ name, threshold, artefact }) =>
    artefact ? [{ name, threshold, hash: artefact }] : [],
  )
  const [name, setName] = useState<string | null>(null)
  const shown = taught.find((one) => one.name === name) ?? taught[0]
  /** Written into the editor, where it is seen and saved as a version. */
  const take = (threshold: number): void => {
    const row = editor.current.draft.questions.find((one) => one.name === shown?.name)
    if (!row) return
    editor.changeSettings(row.id, { ...editor.settingsOf(row.id), threshold })
    void navigate({ to: "/o/$orgId/sets/$setName", params: { orgId, setName: set.name }, search: {} })
  }
  if (!shown)
    return (
      <div className="panel">
        <Empty icon="target" title={t("Nothing measured yet")}>
          <T
            text="<tabLink>Teach</tabLink> the set first: each labelled row is judged without having been seen, which shows how often answers above a threshold are right."
            tabLink={(children) => (
              <TabLink set={set} tab="teach">
                {children}
              </TabLink>
            )}
          />
        </Empty>
      </div>
    )
  return (
    <div className="flex flex-col gap-4">
      {taught.length > 1 ? (
        <Segments
          label={t("Question")}
          value={shown.name}
          options={taught.map((one) => ({ value: one.name, label: one.name }))}
          onChange={setName}
        />
      ) : null}
      <Curve key={shown.hash} at={at} {...shown} onTake={take} />
    </div>
  )
}

function Curve({
  at,
  name,
  hash,
  threshold,
  onTake,
}: {
  at: SetAddress
  name: string
  hash: string
  threshold: number | null
  onTake: (threshold: number) => void
}): ReactNode {
  const query = useQuery(artefactQuery(at, hash))
  return (
    <Panel title={t("Threshold of {name}", { name })}>
      <Loaded query={query} label={t("Loading the curve")}>
        {({ curve, rows }) =>
          curve.length === 0 ? (
            <p className="text-soft text-sm">{t("Nothing was measured.")}</p>
          ) : (
            <Explore curve={curve} judged={rows.held_out || rows.train} saved={threshold} onTake={onTake} />
          )
        }
      </Loaded>
    </Panel>
  )
}

type Point = Artefact["curve"][number]

/** The rows that are at least as sure as the threshold; null where none is. */
function pointAt(curve: readonly Point[], threshold: number): Point | null {
  return (
    curve.filter((point) => point.threshold >= threshold).toSorted((a, b) => a.threshold - b.threshold)[0] ??
    null
  )
}

function Explore({
  curve,
  judged,
  saved,
  onTake,
}: {
  curve: readonly Point[]
  judged: number
  saved: number | null
  onTake: (threshold: number) => void
}): ReactNode {
  const [threshold, setThreshold] = useState(saved ?? 0.5)
  const point = pointAt(curve, threshold)
  return (
    <div className="grid gap-6 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
      <RiskCoverage curve={curve} point={point} />
      <div className="flex flex-col gap-4">
        <label className="flex items-center gap-3 text-sm">
          <span className="shrink-0">{t("Threshold")}</span>
          <input
            type="range"
            min={0}
            max={1}
            step={0.01}
            value={threshold}
            onChange={(event) => setThreshold(Number(event.target.value))}
            className="accent-accent min-w-0 flex-1"
          />
          <output className="number w-14 text-end font-medium">{percent(threshold)}</output>
        </label>
        <dl className="number grid grid-cols-2 gap-3">
          <Figure framed name={t("Answered")} value={percent(point?.coverage ?? 0)} />
          <Figure framed name={t("Abstained")} value={percent(1 - (point?.coverage ?? 0))} />
          <Figure framed name={t("Wrong answers")} value={point ? percent(point.risk) : "–"} />
          <Figure framed name={t("Wrong, at most")} value={point ? percent(point.risk_high) : "–"} />
        </dl>
        <p className="text-soft text-xs">
          {tn(
            judged,
            "Measured on {count} row that it had not learned from; the bound holds with 95% confidence.",
            "Measured on {count} rows that it had not learned from; the bound holds with 95% confidence.",
          )}{" "}
          {saved === null
            ? t("The latest version has no threshold for this question.")
            : t("The latest version uses {saved}.", { saved: percent(saved) })}{" "}
          {t(
            "A threshold chosen by looking at this curve proves nothing by itself: give a target accuracy when teaching for one that does.",
          )}
        </p>
        <Button className="self-start" disabled={threshold === saved} onClick={() => onTake(threshold)}>
          {t("Use {threshold} as threshold", { threshold: percent(threshold) })}
        </Button>
      </div>
    </div>
  )
}

const steps = [0, 0.5, 1]
const scaleMargin = 0.05

const x = (coverage: number): number => coverage * 100

/** Drawn in percent of the plot, so that lines and labels keep their size at every width. */
function RiskCoverage({ curve, point }: { curve: readonly Point[]; point: Point | null }): ReactNode {
  const byCoverage = curve.toSorted((a, b) => a.coverage - b.coverage)
  // Errors are often few: the scale ends soon above them, and the bound is drawn where it is below that.
  const most = Math.max(byCoverage.at(-1)?.risk_high ?? 0, ...byCoverage.map(({ risk }) => risk))
  const top = Math.min(1, Math.ceil((most + scaleMargin) * 10) / 10)
  const y = (risk: number): number => 100 - (Math.min(risk, top) / top) * 100
  const line = (read: (one: Point) => number): string =>
    byCoverage
      .filter((one) => read(one) <= top)
      .map((one) => `${x(one.coverage).toFixed(2)},${y(read(one)).toFixed(2)}`)
      .join(" ")
  return (
    <figure className="flex min-w-0 flex-col gap-3">
      <div
        role="img"
        aria-label={t("Risk against coverage: with every row answered {risk} are wrong", {
          risk: percent(byCoverage.at(-1)?.risk ?? 0),
        })}
        className="number text-soft grid grid-cols-[auto_minmax(0,1fr)] gap-x-2 gap-y-1.5 text-xs"
      >
        <p className="col-span-2 mb-2">{t("Wrong answers")}</p>
        <div className="flex h-56 flex-col-reverse justify-between text-end">
          {steps.map((step) => (
            <span key={step} className="-my-2 leading-4">
              {(step * top * 100).toFixed(0)}%
            </span>
          ))}
        </div>
        <div className="bg-sunken relative h-56 rounded">
          <svg
            viewBox="0 0 100 100"
            preserveAspectRatio="none"
            className="absolute size-full overflow-visible"
          >
            <g className="fill-none">
              <polyline
                points={line((one) => one.risk_high)}
                className="stroke-soft"
                strokeDasharray="4 3"
                vectorEffect="non-scaling-stroke"
              />
              <polyline
                points={line((one) => one.risk)}
                className="stroke-bar"
                strokeWidth={2}
                vectorEffect="non-scaling-stroke"
              />
            </g>
          </svg>
          {point ? (
            <>
              <span className="bg-strong absolute inset-y-0 w-px" style={{ left: `${x(point.coverage)}%` }} />
              <span
                className="bg-bar border-panel absolute size-3 -translate-1/2 rounded-full border-2"
                style={{ left: `${x(point.coverage)}%`, top: `${y(point.risk)}%` }}
              />
            </>
          ) : null}
        </div>
        <div className="col-start-2 flex justify-between">
          {steps.map((step) => (
            <span key={step}>{step * 100}%</span>
          ))}
        </div>
        <p className="col-start-2 text-end">{t("Rows that are answered")}</p>
      </div>
      <figcaption className="text-soft text-xs">
        {t(
          "Line: how many answers are wrong when only the surest rows are answered. Dashed: the bound that holds with 95% confidence.",
        )}
      </figcaption>
    </figure>
  )
}
