/** What a threshold keeps: how many rows are answered, and how often those answers are wrong. */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { Artefact } from "../../../src/contract/question-sets/jobs.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { Button } from "../parts/button.tsx"
import { Figure } from "../parts/figure.tsx"
import { Segments } from "../parts/field.tsx"
import { percent, plural } from "../parts/format.ts"
import { Empty, Loaded, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import type { SetAddress } from "./set-query.ts"
import { artefactQuery } from "./taught-question.tsx"
import type { SetEditor } from "./use-set-editor.ts"

export function PromiseTab({
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
        <Empty icon="target" title="Nothing to promise yet">
          Teach the set first: the rows that are held out show how often answers above a threshold are right.
        </Empty>
      </div>
    )
  return (
    <div className="flex flex-col gap-4">
      {taught.length > 1 ? (
        <Segments
          label="Question"
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
    <Panel title={`Threshold of ${name}`}>
      <Loaded query={query} what="the curve">
        {({ curve, rows }) =>
          curve.length === 0 ? (
            <p className="text-soft text-sm">No rows are held out, so nothing can be measured.</p>
          ) : (
            <Explore curve={curve} heldOut={rows.held_out} saved={threshold} onTake={onTake} />
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
  heldOut,
  saved,
  onTake,
}: {
  curve: readonly Point[]
  heldOut: number
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
          <span className="shrink-0">Threshold</span>
          <input
            type="range"
            min={0}
            max={1}
            step={0.01}
            value={threshold}
            onChange={(event) => setThreshold(Number(event.target.value))}
            className="accent-accent min-w-0 flex-1"
          />
          <output className="number w-14 text-right font-medium">{percent(threshold)}</output>
        </label>
        <dl className="number grid grid-cols-2 gap-3">
          <Figure framed name="Answered" value={percent(point?.coverage ?? 0)} />
          <Figure framed name="Abstained" value={percent(1 - (point?.coverage ?? 0))} />
          <Figure framed name="Wrong answers" value={point ? percent(point.risk) : "–"} />
          <Figure framed name="At most (95 % sure)" value={point ? percent(point.risk_high) : "–"} />
        </dl>
        <p className="text-soft text-xs">
          Measured on {plural(heldOut, "held-out row")}.{" "}
          {saved === null
            ? "The latest version has no threshold for this question."
            : `The latest version uses ${percent(saved)}.`}{" "}
          A threshold chosen by looking at this curve proves nothing by itself: give a target accuracy when
          teaching for one that does.
        </p>
        <Button className="self-start" disabled={threshold === saved} onClick={() => onTake(threshold)}>
          Use {percent(threshold)} as threshold
        </Button>
      </div>
    </div>
  )
}

const width = 420
const height = 240
const edge = 50
const steps = [0, 0.5, 1]
const scaleMargin = 0.05

function RiskCoverage({ curve, point }: { curve: readonly Point[]; point: Point | null }): ReactNode {
  const byCoverage = curve.toSorted((a, b) => a.coverage - b.coverage)
  // Errors are often few: the scale ends soon above them, and the bound is drawn where it is below that.
  const most = Math.max(byCoverage.at(-1)?.risk_high ?? 0, ...byCoverage.map(({ risk }) => risk))
  const top = Math.min(1, Math.ceil((most + scaleMargin) * 10) / 10)
  const x = (coverage: number): number => edge + coverage * (width - edge - 8)
  const y = (risk: number): number => height - edge - (Math.min(risk, top) / top) * (height - edge - 8)
  const line = (read: (one: Point) => number): string =>
    byCoverage
      .filter((one) => read(one) <= top)
      .map((one) => `${x(one.coverage).toFixed(1)},${y(read(one)).toFixed(1)}`)
      .join(" ")
  return (
    <figure className="flex flex-col gap-2">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        className="w-full max-w-xl"
        role="img"
        aria-label={`Risk against coverage: with every row answered ${percent(byCoverage.at(-1)?.risk ?? 0)} are wrong`}
      >
        <rect x={x(0)} y={y(top)} width={x(1) - x(0)} height={y(0) - y(top)} className="fill-sunken" rx={4} />
        <polyline
          points={line((one) => one.risk_high)}
          className="stroke-soft fill-none"
          strokeDasharray="4 3"
        />
        <polyline points={line((one) => one.risk)} className="stroke-bar fill-none" strokeWidth={2} />
        {point ? (
          <>
            <line
              x1={x(point.coverage)}
              x2={x(point.coverage)}
              y1={y(0)}
              y2={y(top)}
              className="stroke-strong"
            />
            <circle cx={x(point.coverage)} cy={y(point.risk)} r={5} className="fill-bar stroke-panel" />
          </>
        ) : null}
        <g className="fill-soft text-[11px]">
          {steps.map((step) => (
            <text key={step} x={x(step)} y={height - edge + 14} textAnchor={step === 1 ? "end" : "middle"}>
              {step * 100} %
            </text>
          ))}
          {steps.map((step) => (
            <text key={step} x={edge - 6} y={y(step * top) + 3} textAnchor="end">
              {(step * top * 100).toFixed(0)} %
            </text>
          ))}
          <text x={x(0.5)} y={height - 6} textAnchor="middle">
            rows that are answered
          </text>
          <text x={10} y={y(top / 2)} textAnchor="middle" transform={`rotate(-90 10 ${y(top / 2)})`}>
            wrong answers
          </text>
        </g>
      </svg>
      <figcaption className="text-soft text-xs">
        Line: how many answers are wrong when only the surest rows are answered. Dashed: the bound that holds
        with 95 % confidence.
      </figcaption>
    </figure>
  )
}
