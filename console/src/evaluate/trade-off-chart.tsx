/** Models as points: how often they are right, against what that takes. */
import type { ReactNode } from "react"
import { roundSteps } from "../charts/round-steps.ts"
import { percent } from "../parts/format.ts"
import { labelHeights } from "./label-heights.ts"

export interface TradeOff {
  /** Of the evaluation. */
  readonly id: string
  readonly name: string
  readonly rows: number
  readonly accuracy: number
  /** Mean of a row. */
  readonly costUsd: number
  readonly latencyMs: number
}

const width = 340
const height = 230
const edge = { left: 46, right: 14, top: 8, bottom: 40 } as const
/** Between the frame and the points, so that neither a point nor its name lies on it. */
const inset = 16
const lineHeight = 14
/** A narrower span would make a difference of one row look like a gulf. */
const spanMin = 0.1
const nameCharactersMax = 24

/** The first point is the cascade. */
export function TradeOffChart({
  title,
  unit,
  points,
  of,
  show,
}: {
  title: string
  unit: string
  points: readonly TradeOff[]
  of: (point: TradeOff) => number
  show: (value: number) => string
}): ReactNode {
  const steps = roundSteps(Math.max(...points.map(of)))
  const most = steps.at(-1) ?? 1
  const accuracies = points.map(({ accuracy }) => accuracy)
  const high = Math.max(...accuracies)
  const low = Math.max(0, Math.min(Math.min(...accuracies), high - spanMin))
  const span = high - low || 1
  const [left, right] = [edge.left + inset, width - edge.right - inset]
  const [top, bottom] = [edge.top + inset, height - edge.bottom - inset]
  const x = (value: number): number => left + (value / most) * (right - left)
  const y = (value: number): number => bottom - ((value - low) / span) * (bottom - top)
  const described = points.map((point) => `${point.name} ${percent(point.accuracy)} at ${show(of(point))}`)
  const nameAt = labelHeights(
    points.map(({ accuracy }) => y(accuracy)),
    { apart: lineHeight, lowest: bottom + inset / 2 },
  )
  return (
    <figure className="flex min-w-0 flex-col gap-2">
      <figcaption className="label">{title}</figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        className="number w-full max-w-md"
        role="img"
        aria-label={`${title}: ${described.join("; ")}`}
      >
        <rect
          x={edge.left}
          y={edge.top}
          width={width - edge.left - edge.right}
          height={height - edge.top - edge.bottom}
          className="fill-sunken"
          rx={4}
        />
        {[low, low + span / 2, high].map((accuracy) => (
          <g key={accuracy}>
            <line
              x1={edge.left}
              x2={width - edge.right}
              y1={y(accuracy)}
              y2={y(accuracy)}
              className="stroke-line"
            />
            <text x={edge.left - 6} y={y(accuracy) + 3.5} textAnchor="end" className="fill-soft text-[10px]">
              {percent(accuracy)}
            </text>
          </g>
        ))}
        {[0, most / 2, most].map((value) => (
          <text
            key={value}
            x={x(value)}
            y={height - edge.bottom + 14}
            textAnchor="middle"
            className="fill-soft text-[10px]"
          >
            {show(value)}
          </text>
        ))}
        <text
          x={(left + right) / 2}
          y={height - 6}
          textAnchor="middle"
          className="fill-soft text-[10px] font-medium"
        >
          {unit}
        </text>
        {points.map((point, at) => {
          const [pointX, pointY] = [x(of(point)), y(point.accuracy)]
          const isRight = of(point) > most / 2
          const textX = pointX + (isRight ? -12 : 12)
          const textY = nameAt[at] ?? pointY
          return (
            <g key={point.id}>
              {textY === pointY ? null : (
                <line x1={pointX} y1={pointY} x2={textX} y2={textY} className="stroke-strong" />
              )}
              <text
                x={textX}
                y={textY + 3.5}
                textAnchor={isRight ? "end" : "start"}
                className={`fill-ink text-[11px] ${at === 0 ? "font-semibold" : ""}`}
              >
                {shortened(point.name)}
              </text>
            </g>
          )
        })}
        {/* The cascade last, so that no other point hides it; rings, so that it hides none. */}
        {points
          .map((point, at) => (
            <circle
              key={point.id}
              cx={x(of(point))}
              cy={y(point.accuracy)}
              r={at === 0 ? 4.5 : 6.5}
              strokeWidth={2}
              className={at === 0 ? "fill-accent stroke-panel" : "stroke-info fill-none"}
            />
          ))
          .toReversed()}
      </svg>
    </figure>
  )
}

const shortened = (name: string): string =>
  name.length > nameCharactersMax ? `${name.slice(0, nameCharactersMax - 1)}…` : name
