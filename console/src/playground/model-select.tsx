/** Chooses among the models that can answer questions, and says why others cannot. */
import type { ReactNode } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"

const reasons: Partial<Record<OrgModel["status"], string>> = {
  disabled: "switched off",
  access_pending: "access pending",
  access_required: "access needed",
  billing_setup_failed: "billing is not set up",
  payment_method_required: "payment method needed",
  prepaid_credits_required: "no credit left",
  spend_limit_exceeded: "spend limit reached",
}

export function ModelSelect({
  label,
  models,
  value,
  tall = false,
  onChange,
}: {
  label: string
  models: readonly OrgModel[]
  value: string
  /** As high as a form field. */
  tall?: boolean
  onChange: (sku: string) => void
}): ReactNode {
  const shown = models.filter(({ model_kind }) => model_kind === "generation")
  const unknown = value !== "" && !shown.some(({ model_sku }) => model_sku === value)
  return (
    <select
      aria-label={label}
      className={`control ${tall ? "" : "h-8 w-auto min-w-0 max-w-60 max-sm:flex-1"}`}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      {unknown ? <option value={value}>{value}</option> : null}
      {shown.map(({ model_sku, status }) => (
        <option key={model_sku} value={model_sku}>
          {reasons[status] ? `${model_sku} (${reasons[status]})` : model_sku}
        </option>
      ))}
    </select>
  )
}
