/** The questions of a draft as cards: added, ordered, copied and removed. */
import { type ReactNode, useRef } from "react"
import { Button } from "../parts/button.tsx"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { moved } from "../parts/moved.ts"
import { MoveStatus, useReorder } from "../parts/reorder.tsx"
import { type Draft, type DraftQuestion, type QuestionType, question, questionTypes } from "./draft.ts"
import { QuestionCard, questionFieldId, typeNames } from "./question-card.tsx"
import { t } from "../i18n/translate.ts"

export function Questions({
  draft,
  onChange,
  onRemove,
  settings,
  actions,
}: {
  draft: Draft
  onChange: (draft: Draft) => void
  onRemove: (questions: Draft["questions"], what: string) => void
  /** What else is set for each question. */
  settings?: (question: DraftQuestion, number: number) => ReactNode
  /** More buttons beside the one that adds a question. */
  actions?: ReactNode
}): ReactNode {
  const { questions } = draft
  const put = (next: Draft["questions"]): void => onChange({ ...draft, questions: next })
  const drag = useReorder(questions.length, (from, to) => put(moved(questions, from, to)))
  const added = useRef<string | null>(null)
  const add = (type: QuestionType): void => {
    const next = question(type)
    added.current = next.id
    put([...questions, next])
  }
  /** The menu gives the focus back to its button; a new question takes it instead. */
  const focusAdded = (event: Event): void => {
    if (added.current === null) return
    event.preventDefault()
    document.getElementById(questionFieldId(added.current))?.focus()
    added.current = null
  }
  return (
    <section aria-label={t("Questions")} className="flex flex-col gap-3">
      {questions.map((one, index) => (
        <div
          key={one.id}
          {...drag.row(index)}
          className={drag.isTarget(index) ? "ring-accent rounded-xl ring-2" : ""}
        >
          <QuestionCard
            question={one}
            number={index + 1}
            last={index === questions.length - 1}
            api={draft.api}
            handle={drag.handle(index)}
            onChange={(next) => put(questions.with(index, next))}
            onRemove={() =>
              onRemove(
                questions.toSpliced(index, 1),
                t("Question {index} was removed.", { index: index + 1 }),
              )
            }
            onMove={(step) => put(moved(questions, index, index + step))}
            onCopy={(copy) => put(questions.toSpliced(index + 1, 0, copy))}
            settings={settings?.(one, index + 1)}
          />
        </div>
      ))}
      <MoveStatus drag={drag} />
      <div className="flex flex-wrap gap-2">
        <Menu align="start" onClosed={focusAdded} trigger={<Button icon="plus">{t("Add question")}</Button>}>
          {questionTypes.map((type) => (
            <MenuItem key={type} onSelect={() => add(type)}>
              {typeNames[type]}
            </MenuItem>
          ))}
        </Menu>
        {actions}
      </div>
    </section>
  )
}
