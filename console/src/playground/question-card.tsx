/** One question: its text, its options, and its answer beneath. */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { Menu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { moved } from "../parts/moved.ts"
import { Handle, MoveStatus, type Reorder, useReorder } from "../parts/reorder.tsx"
import {
  type Api,
  type DraftOption,
  type DraftQuestion,
  isBooleanWord,
  isSentAsBoolean,
  option,
  rowId,
} from "./draft.ts"

const optionsMax = { choice: 255, score: 10 }
const optionsMin = { choice: 1, score: 2 }

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
  readonly children: ReactNode
}

export function QuestionCard(props: QuestionCardProps): ReactNode {
  const { question, number, api, onChange, children } = props
  return (
    <section className="panel" aria-label={`Question ${number}`}>
      <header className="flex items-center gap-1.5 px-3 pt-2.5">
        <Handle what={`question ${number}`} drag={props.handle} />
        <span className="text-soft text-xs font-medium whitespace-nowrap">{typeNames[question.type]}</span>
        <input
          aria-label={`Name of question ${number}`}
          placeholder="name"
          value={question.name}
          maxLength={256}
          onChange={(event) => onChange({ ...question, name: event.target.value })}
          className="text-soft hover:border-line focus:border-line ml-auto h-7 w-32 min-w-0 rounded-md border border-transparent bg-transparent px-2 text-right font-mono text-xs"
        />
        <QuestionMenu {...props} />
      </header>
      <div className="flex flex-col gap-3 px-3 pt-1.5 pb-3">
        <textarea
          aria-label={`Text of question ${number}`}
          rows={1}
          placeholder={placeholders[question.type]}
          value={question.instructions}
          onChange={(event) => onChange({ ...question, instructions: event.target.value })}
          className="control field-sizing-content min-h-9 resize-none text-[15px]"
        />
        {question.type === "predicate" ? null : (
          <Options question={question} number={number} api={api} onChange={onChange} />
        )}
        {children}
      </div>
    </section>
  )
}

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

function Options({
  question,
  number,
  api,
  onChange,
}: {
  question: DraftQuestion
  number: number
  api: Api
  onChange: (question: DraftQuestion) => void
}): ReactNode {
  const { type, options } = question
  const word = type === "score" ? "level" : "option"
  const change = (next: readonly DraftOption[]): void => onChange({ ...question, options: next })
  const drag = useReorder(options.length, (from, to) => change(moved(options, from, to)))
  const most = type === "score" ? optionsMax.score : optionsMax.choice
  const least = type === "score" ? optionsMin.score : optionsMin.choice
  return (
    <div className="flex flex-col gap-1.5" role="group" aria-label={`${word}s of question ${number}`}>
      {options.map((one, index) => (
        <div
          key={one.id}
          {...drag.row(index)}
          className={`group flex items-center gap-1.5 rounded-md max-sm:flex-wrap ${drag.isTarget(index) ? "ring-accent ring-2" : ""}`}
        >
          <Handle what={`${word} ${index + 1}`} drag={drag.handle(index)} />
          {type === "score" ? (
            <span className="text-soft number w-3 text-center text-xs">{index}</span>
          ) : null}
          <input
            aria-label={`${capital(word)} ${index + 1}`}
            value={one.value}
            placeholder={word}
            onChange={(event) => change(options.with(index, { ...one, value: event.target.value }))}
            onKeyDown={drag.altKeys(index)}
            className={`control h-8 min-w-0 max-sm:flex-1 sm:w-2/5 ${api === "decisions" && isSentAsBoolean(one) ? "font-mono" : ""}`}
          />
          {type === "choice" && api === "decisions" && isBooleanWord(one.value) ? (
            <BooleanSwitch
              number={index + 1}
              on={one.boolean}
              onChange={(boolean) => change(options.with(index, { ...one, boolean }))}
            />
          ) : null}
          <input
            aria-label={`Description of ${word} ${index + 1}`}
            value={one.description}
            placeholder="what it means (optional)"
            onChange={(event) => change(options.with(index, { ...one, description: event.target.value }))}
            // On a phone it stands below, and an empty one only while its row is edited.
            className={`control text-soft !border-line h-8 min-w-0 max-sm:order-last max-sm:ml-7.5 max-sm:basis-[calc(100%-1.875rem)] sm:flex-1 ${one.description ? "" : "max-sm:hidden max-sm:group-focus-within:block"}`}
          />
          <Button
            kind="bare"
            small
            icon="cross"
            aria-label={`Remove ${word} ${index + 1}`}
            disabled={options.length <= least}
            onClick={() => change(options.toSpliced(index, 1))}
          />
        </div>
      ))}
      <MoveStatus drag={drag} />
      <Button
        kind="bare"
        small
        icon="plus"
        className="self-start"
        disabled={options.length >= most}
        onClick={() => change([...options, option("")])}
      >
        Add {word}
      </Button>
    </div>
  )
}

/** The contract tells the boolean true from the text "true". */
function BooleanSwitch({
  number,
  on,
  onChange,
}: {
  number: number
  on: boolean
  onChange: (on: boolean) => void
}): ReactNode {
  return (
    <button
      type="button"
      aria-pressed={on}
      aria-label={`Send option ${number} as a boolean`}
      title={on ? "Sent as a boolean" : "Sent as text"}
      onClick={() => onChange(!on)}
      className={`h-6 shrink-0 rounded-full px-2 text-xs font-medium ${on ? "bg-info-wash text-info" : "bg-sunken text-soft"}`}
    >
      {on ? "boolean" : "text"}
    </button>
  )
}

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)
