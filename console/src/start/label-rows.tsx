/** The rows without a label, one after the other, each decided with a key press; and all rows with their labels. */
import type { ReactNode } from "react"
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"
import { count } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { Table } from "../parts/table.tsx"
import { LabelSelect } from "../sets/label-select.tsx"
import { type LabelValue, possibleLabels } from "../sets/labels.ts"
import { KeyButton } from "../sets/review-card.tsx"
import { type KeyedItem, type ReviewAction, keyOfOption } from "../sets/review-keys.ts"
import { useReviewKeys } from "../sets/use-review-keys.ts"
import type { StartDraft, StartRow } from "./start-draft.ts"
import { t } from "../i18n/translate.ts"

type LabellingDraft = Pick<StartDraft, "labels" | "decided">

export function LabelRows({
  question,
  rows,
  draft,
  onChange,
}: {
  question: DecisionQuestion
  rows: readonly StartRow[]
  draft: LabellingDraft
  onChange: (change: Partial<LabellingDraft>) => void
}): ReactNode {
  const current = rows.find(({ label, isSkipped }) => label === null && !isSkipped)
  const labelled = rows.filter(({ label }) => label !== null).length
  const act = (action: ReviewAction): void => onChange(decide(draft, question, current?.text, action))
  const item = keyedItem(question)
  useReviewKeys(current && item, act)
  return (
    <Panel
      title={t("3. Labels")}
      actions={
        <span role="status" className="number text-soft text-xs">
          {t("{labelled} of {rows} labelled", { labelled: count(labelled), rows: count(rows.length) })}
        </span>
      }
    >
      <div className="flex flex-col gap-4">
        <ProgressBar label={t("Labelled rows")} value={labelled} max={rows.length} />
        {current ? (
          <article aria-label={t("Row to label")} className="flex flex-col gap-3">
            <p className="text-base font-medium wrap-anywhere" dir="auto">
              {question.instructions}
            </p>
            <div
              role="region"
              aria-label={t("Text to label")}
              tabIndex={0}
              className="bg-sunken max-h-72 overflow-auto rounded-lg p-3 text-sm leading-relaxed whitespace-pre-wrap wrap-anywhere"
              dir="auto"
            >
              {current.text}
            </div>
            <div role="group" aria-label={t("The right answer")} className="flex flex-wrap gap-2">
              {item.options.map(({ value }, index) => (
                <KeyButton
                  key={String(value)}
                  letter={keyOfOption(item, index)}
                  strong
                  onClick={() => act({ kind: "label", label: value })}
                >
                  {String(value)}
                </KeyButton>
              ))}
            </div>
          </article>
        ) : (
          <p className="text-sm">{t("Every row is labelled or skipped.")}</p>
        )}
        <div className="border-line flex flex-wrap gap-2 border-t pt-3">
          <KeyButton letter="s" disabled={!current} onClick={() => act({ kind: "skip" })}>
            {t("Skip")}
          </KeyButton>
          <KeyButton letter="u" disabled={draft.decided.length === 0} onClick={() => act({ kind: "undo" })}>
            {t("Undo")}
          </KeyButton>
        </div>
        <details>
          <summary className="text-soft cursor-pointer text-sm">{t("All rows with their labels")}</summary>
          <div className="mt-2">
            <Table
              label={t("Rows")}
              rows={rows}
              rowKey={({ text }) => text}
              columns={[
                {
                  name: t("Text"),
                  long: true,
                  cell: ({ text }) => (
                    <span dir="auto" className="line-clamp-2">
                      {text}
                    </span>
                  ),
                },
                {
                  name: t("Label"),
                  cell: ({ text, label }) => (
                    <LabelSelect
                      label={t("Label of “{value}”", { value: text.slice(0, 80) })}
                      asked={question}
                      value={label}
                      onChange={(value) => onChange({ labels: { ...draft.labels, [text]: value } })}
                    />
                  ),
                },
              ]}
            />
          </div>
        </details>
      </div>
    </Panel>
  )
}

/** In the form of an answer to review, whose keys are the same. */
const keyedItem = (question: DecisionQuestion): KeyedItem => ({
  kind: question.type,
  options: possibleLabels(question).map(({ name }) => ({ value: name, description: "" })),
})

function decide(
  { labels, decided }: LabellingDraft,
  question: DecisionQuestion,
  text: string | undefined,
  action: ReviewAction,
): Partial<LabellingDraft> {
  if (action.kind === "undo") {
    const { [decided.at(-1) ?? ""]: _, ...others } = labels
    return { labels: others, decided: decided.slice(0, -1) }
  }
  if (text === undefined) return {}
  const label = action.kind === "label" ? valueOf(question, action.label) : null
  return { labels: { ...labels, [text]: label }, decided: [...decided, text] }
}

const valueOf = (question: DecisionQuestion, name: LabelValue): LabelValue | null =>
  possibleLabels(question).find((one) => one.name === name)?.value ?? null
