/** What is kept, of which share of the requests and for how long: fields that organization and key share. */
import type { ReactNode } from "react"
import { type ContentLevel, contentLevels, contentLimits } from "../../../src/contract/content.ts"
import { NumberField } from "../parts/number-field.tsx"
import { numberText, readNumber } from "../parts/typed-number.ts"
import { levelHints, levelNames } from "./content-words.ts"
import { t } from "../i18n/translate.ts"

interface KeptDraft {
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
  sample: numberText(kept.sample_rate, "percentage"),
  days: String(kept.retention_days),
})

const sampleBounds = { min: 0, max: 1, required: true }
const daysBounds = (daysMax: number) => ({ min: 1, max: daysMax, required: true })

/** Null while a field holds something else than a number in its bounds. */
export function keptOf({ keep, sample, days }: KeptDraft, daysMax: number = contentLimits.retentionDaysMax) {
  const { value: sample_rate } = readNumber(sample, "percentage", sampleBounds)
  const { value: retention_days } = readNumber(days, "whole", daysBounds(daysMax))
  return sample_rate === null || retention_days === null ? null : { keep, sample_rate, retention_days }
}

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
        <legend className="label mb-1.5">{t("What to keep of each request")}</legend>
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
          <NumberField
            kind="percentage"
            bounds={sampleBounds}
            label={t("Share of requests, %")}
            disabled={disabled}
            value={draft.sample}
            hint={t("Chosen at random, by the request’s id.")}
            onText={(text) => change({ sample: text })}
          />
          <NumberField
            kind="whole"
            bounds={daysBounds(daysMax)}
            label={t("Delete after (days)")}
            disabled={disabled}
            value={draft.days}
            hint={t("At most {daysMax}.", { daysMax })}
            onText={(text) => change({ days: text })}
          />
        </div>
      )}
    </>
  )
}
