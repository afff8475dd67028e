/** One question over time: its answers, confidence, abstentions, latency and cost as small charts, and its drift. */
import type { ReactNode } from "react"
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { Drift, MonitoredQuestion } from "../../../src/contract/question-sets/monitoring.ts"
import { abstainedColor, colorsOf, restColor } from "../charts/colors.ts"
import { SmallBars } from "../charts/small-bars.tsx"
import { count, decimal, milliseconds, onAxis, percent, plural, smallDollars } from "../parts/format.ts"
import { Badge, Panel, type Tone } from "../parts/page.tsx"
import { possibleLabels } from "./labels.ts"

type Bucket = "hour" | "day"

export function MonitoredPanel({
  question,
  asked,
  bucket,
}: {
  question: MonitoredQuestion
  /** Undefined: a question that the latest version no longer has. */
  asked: SetQuestion | undefined
  bucket: Bucket
}): ReactNode {
  return (
    <Panel title={question.name} actions={<DriftBadge drift={question.drift} />}>
      <div className="flex flex-col gap-5">
        {asked ? <p className="text-soft max-w-4xl text-sm wrap-anywhere">{asked.instructions}</p> : null}
        <div className="grid grid-cols-6 gap-x-4 gap-y-5 sm:gap-x-6">
          <div className="col-span-6 md:col-span-3">
            <AnswerChart question={question} asked={asked} bucket={bucket} />
          </div>
          <div className="col-span-6 md:col-span-3">
            <ConfidenceChart question={question} />
          </div>
          <div className="col-span-3 sm:col-span-2">
            <AbstentionChart question={question} bucket={bucket} />
          </div>
          <div className="col-span-3 sm:col-span-2">
            <LatencyChart question={question} bucket={bucket} />
          </div>
          <div className="col-span-6 sm:col-span-2">
            <CostChart question={question} bucket={bucket} />
          </div>
        </div>
      </div>
    </Panel>
  )
}

const verdicts: Record<Drift["verdict"], { readonly tone: Tone; readonly words: string }> = {
  none: { tone: "good", words: "No drift" },
  small: { tone: "warn", words: "Small drift" },
  large: { tone: "bad", words: "Large drift" },
  too_few_rows: { tone: "plain", words: "Too few answers for drift" },
}

export function DriftBadge({
  drift,
  of = "answer",
}: {
  drift: Drift
  /** What was counted. */
  of?: "answer" | "text"
}): ReactNode {
  const { tone, words } = verdicts[drift.verdict]
  return (
    <span className="number flex flex-wrap items-center gap-x-3 gap-y-1 text-xs">
      {drift.psi === null ? null : (
        <span
          className="text-soft"
          title="Population stability index: below 0.1 is stable, above 0.25 is not"
        >
          PSI <strong className="text-ink font-medium">{decimal(drift.psi, 2)}</strong>
        </span>
      )}
      {drift.p_value === null ? null : (
        <span className="text-soft" title="Chi-square test: how likely such a difference is by chance alone">
          p {drift.p_value < 0.001 ? "< 0.001" : `= ${decimal(drift.p_value, 3)}`}
        </span>
      )}
      <span className="text-soft">
        {plural(drift.rows, of)} against {count(drift.reference_rows)}
      </span>
      <Badge tone={tone}>{words}</Badge>
    </span>
  )
}

const timeOf = (startMs: number, bucket: Bucket): string =>
  bucket === "hour"
    ? `${onAxis.day(new Date(startMs))} ${onAxis.clock(new Date(startMs))}`
    : onAxis.day(new Date(startMs))

/** yes, no, an option or a level by its name; null: all others together. */
function answerName(asked: SetQuestion | undefined, answer: string | null): string {
  if (answer === null) return "others"
  const known = asked && possibleLabels(asked).find(({ value }) => String(value) === answer)
  return known?.name ?? answer
}

interface ChartProps {
  readonly question: MonitoredQuestion
  readonly bucket: Bucket
}

