/** Patterns that are redacted before anything is stored, and a field to try them out in the browser. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useMemo, useState } from "react"
import { createRedactor, explainPattern } from "../../../src/base/redaction.ts"
import { contentLimits } from "../../../src/contract/content.ts"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { AreaField, SelectField, TextField } from "../parts/field.tsx"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { useOrganization } from "../session.ts"
import { setsKey } from "../sets/set-query.ts"
import { t, tn } from "../i18n/translate.ts"

interface PatternRow {
  readonly id: number
  readonly name: string
  readonly pattern: string
}

/** Often wanted; each can be changed before it is saved. */
const usual = [
  { name: "email", pattern: String.raw`[\w.+-]+@[\w-]+\.[\w.-]*\w` },
  { name: "phone", pattern: String.raw`\+?\d[\d ()/-]{7,}\d` },
  { name: "card", pattern: String.raw`\b(?:\d[ -]?){13,19}\b` },
  { name: "iban", pattern: String.raw`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b` },
] as const

let lastRow = 0
export const patternRow = (given: { name: string; pattern: string }): PatternRow => ({
  id: ++lastRow,
  name: given.name,
  pattern: given.pattern,
})

const patternError = ({ pattern }: PatternRow): string | null =>
  pattern === "" ? null : explainPattern(pattern)

export const isUsable = (row: PatternRow): boolean =>
  row.name.trim() !== "" && row.pattern !== "" && patternError(row) === null

export function RedactionFields({
  rows,
  disabled,
  onChange,
}: {
  rows: readonly PatternRow[]
  disabled: boolean
  onChange: (rows: readonly PatternRow[]) => void
}): ReactNode {
  const put = (index: number, row: PatternRow): void => onChange(rows.with(index, row))
  const isFull = rows.length >= contentLimits.patternsMax
  return (
    <fieldset className="flex flex-col gap-3">
      <legend className="label mb-1">{t("Redaction")}</legend>
      <p className="text-soft text-xs">
        {t(
          "Text that matches a pattern is replaced by the pattern’s name, in brackets, before anything is stored. Patterns are RE2 regular expressions.",
        )}
      </p>
      {rows.map((row, index) => (
        <div
          key={row.id}
          className="grid grid-cols-[minmax(0,1fr)_auto] items-start gap-2 sm:grid-cols-[8rem_minmax(0,1fr)_auto]"
        >
          <TextField
            label={t("Name")}
            maxLength={64}
            disabled={disabled}
            value={row.name}
            onChange={(event) => put(index, { ...row, name: event.target.value })}
          />
          <div className="max-sm:order-last max-sm:col-span-2">
            <TextField
              label={t("Pattern")}
              spellCheck={false}
              className="font-mono text-xs"
              maxLength={contentLimits.patternCharactersMax}
              disabled={disabled}
              value={row.pattern}
              error={patternError(row)}
              onChange={(event) => put(index, { ...row, pattern: event.target.value })}
            />
          </div>
          <Button
            kind="bare"
            icon="cross"
            className="mt-5"
            disabled={disabled}
            aria-label={t("Remove pattern {index}", { index: index + 1 })}
            onClick={() => onChange(rows.toSpliced(index, 1))}
          />
        </div>
      ))}
      {disabled ? null : (
        <Menu
          align="start"
          trigger={
            <Button kind="bare" small icon="plus" className="self-start" disabled={isFull}>
              {isFull
                ? t("{patternsMax} patterns are the most", { patternsMax: contentLimits.patternsMax })
                : t("Add pattern")}
            </Button>
          }
        >
          {usual.map((one) => (
            <MenuItem key={one.name} onSelect={() => onChange([...rows, patternRow(one)])}>
              {one.name}
            </MenuItem>
          ))}
          <MenuItem onSelect={() => onChange([...rows, patternRow({ name: "", pattern: "" })])}>
            {t("Custom")}
          </MenuItem>
        </Menu>
      )}
      {rows.length > 0 ? <TryOut rows={rows} /> : null}
    </fieldset>
  )
}

function TryOut({ rows }: { rows: readonly PatternRow[] }): ReactNode {
  const [text, setText] = useState("")
  const redacted = useMemo(() => {
    const usable = rows.filter((row) => patternError(row) === null && row.pattern !== "")
    return text === "" ? null : createRedactor(usable).redact(text)
  }, [rows, text])
  return (
    <div className="bg-sunken flex flex-col gap-2 rounded-lg p-3">
      <AreaField
        label={t("Try it out")}
        rows={2}
        placeholder={t("Write to jo@example.com or call +44 20 7946 0018.")}
        hint={t("The text stays in this browser.")}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {redacted ? (
        <div>
          <p className="label" role="status">
            {redacted.count === 0
              ? t("Nothing is redacted")
              : tn(redacted.count, "{count} passage redacted", "{count} passages redacted")}
          </p>
          <output
            aria-label={t("As it would be stored")}
            className="block text-sm wrap-anywhere whitespace-pre-wrap"
          >
            {redacted.text}
          </output>
        </div>
      ) : null}
    </div>
  )
}

/** A set that decides which sentences are replaced. */
export function RedactionSet({
  value,
  disabled,
  onChange,
}: {
  value: string | null
  disabled: boolean
  onChange: (value: string | null) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { data: sets = [] } = useQuery({
    queryKey: [...setsKey(org_id), "redaction"],
    queryFn: async () => (await api.listQuestionSets({ params: { org_id } })).data,
  })
  const named = [...new Set([...sets.map(({ name }) => name), ...(value ? [value] : [])])]
  return (
    <SelectField
      label={t("Redact sentences with a question set")}
      disabled={disabled}
      value={value ?? ""}
      hint={t(
        "The set is asked about each sentence; where it answers yes or abstains, the sentence is redacted.",
      )}
      options={[{ value: "", label: t("None") }, ...named.map((name) => ({ value: name, label: name }))]}
      onChange={(event) => onChange(event.target.value || null)}
    />
  )
}
