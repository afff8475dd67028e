/** The labelled rows of a set: uploaded, labelled in place, and deleted. */
import { type ReactNode, useState } from "react"
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { Example } from "../../../src/contract/question-sets/examples.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ErrorText } from "../parts/error-text.tsx"
import { percent } from "../parts/format.ts"
import { ActionsMenu, MenuItem } from "../parts/menu.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Empty, Loaded, Notice } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useSettled } from "../parts/use-settled.ts"
import { AddLabelledText } from "./add-labelled-text.tsx"
import { LabelSelect } from "./label-select.tsx"
import { type LabelValue, labelName } from "./labels.ts"
import { type SetAddress, examplesKey, setsKey } from "./set-query.ts"
import { UploadExamples } from "./upload-examples.tsx"
import { t } from "../i18n/translate.ts"

export function ExamplesTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const [deleting, setDeleting] = useState<Example | null>(null)
  const [adding, setAdding] = useState(false)
  const freeze = useFreeze(at)
  const [typed, setTyped] = useState("")
  const text = useSettled(typed.trim())
  const examples = usePages(
    [...examplesKey(at), "list", text],
    async (page) =>
      await api.listQuestionSetExamples({ params: at, query: { ...page, ...(text ? { text } : {}) } }),
  )
  if (set.questions.length === 0)
    return <Notice tone="info">{t("Examples label the questions of a set, and this set has none.")}</Notice>
  return (
    <div className="flex flex-col gap-4">
      <UploadExamples set={set} at={at} />
      <div className="flex flex-wrap items-center justify-between gap-3">
        <input
          type="search"
          aria-label={t("Search the texts of examples")}
          placeholder={t("Search the texts")}
          maxLength={200}
          className="control max-w-xs"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button icon="plus" onClick={() => setAdding(true)}>
          {t("Add example")}
        </Button>
      </div>
      <ErrorNotice error={freeze.error} />
      {freeze.data ? <Notice tone="good">{t("Frozen: see Cases.")}</Notice> : null}
      <Loaded query={examples} label={t("Loading examples")}>
        {(rows) =>
          rows.length === 0 && text ? (
            <div className="panel">
              <Empty icon="search" title={t("No example with “{value}”", { value: text })}>
                {examples.hasNextPage ? t("So far: the set has more examples than one search reads.") : null}
              </Empty>
            </div>
          ) : rows.length === 0 ? (
            <div className="panel">
              <Empty icon="list" title={t("No examples yet")}>
                {t(
                  "Twenty labelled rows begin to teach a question, 60 teach it much. Every row is learned from.",
                )}
              </Empty>
            </div>
          ) : (
            <ExampleTable
              rows={rows}
              questions={set.questions}
              at={at}
              onDelete={setDeleting}
              onFreeze={freeze.mutate}
            />
          )
        }
      </Loaded>
      <MoreButton query={examples} />
      {adding ? <AddLabelledText kind="example" set={set} at={at} onClose={() => setAdding(false)} /> : null}
      {deleting ? (
        <ConfirmDialog
          title={t("Delete this example?")}
          submit={t("Delete example")}
          act={async () => await api.deleteQuestionSetExample({ params: { ...at, example_id: deleting.id } })}
          refreshes={[setsKey(at.org_id)]}
          onClose={() => setDeleting(null)}
        >
          {t("“{shortened}” is removed. What was taught with it stays until the set is taught again.", {
            shortened: shortened(deleting.input),
          })}
        </ConfirmDialog>
      ) : null}
    </div>
  )
}

/** An example whose labels every version must answer from now on. */
const useFreeze = (at: SetAddress) =>
  useWrite(
    async ({ input, labels }: Example) =>
      await api.addQuestionSetCases({ params: at, body: { cases: [{ input, expected: labels }] } }),
    [setsKey(at.org_id)],
  )

const shownCharacters = 120
const shortened = (text: string): string =>
  text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text

function ExampleTable({
  rows,
  questions,
  at,
  onDelete,
  onFreeze,
}: {
  rows: readonly Example[]
  questions: readonly SetQuestion[]
  at: SetAddress
  onDelete: (example: Example) => void
  onFreeze: (example: Example) => void
}): ReactNode {
  return (
    <Table
      label={t("Examples")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Text"),
          cell: ({ input }) => (
            <span dir="auto" className="line-clamp-3 max-w-2xl" title={shortened(input)}>
              {input}
            </span>
          ),
        },
        ...questions.map((asked) => ({
          name: asked.name,
          cell: (example: Example) => <ExampleLabel example={example} asked={asked} at={at} />,
        })),
        actionsColumn(true, (example: Example) => (
          <ActionsMenu of={shortened(example.input)}>
            {Object.keys(example.labels).length > 0 ? (
              <MenuItem icon="lock" onSelect={() => onFreeze(example)}>
                {t("Freeze as case")}
              </MenuItem>
            ) : null}
            <MenuItem icon="trash" danger onSelect={() => onDelete(example)}>
              {t("Delete")}
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}

function ExampleLabel({
  example,
  asked,
  at,
}: {
  example: Example
  asked: SetQuestion
  at: SetAddress
}): ReactNode {
  const write = useWrite(
    async (label: LabelValue | null) =>
      await api.updateQuestionSetExample({
        params: { ...at, example_id: example.id },
        body: { labels: { [asked.name]: label } },
      }),
    [examplesKey(at)],
  )
  const taught = example.teacher_labels[asked.name]
  return (
    <>
      <LabelSelect
        label={t("{name} of “{shortened}”", { name: asked.name, shortened: shortened(example.input) })}
        asked={asked}
        disabled={write.isPending}
        value={write.isPending ? write.variables : (example.labels[asked.name] ?? null)}
        onChange={(label) => write.mutate(label)}
      />
      {taught ? (
        <span className="text-soft number block text-xs" dir="auto">
          {t("{model} says {answer}", { model: taught.model, answer: labelName(asked, taught.label) })}
          {taught.confidence === null ? "" : ` (${percent(taught.confidence)})`}
        </span>
      ) : null}
      {write.error ? (
        <span role="alert" className="text-bad block text-xs">
          <ErrorText error={write.error} />
        </span>
      ) : null}
    </>
  )
}
