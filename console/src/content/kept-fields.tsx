/** What is kept, of which share of the requests and for how long: fields that organization and key share. */
import type { ReactNode } from "react"
import { type ContentLevel, contentLevels, contentLimits } from "../../../src/contract/content.ts"
import { TextField } from "../parts/field.tsx"
import { levelHints, levelNames } from "./content-words.ts"

export interface KeptDraft {
  readonly keep: ContentLevel
  /** In percent. */
  readonly sample: string
  readonly days: string
}

export const keptDraft = (kept: {
  keep: ContentLevel
  sample_rate: number
  retention_days: number
}): KeptDraft => ({
  keep: kept.keep,
  sample: String(Number((kept.sample_rate * 100).toPrecision(10))),
  days: String(kept.retention_days),
})

/** Null while a field holds something else than a number in its bounds. */
export function keptOf({ keep, sample, days }: KeptDraft, daysMax: number = contentLimits.retentionDaysMax) {
  if (sampleError(sample) || daysError(days, daysMax)) return null
  return { keep, sample_rate: Number(sample) / 100, retention_days: Number(days) }
}

const within = (text: string, min: number, max: number): boolean =>
  text.trim() !== "" && Number(text) >= min && Number(text) <= max

const sampleError = (text: string): string | null => (within(text, 0, 100) ? null : "From 0 to 100.")
const daysError = (text: string, max: number): string | null =>
  within(text, 1, max) && Number.isInteger(Number(text)) ? null : `A whole number from 1 to ${max}.`

export function KeptFields({
  draft,
  daysMax = contentLimits.retentionDaysMax,
  disabled = false,
  onChange,
}: {
  draft: KeptDraft
  daysMax?: number
  disabled?: boolean
  onChange: (draft: KeptDraft) => void
}): ReactNode {
  const change = (next: Partial<KeptDraft>): void => onChange({ ...draft, ...next })
  return (
    <>
      <fieldset className="flex flex-col gap-2">
        <legend className="label mb-1.5">What to keep of each request</legend>
        {contentLevels.map((level) => (
          <label key={level} className="flex items-start gap-2.5">
            <input
              type="radio"
              className="accent-accent mt-0.5 size-4 shrink-0"
              checked={draft.keep === level}
              disabled={disabled}
              onChange={() => change({ keep: level })}
            />
            <span className="text-sm">
              {levelNames[level]}
              <span className="text-soft block text-xs">{levelHints[level]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {draft.keep === "nothing" ? null : (
        <div className="grid grid-cols-1 items-start gap-3 sm:grid-cols-2">
          <TextField
            label="Share of requests, %"
            inputMode="decimal"
            disabled={disabled}
            value={draft.sample}
            error={sampleError(draft.sample)}
            hint="Chosen at random, by the request’s id."
            onChange={(event) => change({ sample: event.target.value })}
          />
          <TextField
            label="Delete after (days)"
            inputMode="numeric"
            disabled={disabled}
            value={draft.days}
            error={daysError(draft.days, daysMax)}
            hint={`At most ${daysMax}.`}
            onChange={(event) => change({ days: event.target.value })}
          />
        </div>
      )}
    </>
  )
}
