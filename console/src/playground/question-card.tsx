/** One question as it is written: its text and its options. */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { Menu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Handle, type Reorder } from "../parts/reorder.tsx"
import { type Api, type DraftQuestion, option, rowId } from "./draft.ts"
import { Options } from "./options.tsx"

export const typeNames = { predicate: "Yes or no", choice: "Pick one", score: "Score on levels" } as const

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
    <section className="panel" aria-label={`Question ${number}`}>
      <header className="flex items-center gap-1.5 px-3 pt-2.5">
        <Handle what={`question ${number}`} drag={props.handle} />
        <span className="text-soft text-xs font-medium whitespace-nowrap">{typeNames[question.type]}</span>
        <input
          aria-label={`Name of question ${number}`}
          placeholder="name"
          dir="auto"
          value={question.name}
          maxLength={256}
          onChange={(event) => onChange({ ...question, name: event.target.value })}
          className="text-soft hover:border-line focus:border-line ml-auto h-7 w-32 min-w-0 rounded-md border border-transparent bg-transparent px-2 text-right font-mono text-xs"
        />
        <QuestionMenu {...props} />
      </header>
      <div className="flex flex-col gap-3 px-3 pt-1.5 pb-3">
        <textarea
          id={questionFieldId(question.id)}
          aria-label={`Text of question ${number}`}
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
  predicate: "Does the customer ask for a refund?",
  choice: "What is the message about?",
  score: "How urgent is it?",
}

function QuestionMenu(props: QuestionCardProps): ReactNode {
  const { question, number, last, api, onChange, onRemove, onMove, onCopy } = props
  return (
    <Menu trigger={<Button kind="bare" small icon="dots" aria-label={`Actions for question ${number}`} />}>
      {number > 1 ? (
        <MenuItem icon="up" onSelect={() => onMove(-1)}>
          Move up
        </MenuItem>
      ) : null}
      {last ? null : (
        <MenuItem icon="down" onSelect={() => onMove(1)}>
          Move down
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
        Duplicate
      </MenuItem>
      {question.type === "choice" && api === "decisions" ? (
        <MenuItem
          icon="split"
          onSelect={() =>
            onChange({ ...question, options: ["true", "false"].map((word) => option(word, "", true)) })
          }
        >
          Options true and false
        </MenuItem>
      ) : null}
      <MenuLine />
      <MenuItem icon="trash" danger onSelect={onRemove}>
        Remove
      </MenuItem>
    </Menu>
  )
}
