/** Every filter of the request log in one form. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { languageTags } from "../../../src/contract/language.ts"
import type { SequenceDetail } from "../../../src/contract/sequences.ts"
import { TagFilter } from "../../../src/contract/tags.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { languageName } from "../parts/format.ts"
import { modelsQuery, useOrganization } from "../session.ts"
import { type LogFilter, type LogView, logFilters, tagsOfText } from "./log-view.ts"
import { endpointName } from "./request-table.tsx"
import type { Names } from "./use-names.ts"
import { t } from "../i18n/translate.ts"

const endpoints = [
  "decisions",
  "systemone",
  "chat_completions",
  "completions",
  "responses",
  "responses_ws",
  "compact",
  "embeddings",
  "messages",
  "count_tokens",
  "teach",
  "check",
  "shadow",
]
const tagsMax = 4

interface Choice {
  readonly value: string
  readonly label: string
}
const named = (list: Names["keys"]): Choice[] => list.map(({ id, name }) => ({ value: id, label: name }))
const plain = (values: readonly string[]): Choice[] => values.map((value) => ({ value, label: value }))

export function FilterDialog({
  view,
  rows,
  names,
  onApply,
  onClose,
}: {
  view: LogView
  /** Of which some values are offered. */
  rows: readonly SequenceDetail[]
  names: Names
  onApply: (view: LogView) => void
  onClose: () => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const [filters, setFilters] = useState(view.filters)
  const [tags, setTags] = useState(view.tags.join(", "))
  const wrong = whatIsWrong(filters, tagsOfText(tags))
  const put = (name: LogFilter, value: string): void => {
    const { [name]: _, ...others } = filters
    setFilters(value === "" ? others : { ...others, [name]: value })
  }
  const choose = (name: LogFilter, options: readonly Choice[]): ReactNode => (
    <Chosen name={name} value={filters[name]} options={options} onChange={(value) => put(name, value)} />
  )
  const type = (
    name: LogFilter,
    more: { placeholder?: string; offers?: readonly string[] } = {},
  ): ReactNode => (
    <Typed name={name} value={filters[name] ?? ""} {...more} onChange={(value) => put(name, value)} />
  )
  const seen = (read: (row: SequenceDetail) => string | null): string[] =>
    [...new Set(rows.map((row) => read(row) ?? ""))].filter(Boolean)
  return (
    <FormDialog
      title={t("Filter requests")}
      submit={t("Apply")}
      wide
      ready={wrong === null}
      write={{
        isPending: false,
        error: wrong ? new Error(wrong) : null,
        mutate: () => {
          onApply({ ...view, filters, tags: tagsOfText(tags) })
          onClose()
        },
      }}
      onClose={onClose}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        {choose("result", plain(["success", "error", "cancelled"]))}
        {type("error_code", { placeholder: "rate_limited", offers: seen((row) => row.error_code) })}
        {choose(
          "model",
          plain([...new Set([...models.map(({ model_sku }) => model_sku), ...seen((row) => row.model)])]),
        )}
        {choose(
          "endpoint",
          endpoints.map((value) => ({ value, label: endpointName(value) })),
        )}
        {choose("api_key_id", named(names.keys))}
        {choose("principal_id", named([...names.members, ...names.keys]))}
        {choose("question_set_id", named(names.sets))}
        {type("question_set_version", { placeholder: "any" })}
        {choose("verdict", plain(["answered", "abstained"]))}
        {choose(
          "language",
          languageTags.map((value) => ({ value, label: languageName(value) })),
        )}
        {type("region", { offers: seen((row) => row.region) })}
        {type("latency_ms_min", { placeholder: "0" })}
        {type("latency_ms_max", { placeholder: "any" })}
        {type("cost_min", { placeholder: "0" })}
        {type("cost_max", { placeholder: "any" })}
        {type("request_id", { placeholder: "req_…" })}
        <TextField
          label={t("Tags")}
          placeholder="team=ops, job"
          spellCheck={false}
          value={tags}
          onChange={(event) => setTags(event.target.value)}
        />
      </div>
    </FormDialog>
  )
}

function whatIsWrong(filters: LogView["filters"], tags: readonly string[]): string | null {
  for (const name of ["latency_ms_min", "latency_ms_max", "question_set_version"] as const)
    if (!/^\d*$/.test(filters[name] ?? "")) return `${logFilters[name]}: a whole number is needed.`
  for (const name of ["cost_min", "cost_max"] as const)
    if (!/^(?:\d{1,8}(?:\.\d{1,10})?)?$/.test(filters[name] ?? ""))
      return `${logFilters[name]}: a number of dollars is needed.`
  if (tags.length > tagsMax) return t("Tags: at most {tagsMax}.", { tagsMax })
  const bad = tags.find((tag) => !TagFilter.safeParse(tag).success)
  return bad ? t("Tags: “{bad}” is neither a key nor key=value.", { bad }) : null
}

function Chosen({
  name,
  value,
  options,
  onChange,
}: {
  name: LogFilter
  value: string | undefined
  options: readonly Choice[]
  onChange: (value: string) => void
}): ReactNode {
  const known = value === undefined || options.some((one) => one.value === value)
  return (
    <SelectField
      label={logFilters[name]}
      value={value ?? ""}
      options={[{ value: "", label: "any" }, ...options, ...(known ? [] : plain([value]))]}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function Typed({
  name,
  value,
  placeholder,
  offers = [],
  onChange,
}: {
  name: LogFilter
  value: string
  placeholder?: string
  offers?: readonly string[]
  onChange: (value: string) => void
}): ReactNode {
  const list = `offers-${name}`
  return (
    <>
      <TextField
        label={logFilters[name]}
        placeholder={placeholder ?? t("any")}
        spellCheck={false}
        list={list}
        value={value}
        onChange={(event) => onChange(event.target.value.trim())}
      />
      <datalist id={list}>
        {offers.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  )
}
