/** The options of a choice or the levels of a score: written, pasted as lines, ordered and removed. */
import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react"
import { LIMITS } from "../../../src/contract/decisions.ts"
import { Button } from "../parts/button.tsx"
import { count } from "../parts/format.ts"
import { moved } from "../parts/moved.ts"
import { Handle, MoveStatus, useReorder } from "../parts/reorder.tsx"
import {
  type Api,
  type DraftOption,
  type DraftQuestion,
  isBooleanWord,
  isSentAsBoolean,
  option,
} from "./draft.ts"
import { pastedOptions } from "./pasted-options.ts"

const bounds = {
  choice: { least: 1, most: LIMITS.optionsMax },
  score: { least: LIMITS.levelsMin, most: LIMITS.levelsMax },
} as const
/** From this share of the limit on, the limit is told. */
const toldFrom = 0.8

export function Options({
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
  const { options } = question
  const type = question.type === "score" ? "score" : "choice"
  const word = type === "score" ? "level" : "option"
  const { least, most } = bounds[type]
  const change = (next: readonly DraftOption[]): void => onChange({ ...question, options: next })
  const drag = useReorder(options.length, (from, to) => change(moved(options, from, to)))
  const rows = useRef<HTMLDivElement>(null)
  const [cut, setCut] = useState<number | null>(null)
  const focusNext = useFocusRow(rows, options)
  const put = (at: number, given: readonly DraftOption[], replaced = 0): void => {
    const room = most - options.length + replaced
    const taken = given.slice(0, room)
    setCut(taken.length < given.length ? given.length - taken.length : null)
    if (taken.length === 0) return
    focusNext(taken.at(-1)?.id)
    change(options.toSpliced(at, replaced, ...taken))
  }
  const paste = (event: ClipboardEvent, index: number): void => {
    const lines = pastedOptions(event.clipboardData.getData("text/plain"))
    if (!lines) return
    event.preventDefault()
    // Into an empty row they come in its place, otherwise behind it.
    const empty = options[index]?.value === ""
    put(empty ? index : index + 1, lines, empty ? 1 : 0)
  }
  const press = (event: KeyboardEvent<HTMLInputElement>, index: number): void => {
    drag.altKeys(index)(event)
    if (event.nativeEvent.isComposing || event.metaKey || event.ctrlKey) return
    if (event.key === "Enter") {
      event.preventDefault()
      put(index + 1, [option("")])
    }
    if (event.key === "Backspace" && event.currentTarget.value === "" && options.length > least) {
      event.preventDefault()
      focusNext(options[index === 0 ? 1 : index - 1]?.id)
      change(options.toSpliced(index, 1))
    }
  }
  return (
    <div
      ref={rows}
      className="flex flex-col gap-1.5"
      role="group"
      aria-label={`${word}s of question ${number}`}
    >
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
            data-row={one.id}
            dir="auto"
            value={one.value}
            placeholder={word}
            onChange={(event) => change(options.with(index, { ...one, value: event.target.value }))}
            onKeyDown={(event) => press(event, index)}
            onPaste={(event) => paste(event, index)}
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
            dir="auto"
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
      <div className="flex items-center justify-between gap-3">
        <Button
          kind="bare"
          small
          icon="plus"
          disabled={options.length >= most}
          onClick={() => put(options.length, [option("")])}
        >
          Add {word}
        </Button>
        <LimitNote word={word} many={options.length} most={most} cut={cut} />
      </div>
    </div>
  )
}

/** Focuses a row's field as soon as the row is there. */
function useFocusRow(rows: { readonly current: HTMLElement | null }, options: readonly DraftOption[]) {
  const wanted = useRef<string | null>(null)
  useEffect(() => {
    if (wanted.current === null) return
    const field = rows.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"]`)
    if (!field) return
    wanted.current = null
    field.focus()
  }, [rows, options])
  return (id: string | undefined): void => {
    wanted.current = id ?? null
  }
}

function LimitNote({
  word,
  many,
  most,
  cut,
}: {
  word: string
  many: number
  most: number
  /** How many pasted lines found no room. */
  cut: number | null
}): ReactNode {
  if (many < most * toldFrom) return null
  const left = cut === null ? "" : `; ${count(cut)} more did not fit`
  return (
    <p role="status" className={`number text-xs ${many >= most ? "text-warn" : "text-soft"}`}>
      {many >= most
        ? `${count(most)} ${word}s are the most${left}.`
        : `${count(many)} of ${count(most)} ${word}s`}
    </p>
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
