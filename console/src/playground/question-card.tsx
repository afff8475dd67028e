/** One question: its text, its options, and its answer beneath. */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { Icon } from "../parts/icon.tsx"
import { Menu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { type DraftOption, type DraftQuestion, option, rowId } from "./draft.ts"
import { moved, useReorder } from "./reorder.ts"

const optionsMax = { choice: 255, score: 10 }
const optionsMin = { choice: 1, score: 2 }

export const typeNames = { predicate: "Yes or no", choice: "Pick one", score: "Score on levels" } as const

export interface QuestionCardProps {
  readonly question: DraftQuestion
  readonly number: number
  readonly last: boolean
  readonly handle: object
  readonly onChange: (question: DraftQuestion) => void
  readonly onRemove: () => void
  readonly onMove: (step: -1 | 1) => void
  readonly onCopy: (question: DraftQuestion) => void
  readonly children: ReactNode
}

export function QuestionCard(props: QuestionCardProps): ReactNode {
  const { question, number, onChange, children } = props
  return (
    <section className="panel" aria-label={`Question ${number}`}>
      <header className="flex items-center gap-1.5 px-3 pt-2.5">
        <span
          {...props.handle}
          title="Drag to order"
          aria-label={`Drag question ${number}`}
          role="img"
          className="text-soft -ml-1 cursor-grab p-1"
        >
          <Icon name="grip" />
        </span>
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
          <Options question={question} number={number} onChange={onChange} />
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

function QuestionMenu({ question, number, last, onRemove, onMove, onCopy }: QuestionCardProps): ReactNode {
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
  onChange,
}: {
  question: DraftQuestion
  number: number
  onChange: (question: DraftQuestion) => void
}): ReactNode {
  const { type, options } = question
  const word = type === "score" ? "level" : "option"
  const change = (next: readonly DraftOption[]): void => onChange({ ...question, options: next })
  const drag = useReorder((from, to) => change(moved(options, from, to)))
  const most = type === "score" ? optionsMax.score : optionsMax.choice
  const least = type === "score" ? optionsMin.score : optionsMin.choice
  return (
    <div className="flex flex-col gap-1.5" role="group" aria-label={`${word}s of question ${number}`}>
      {options.map((one, index) => (
        <div
          key={one.id}
          {...drag.row(index)}
          className={`flex items-center gap-1.5 rounded-md ${drag.isTarget(index) ? "ring-accent ring-2" : ""}`}
        >
          <span
            {...drag.handle(index)}
            title="Drag to order"
            className="text-soft cursor-grab"
            aria-hidden="true"
          >
            <Icon name="grip" className="size-3.5" />
          </span>
          {type === "score" ? (
            <span className="text-soft number w-3 text-center text-xs">{index}</span>
          ) : null}
          <input
            aria-label={`${capital(word)} ${index + 1}`}
            value={one.value}
            placeholder={word}
            onChange={(event) => change(options.with(index, { ...one, value: event.target.value }))}
            onKeyDown={(event) => {
              const step = event.altKey ? { ArrowUp: -1, ArrowDown: 1 }[event.key] : undefined
              if (step === undefined) return
              event.preventDefault()
              change(moved(options, index, index + step))
            }}
            className="control h-8 w-2/5 min-w-0"
          />
          <input
            aria-label={`Description of ${word} ${index + 1}`}
            value={one.description}
            placeholder="what it means (optional)"
            onChange={(event) => change(options.with(index, { ...one, description: event.target.value }))}
            className="control h-8 min-w-0 flex-1"
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

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)
