/** Where the time of a request went, as bars, and the workers that were tried. */
import type { ReactNode } from "react"
import type { SequenceDetail } from "../../../src/contract/sequences.ts"
import { exactDollars, milliseconds } from "../parts/format.ts"
import { Badge, Panel } from "../parts/page.tsx"
import { t, tn } from "../i18n/translate.ts"

interface Part {
  readonly name: string
  readonly about: string
  readonly ms: number
  readonly color: string
}

/** In the order in which they come; what is left is the gateway's own and the network's. */
function timeParts(sequence: SequenceDetail): readonly Part[] {
  const { queue_ms, route_ms, engine_ms, seq_duration_ms } = sequence
  const known = [
    { name: t("Route"), about: t("choosing regions and workers"), ms: route_ms, color: "bg-info" },
    { name: t("Queue"), about: t("waiting for a free slot of a worker"), ms: queue_ms, color: "bg-warn" },
    { name: t("Engine"), about: t("reading, evaluating and generating"), ms: engine_ms, color: "bg-bar" },
  ].flatMap(({ ms, ...part }) => (ms === null ? [] : [{ ...part, ms }]))
  if (known.length === 0) return []
  const rest = seq_duration_ms - known.reduce((sum, { ms }) => sum + ms, 0)
  return [
    ...known,
    {
      name: t("Other"),
      about: t("checks, accounting and sending"),
      ms: Math.max(0, rest),
      color: "bg-bar-rest",
    },
  ]
}

export function Timing({ sequence }: { sequence: SequenceDetail }): ReactNode {
  const { seq_duration_ms: total, gateway_latency_ms: firstByte } = sequence
  const parts = timeParts(sequence)
  const longest = Math.max(
    total,
    parts.reduce((sum, { ms }) => sum + ms, 0),
    Number.MIN_VALUE,
  )
  const rows = parts.map((part, index) => ({
    ...part,
    start: parts.slice(0, index).reduce((sum, { ms }) => sum + ms, 0),
  }))
  return (
    <div className="flex flex-col gap-2">
      <ul aria-label={t("Timing")} className="flex flex-col gap-2">
        {rows.map(({ name, about, ms, color, start }) => (
          <Bar
            key={name}
            name={name}
            about={about}
            ms={ms}
            color={color}
            start={start / longest}
            share={ms / longest}
          />
        ))}
        <Bar
          name={t("First byte")}
          about={t("until the answer began")}
          ms={firstByte}
          color="bg-ink/40"
          start={0}
          share={firstByte / longest}
        />
        <Bar
          name={t("Total")}
          about={t("until the answer ended")}
          ms={total}
          color="bg-ink/70"
          start={0}
          share={total / longest}
        />
      </ul>
      {parts.length === 0 ? (
        <p className="text-soft text-xs">
          {t("It never reached a worker, or was recorded before times were measured one by one.")}
        </p>
      ) : null}
    </div>
  )
}

function Bar({
  name,
  about,
  ms,
  color,
  start,
  share,
}: {
  name: string
  about: string
  ms: number
  color: string
  start: number
  share: number
}): ReactNode {
  return (
    <li title={about} className="number grid grid-cols-[5rem_1fr_5rem] items-center gap-3 text-sm">
      <span className="text-soft">{name}</span>
      <span aria-hidden="true" className="bg-sunken relative h-3 overflow-hidden rounded">
        <span
          className={`absolute inset-y-0 rounded-sm ${color}`}
          style={{
            insetInlineStart: `${Math.min(start, 0.995) * 100}%`,
            width: `max(2px, ${Math.min(share, 1) * 100}%)`,
          }}
        />
      </span>
      <span className="text-end font-medium">{shortMs(ms)}</span>
    </li>
  )
}

/** Choosing a route takes microseconds. */
const shortMs = (ms: number): string => (ms > 0 && ms < 10 ? `${Number(ms.toFixed(2))} ms` : milliseconds(ms))

export function Attempts({ sequence: { attempts } }: { sequence: SequenceDetail }): ReactNode {
  return (
    <Panel title={t("Attempts")}>
      <ol className="number flex flex-col gap-2 text-sm">
        {attempts.map(({ region, result, ms }, index) => (
          <li key={index} className="grid grid-cols-[minmax(0,1fr)_auto_5rem] items-center gap-3">
            <span className="wrap-anywhere">
              <span className="text-soft">{index + 1}.</span> {region}
            </span>
            <Badge tone={result === "success" ? "good" : "bad"}>{result}</Badge>
            <span className="text-end font-medium">{shortMs(ms)}</span>
          </li>
        ))}
      </ol>
    </Panel>
  )
}

/** Of a virtual model: the models that worked on the request, in order, and what each cost. */
export function Stages({
  sequence: { stages, virtual_model },
}: {
  sequence: Pick<SequenceDetail, "stages" | "virtual_model">
}): ReactNode {
  return (
    <Panel title={t("Stages of {virtualModel}", { virtualModel: virtual_model ?? "" })}>
      <ol className="number flex flex-col gap-2 text-sm">
        {stages.map(({ model, result, questions, ms, cost }, index) => (
          <li key={index} className="flex flex-wrap items-center justify-between gap-x-3 gap-y-0.5">
            <span className="min-w-0 wrap-anywhere">
              <span className="text-soft">{index + 1}.</span> {model}
            </span>
            <Badge tone={result === "success" ? "good" : "bad"}>{result}</Badge>
            <span className="text-soft w-full">
              {questions === null ? "" : `${tn(questions, "{count} question", "{count} questions")}, `}
              {exactDollars(cost)}, {shortMs(ms)}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  )
}
