/** One question as it is written: its text and its options. */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { Menu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Handle, type Reorder } from "../parts/reorder.tsx"
import { type Api, type DraftQuestion, option, rowId } from "./draft.ts"
import { Options } from "./options.tsx"
import { t } from "../i18n/translate.ts"

export const typeNames = {
  predicate: t("Yes or no"),
  choice: t("Pick one"),
  score: t("Score on levels"),
} as const

interface QuestionCardProps {
  readonly question: DraftQuestion
  readonly number: number
  readonly last: boolean
  /** Booleans as options are for decisions only: System One names its options. */
  readonly api: Api
  readonly handle: ReturnType<Reorder["handle"]>
  readonly onChange: (question: DraftQuestion) => void
  readonly onRemove: () => void
  readonly onMove: (step: -1 | 1) => void
  readonly onCopy: (question: DraftQuestion) => void
  /** What else is set for the question, below its options. */
  readonly settings?: ReactNode
}

export function QuestionCard(props: QuestionCardProps): ReactNode {
  const { question, number, api, onChange } = props
  return (
    <section className="panel" aria-label={t("Question {number}", { number })}>
      <header className="flex items-center gap-1.5 px-3 pt-2.5">
        <Handle label={t("Move question {number}", { number })} drag={props.handle} />
        <span className="text-soft text-xs font-medium whitespace-nowrap">{typeNames[question.type]}</span>
        <input
          aria-label={t("Name of question {number}", { number })}
          placeholder={t("name")}
          dir="auto"
          value={question.name}
          maxLength={256}
          onChange={(event) => onChange({ ...question, name: event.target.value })}
          className="text-soft hover:border-line focus:border-line ms-auto h-7 w-32 min-w-0 rounded-md border border-transparent bg-transparent px-2 text-end font-mono text-xs"
        />
        <QuestionMenu {...props} />
      </header>
      <div className="flex flex-col gap-3 px-3 pt-1.5 pb-3">
        <textarea
          id={questionFieldId(question.id)}
          aria-label={t("Text of question {number}", { number })}
          dir="auto"
          rows={1}
          placeholder={placeholders[question.type]}
          value={question.instructions}
          onChange={(event) => onChange({ ...question, instructions: event.target.value })}
          className="control field-sizing-content min-h-9 resize-none text-[15px]"
        />
        {question.type === "predicate" ? null : (
          <Options question={question} number={number} api={api} onChange={onChange} />
        )}
        {props.settings}
      </div>
    </section>
  )
}

/** By which a new question's field is found, to write in it at once. */
export const questionFieldId = (id: string): string => `question-${id}`

const placeholders = {
  predicate: t("Does the customer ask for a refund?"),
  choice: t("What is the message about?"),
  score: t("How urgent is it?"),
}

function QuestionMenu(props: QuestionCardProps): ReactNode {
  const { question, number, last, api, onChange, onRemove, onMove, onCopy } = props
  return (
    <Menu
      trigger={
        <Button kind="bare" small icon="dots" aria-label={t("Actions for question {number}", { number })} />
      }
    >
      {number > 1 ? (
        <MenuItem icon="up" onSelect={() => onMove(-1)}>
          {t("Move up")}
        </MenuItem>
      ) : null}
      {last ? null : (
        <MenuItem icon="down" onSelect={() => onMove(1)}>
          {t("Move down")}
        </MenuItem>
      )}
      <MenuItem
        icon="copy"
        onSelect={() =>
          onCopy({
            ...question,
            id: rowId(),
            name: "",
            options: question.options.map((one) => ({ ...one, id: rowId() })),
          })
        }
      >
        {t("Duplicate")}
      </MenuItem>
      {question.type === "choice" && api === "decisions" ? (
        <MenuItem
          icon="split"
          onSelect={() =>
            onChange({ ...question, options: ["true", "false"].map((word) => option(word, "", true)) })
          }
        >
          {t("Options true and false")}
        </MenuItem>
      ) : null}
      <MenuLine />
      <MenuItem icon="trash" danger onSelect={onRemove}>
        {t("Remove")}
      </MenuItem>
    </Menu>
  )
}
