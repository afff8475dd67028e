/** The question that the rows propose, to be corrected: its columns, its kind, its words and its answers. */
import type { ReactNode } from "react"
import { AreaField, Segments, SelectField, TextField } from "../parts/field.tsx"
import { Panel } from "../parts/page.tsx"
import { questionTypes } from "../playground/draft.ts"
import { typeNames } from "../playground/question-card.tsx"
import { RowPreview } from "../tables/row-preview.tsx"
import type { Rows } from "../tables/rows.ts"
import type { Changes, Proposal } from "./proposal.ts"
import { t } from "../i18n/translate.ts"

const kinds = questionTypes.map((value) => ({ value, label: typeNames[value] }))
const placeholders = {
  predicate: t("Does the customer ask for money back?"),
  choice: t("Which team should handle this message?"),
  score: t("How urgent is this message?"),
} as const

export function QuestionForm({
  table,
  proposal,
  options,
  onChange,
  onOptions,
}: {
  table: Rows
  proposal: Proposal
  /** As they are being typed; null: the proposed ones. */
  options: string | null
  onChange: (changes: Changes) => void
  onOptions: (options: string | null) => void
}): ReactNode {
  const { text, label, type, instructions, values } = proposal
  const columns = table.columns.map((value) => ({ value, label: value }))
  return (
    <Panel title={t("2. What do you want to know?")}>
      <div className="flex flex-col gap-4">
        {table.columns.length > 1 ? (
          <>
            <div className="grid gap-3 sm:grid-cols-2">
              <SelectField
                label={t("Column with the text")}
                value={text}
                options={columns}
                onChange={(event) => onChange({ text: event.target.value })}
              />
              <SelectField
                label={t("Column with the labels")}
                value={label}
                options={[{ value: "", label: t("none: I label the rows here") }, ...columns]}
                onChange={(event) => {
                  onOptions(null)
                  onChange({ label: event.target.value })
                }}
              />
            </div>
            <RowPreview
              rows={table}
              chosen={{ ...(label ? { [label]: t("Label") } : {}), [text]: t("Text") }}
            />
          </>
        ) : null}
        <div className="flex flex-col gap-1">
          <span className="label">{t("Kind of answer")}</span>
          <Segments
            label={t("Kind of answer")}
            value={type}
            options={kinds}
            onChange={(next) => {
              onOptions(null)
              onChange({ type: next })
            }}
          />
        </div>
        <TextField
          label={t("Question")}
          dir="auto"
          autoComplete="off"
          maxLength={1000}
          placeholder={placeholders[type]}
          hint={t("Asked about every text. Press Enter, then label with the keys.")}
          value={instructions}
          onChange={(event) => onChange({ instructions: event.target.value })}
          onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
        />
        {type === "predicate" ? null : (
          <AreaField
            label={
              type === "choice"
                ? t("Answers to pick from, one a line")
                : t("Levels from low to high, one a line")
            }
            rows={Math.min(8, Math.max(3, values.length))}
            dir="auto"
            value={options ?? values.join("\n")}
            onChange={(event) => onOptions(event.target.value)}
          />
        )}
      </div>
    </Panel>
  )
}
