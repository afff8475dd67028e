/** Chooses among the models that can do what is wanted, and says why some may not be used. */
import type { ReactNode } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { type ModelUse, canDo } from "./models.ts"
import { t } from "../i18n/translate.ts"

const reasons: Partial<Record<OrgModel["status"], string>> = {
  disabled: t("switched off"),
  access_pending: t("access pending"),
  access_required: t("access needed"),
  billing_setup_failed: t("billing is not set up"),
  payment_method_required: t("payment method needed"),
  prepaid_credits_required: t("no credit left"),
  spend_limit_exceeded: t("spend limit reached"),
}

/** As a request names a question set. */
export const setModel = (name: string): string => `set:${name}`

export function ModelSelect({
  label,
  models,
  value,
  use = "decisions",
  tall = false,
  sets = [],
  onChange,
}: {
  label: string
  /** Names of question sets that can be chosen too. */
  sets?: readonly string[]
  use?: ModelUse
  models: readonly OrgModel[]
  value: string
  /** As high as a form field. */
  tall?: boolean
  onChange: (sku: string) => void
}): ReactNode {
  const shown = models.filter((one) => canDo(one, use))
  const none = value === "" ? (models.length === 0 ? t("Loading models") : t("No model can be used")) : null
  const unknown = value !== "" && !shown.some(({ model_sku }) => model_sku === value)
  return (
    <select
      aria-label={label}
      className={`control ${tall ? "" : "h-8 w-auto min-w-0 max-w-60 max-sm:flex-1"}`}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      {none ? <option value="">{none}</option> : null}
      {unknown ? <option value={value}>{value}</option> : null}
      {shown.map(({ model_sku, status }) => (
        <option key={model_sku} value={model_sku}>
          {reasons[status] ? `${model_sku} (${reasons[status]})` : model_sku}
        </option>
      ))}
      {sets.length > 0 ? (
        <optgroup label={t("Question sets")}>
          {sets.map((name) => (
            <option key={name} value={setModel(name)}>
              {setModel(name)}
            </option>
          ))}
        </optgroup>
      ) : null}
    </select>
  )
}
