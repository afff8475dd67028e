/** One question over time: its answers, confidence, abstentions, latency and cost as small charts, and its drift. */
import type { ReactNode } from "react"
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { Drift, MonitoredQuestion } from "../../../src/contract/question-sets/monitoring.ts"
import { abstainedColor, colorsOf, restColor } from "../charts/colors.ts"
import { SmallBars } from "../charts/small-bars.tsx"
import { count, decimal, milliseconds, onAxis, percent, smallDollars } from "../parts/format.ts"
import { Badge, Panel, type Tone } from "../parts/page.tsx"
import { possibleLabels } from "./labels.ts"
import { t, tn } from "../i18n/translate.ts"

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
  none: { tone: "good", words: t("No drift") },
  small: { tone: "warn", words: t("Small drift") },
  large: { tone: "bad", words: t("Large drift") },
  too_few_rows: { tone: "plain", words: t("Too few answers for drift") },
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
          title={t("Population stability index: below 0.1 is stable, above 0.25 is not")}
        >
          PSI <strong className="text-ink font-medium">{decimal(drift.psi, 2)}</strong>
        </span>
      )}
      {drift.p_value === null ? null : (
        <span
          className="text-soft"
          title={t("Chi-square test: how likely such a difference is by chance alone")}
        >
          p {drift.p_value < 0.001 ? "< 0.001" : `= ${decimal(drift.p_value, 3)}`}
        </span>
      )}
      <span className="text-soft">
        {of === "text"
          ? tn(drift.rows, "{count} text against {referenceRows}", "{count} texts against {referenceRows}", {
              referenceRows: count(drift.reference_rows),
            })
          : tn(
              drift.rows,
              "{count} answer against {referenceRows}",
              "{count} answers against {referenceRows}",
              {
                referenceRows: count(drift.reference_rows),
              },
            )}
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
        title={t("Answers")}
        summary={
          given === 0 && rows > 0
            ? t("the set abstained from all {rows}", { rows: count(rows) })
            : tn(
                rows,
                "{count} answer, {rows} in the reference window",
                "{count} answers, {rows} in the reference window",
                { rows: count(reference.rows) },
              )
        }
        bars={series.map((one) => ({
          label: timeOf(one.start, bucket),
          values: sharesOf(one.answers),
        }))}
        colors={palette}
        top={1}
        read={({ values }) =>
          values.length === 0
            ? t("no answers")
            : values
                .flatMap((value, index) => (value > 0 ? [`${names[index]} ${percent(value)}`] : []))
                .join(", ")
        }
      />
      <ul
        className="number mt-1.5 flex flex-wrap gap-x-4 gap-y-1 text-xs"
        aria-label={t("Shares of the answers")}
      >
        {answers.map((one, index) => (
          <li key={names[index]} className="flex min-w-0 items-center gap-1.5">
            <span className="size-2.5 shrink-0 rounded-sm" style={{ background: palette[index] }} />
            <span className="truncate">{names[index]}</span>
            <strong className="font-medium">{percent(given === 0 ? 0 : one.rows / given)}</strong>
            {before === 0 ? null : (
              <span className="text-soft whitespace-nowrap">
                {t("was {before}", { before: percent(one.reference_rows / before) })}
              </span>
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
  return (
    <>
      <SmallBars
        title={t("Confidence")}
        summary={
          mean_confidence === null
            ? t("no answers")
            : reference.mean_confidence === null
              ? t("mean {mean}", { mean: percent(mean_confidence) })
              : t("mean {mean}, was {before}", {
                  mean: percent(mean_confidence),
                  before: percent(reference.mean_confidence),
                })
        }
        bars={now.map((_, bin) => ({
          label: t("{low} to {high}%", { low: (bin * 100) / bins, high: ((bin + 1) * 100) / bins }),
          values: [shares[bin] ?? 0],
          // A line along the bottom would say nothing.
          ...(before[bin] ? { mark: before[bin] } : {}),
        }))}
        colors={single}
        read={({ values: [share = 0], mark }) =>
          before.length === 0
            ? t("{share} of the answers", { share: percent(share) })
            : t("{share} of the answers, was {before}", { share: percent(share), before: percent(mark ?? 0) })
        }
      />
      {before.length === 0 ? null : (
        <p className="text-soft mt-1.5 flex items-center gap-1.5 text-xs">
          <span className="border-ink w-4 border-t-2 border-dotted" aria-hidden="true" />{" "}
          {t("reference window")}
        </p>
      )}
    </>
  )
}

function AbstentionChart({ question, bucket }: ChartProps): ReactNode {
  const { series } = question
  return (
    <SmallBars
      title={t("Abstained")}
      summary={abstentionWords(question)}
      bars={series.map((one) => ({
        label: timeOf(one.start, bucket),
        values: one.rows === 0 ? [] : [one.abstained / one.rows],
      }))}
      colors={[abstainedColor]}
      read={({ values: [share] }) => (share === undefined ? t("no answers") : percent(share))}
    />
  )
}

function LatencyChart({ question: { series, latency_ms }, bucket }: ChartProps): ReactNode {
  return (
    <SmallBars
      title={t("Latency")}
      summary={latency_ms === null ? t("no answers") : t("mean {mean}", { mean: milliseconds(latency_ms) })}
      bars={series.map((one) => ({
        label: timeOf(one.start, bucket),
        values: one.latency_ms === null ? [] : [one.latency_ms],
      }))}
      colors={single}
      read={({ values: [value] }) => (value === undefined ? t("no answers") : milliseconds(value))}
    />
  )
}

function CostChart({ question: { series, cost_cents }, bucket }: ChartProps): ReactNode {
  return (
    <SmallBars
      title={t("Cost")}
      summary={smallDollars(cost_cents / 100)}
      bars={series.map((one) => ({ label: timeOf(one.start, bucket), values: [one.cost_cents] }))}
      colors={single}
      read={({ values: [value = 0] }) => smallDollars(value / 100)}
    />
  )
}

function abstentionWords({ rows, abstained, reference }: MonitoredQuestion): string {
  const now = rows === 0 ? t("no answers") : percent(abstained / rows)
  return reference.rows === 0
    ? now
    : t("{now}, was {before}", { now, before: percent(reference.abstained / reference.rows) })
}