function AnswerChart({
  question: { answers, series, rows, reference },
  asked,
  bucket,
}: ChartProps & { asked: SetQuestion | undefined }): ReactNode {
  const names = answers.map(({ answer }) => answerName(asked, answer))
  const colors = colorsOf(answers.map(({ answer }) => answer))
  const palette = answers.map(({ answer }) => (answer === null ? restColor : colors(answer)))
  const given = answers.reduce((total, one) => total + one.rows, 0)
  const before = answers.reduce((total, one) => total + one.reference_rows, 0)
  return (
    <>
      <SmallBars
        title="Answers"
        summary={
          given === 0 && rows > 0
            ? `the set abstained from all ${count(rows)}`
            : `${plural(rows, "answer")}, ${count(reference.rows)} in the reference window`
        }
        bars={series.map((one) => ({
          label: timeOf(one.start, bucket),
          values: sharesOf(one.answers),
        }))}
        colors={palette}
        top={1}
        read={({ values }) =>
          values.length === 0
            ? "no answers"
            : values
                .flatMap((value, index) => (value > 0 ? [`${names[index]} ${percent(value)}`] : []))
                .join(", ")
        }
      />
      <ul className="number mt-1.5 flex flex-wrap gap-x-4 gap-y-1 text-xs" aria-label="Shares of the answers">
        {answers.map((one, index) => (
          <li key={names[index]} className="flex min-w-0 items-center gap-1.5">
            <span className="size-2.5 shrink-0 rounded-sm" style={{ background: palette[index] }} />
            <span className="truncate">{names[index]}</span>
            <strong className="font-medium">{percent(given === 0 ? 0 : one.rows / given)}</strong>
            {before === 0 ? null : (
              <span className="text-soft whitespace-nowrap">was {percent(one.reference_rows / before)}</span>
            )}
          </li>
        ))}
      </ul>
    </>
  )
}

/** None where there are no answers: a bar of nothing is a gap. */
function sharesOf(rows: readonly number[]): number[] {
  const total = rows.reduce((sum, one) => sum + one, 0)
  return total === 0 ? [] : rows.map((one) => one / total)
}

const single = ["var(--color-bar)"]

function ConfidenceChart({ question }: { question: MonitoredQuestion }): ReactNode {
  const { confidence_histogram: now, reference, mean_confidence } = question
  const shares = sharesOf(now)
  const before = sharesOf(reference.confidence_histogram)
  const bins = now.length
  const was = reference.mean_confidence === null ? "" : `, was ${percent(reference.mean_confidence)}`
  return (
    <>
      <SmallBars
        title="Confidence"
        summary={mean_confidence === null ? "no answers" : `mean ${percent(mean_confidence)}${was}`}
        bars={now.map((_, bin) => ({
          label: `${(bin * 100) / bins} to ${((bin + 1) * 100) / bins}%`,
          values: [shares[bin] ?? 0],
          // A line along the bottom would say nothing.
          ...(before[bin] ? { mark: before[bin] } : {}),
        }))}
        colors={single}
        read={({ values: [share = 0], mark }) =>
          `${percent(share)} of the answers${before.length === 0 ? "" : `, was ${percent(mark ?? 0)}`}`
        }
      />
      {before.length === 0 ? null : (
        <p className="text-soft mt-1.5 flex items-center gap-1.5 text-xs">
          <span className="border-ink w-4 border-t-2 border-dotted" aria-hidden="true" /> reference window
        </p>
      )}
    </>
  )
}

function AbstentionChart({ question, bucket }: ChartProps): ReactNode {
  const { series, rows, abstained, reference } = question
  const was = reference.rows === 0 ? "" : `, was ${percent(reference.abstained / reference.rows)}`
  return (
    <SmallBars
      title="Abstained"
      summary={`${rows === 0 ? "no answers" : percent(abstained / rows)}${was}`}
      bars={series.map((one) => ({
        label: timeOf(one.start, bucket),
        values: one.rows === 0 ? [] : [one.abstained / one.rows],
      }))}
      colors={[abstainedColor]}
      read={({ values: [share] }) => (share === undefined ? "no answers" : percent(share))}
    />
  )
}

function LatencyChart({ question: { series, latency_ms }, bucket }: ChartProps): ReactNode {
  return (
    <SmallBars
      title="Latency"
      summary={latency_ms === null ? "no answers" : `mean ${milliseconds(latency_ms)}`}
      bars={series.map((one) => ({
        label: timeOf(one.start, bucket),
        values: one.latency_ms === null ? [] : [one.latency_ms],
      }))}
      colors={single}
      read={({ values: [value] }) => (value === undefined ? "no answers" : milliseconds(value))}
    />
  )
}

function CostChart({ question: { series, cost_cents }, bucket }: ChartProps): ReactNode {
  return (
    <SmallBars
      title="Cost"
      summary={smallDollars(cost_cents / 100)}
      bars={series.map((one) => ({ label: timeOf(one.start, bucket), values: [one.cost_cents] }))}
      colors={single}
      read={({ values: [value = 0] }) => smallDollars(value / 100)}
    />
  )
}
