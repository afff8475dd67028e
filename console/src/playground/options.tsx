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
import { t } from "../i18n/translate.ts"

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
  const words = type === "score" ? levelWords : optionWords
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
    <div ref={rows} className="flex flex-col gap-1.5" role="group" aria-label={words.all(number)}>
      {options.map((one, index) => (
        <div
          key={one.id}
          {...drag.row(index)}
          className={`group flex items-center gap-1.5 rounded-md max-sm:flex-wrap ${drag.isTarget(index) ? "ring-accent ring-2" : ""}`}
        >
          <Handle label={words.move(index + 1)} drag={drag.handle(index)} />
          {type === "score" ? (
            <span className="text-soft number w-3 text-center text-xs">{index}</span>
          ) : null}
          <input
            aria-label={words.one(index + 1)}
            data-row={one.id}
            dir="auto"
            value={one.value}
            placeholder={words.name}
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
            aria-label={words.description(index + 1)}
            dir="auto"
            value={one.description}
            placeholder={t("what it means (optional)")}
            onChange={(event) => change(options.with(index, { ...one, description: event.target.value }))}
            // On a phone it stands below, and an empty one only while its row is edited.
            className={`control text-soft !border-line h-8 min-w-0 max-sm:order-last max-sm:ms-7.5 max-sm:basis-[calc(100%-1.875rem)] sm:flex-1 ${one.description ? "" : "max-sm:hidden max-sm:group-focus-within:block"}`}
          />
          <Button
            kind="bare"
            small
            icon="cross"
            aria-label={words.remove(index + 1)}
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
          {words.add}
        </Button>
        <LimitNote words={words} many={options.length} most={most} cut={cut} />
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
  words,
  many,
  most,
  cut,
}: {
  words: typeof optionWords
  many: number
  most: number
  /** How many pasted lines found no room. */
  cut: number | null
}): ReactNode {
  if (many < most * toldFrom) return null
  return (
    <p role="status" className={`number text-xs ${many >= most ? "text-warn" : "text-soft"}`}>
      {many >= most ? words.most(count(most), cut) : words.many(count(many), count(most))}
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
      aria-label={t("Send option {number} as a boolean", { number })}
      title={on ? t("Sent as a boolean") : t("Sent as text")}
      onClick={() => onChange(!on)}
      className={`h-6 shrink-0 rounded-full px-2 text-xs font-medium ${on ? "bg-info-wash text-info" : "bg-sunken text-soft"}`}
    >
      {on ? t("boolean") : t("text")}
    </button>
  )
}

const optionWords = {
  name: t("option"),
  add: t("Add option"),
  all: (number: number): string => t("options of question {number}", { number }),
  one: (at: number): string => t("Option {at}", { at }),
  move: (at: number): string => t("Move option {at}", { at }),
  description: (at: number): string => t("Description of option {at}", { at }),
  remove: (at: number): string => t("Remove option {at}", { at }),
  many: (many: string, most: string): string => t("{many} of {most} options", { many, most }),
  most: (most: string, cut: number | null): string =>
    cut === null
      ? t("{most} options are the most.", { most })
      : t("{most} options are the most; {cut} more did not fit.", { most, cut: count(cut) }),
}

const levelWords: typeof optionWords = {
  name: t("level"),
  add: t("Add level"),
  all: (number) => t("levels of question {number}", { number }),
  one: (at) => t("Level {at}", { at }),
  move: (at) => t("Move level {at}", { at }),
  description: (at) => t("Description of level {at}", { at }),
  remove: (at) => t("Remove level {at}", { at }),
  many: (many, most) => t("{many} of {most} levels", { many, most }),
  most: (most, cut) =>
    cut === null
      ? t("{most} levels are the most.", { most })
      : t("{most} levels are the most; {cut} more did not fit.", { most, cut: count(cut) }),
}
