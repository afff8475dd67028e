/** Above a list of batches or evaluations: a part of the name, and the state. */
import { type ReactNode, useState } from "react"
import { useSettled } from "../parts/use-settled.ts"
import { SelectField, TextField } from "../parts/field.tsx"
import type { BatchFilters } from "./batch-query.ts"
import { t } from "../i18n/translate.ts"

const states = [
  { value: "", label: t("All") },
  { value: "open", label: t("Running") },
  { value: "completed", label: t("Completed") },
  { value: "failed", label: t("Failed") },
  { value: "expired", label: t("Expired") },
  { value: "cancelled", label: t("Cancelled") },
] as const

interface FilterFields {
  readonly name: string
  readonly status: string
}

export function useBatchFilters(): {
  readonly fields: FilterFields
  readonly change: (fields: FilterFields) => void
  readonly filters: BatchFilters
  readonly isFiltered: boolean
} {
  const [fields, change] = useState<FilterFields>({ name: "", status: "" })
  const name = useSettled(fields.name.trim())
  // One of the states above.
  const status = fields.status as NonNullable<BatchFilters["status"]> | ""
  return {
    fields,
    change,
    filters: { ...(name ? { name } : {}), ...(status ? { status } : {}) },
    isFiltered: name !== "" || status !== "",
  }
}

export function BatchFilterBar({
  fields,
  onChange,
}: {
  fields: FilterFields
  onChange: (fields: FilterFields) => void
}): ReactNode {
  return (
    <div role="search" className="grid grid-cols-2 gap-2 sm:flex sm:items-end">
      <TextField
        label={t("Name")}
        type="search"
        maxLength={200}
        placeholder={t("A part of it")}
        value={fields.name}
        onChange={(event) => onChange({ ...fields, name: event.target.value })}
      />
      <SelectField
        label={t("State")}
        value={fields.status}
        options={states}
        onChange={(event) => onChange({ ...fields, status: event.target.value })}
      />
    </div>
  )
}
