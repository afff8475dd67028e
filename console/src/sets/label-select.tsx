/** Chooses the right answer to a question, or none. */
import type { ReactNode } from "react"
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"
import { type LabelValue, possibleLabels } from "./labels.ts"
import { t } from "../i18n/translate.ts"

export function LabelSelect({
  label,
  asked,
  value,
  disabled = false,
  tall = false,
  onChange,
}: {
  label: string
  asked: DecisionQuestion
  value: LabelValue | null
  disabled?: boolean
  /** As wide and high as a form field. */
  tall?: boolean
  onChange: (value: LabelValue | null) => void
}): ReactNode {
  const labels = possibleLabels(asked)
  const chosen = labels.findIndex((one) => one.value === value)
  return (
    <select
      aria-label={label}
      className={`control ${tall ? "" : "h-8 w-auto max-w-48 min-w-24"}`}
      disabled={disabled}
      value={chosen < 0 ? "" : String(chosen)}
      onChange={(event) => {
        const at = event.target.value
        onChange(at === "" ? null : (labels[Number(at)]?.value ?? null))
      }}
    >
      <option value="">{t("no label")}</option>
      {labels.map(({ name }, index) => (
        <option key={index} value={index}>
          {name}
        </option>
      ))}
    </select>
  )
}
