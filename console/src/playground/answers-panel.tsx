/** The answers, one line for each question from the start, so that nothing moves when they come; a line opens on demand. */
import { type ReactNode, useState } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { SequenceLink } from "../analytics/sequence-link.tsx"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { ErrorText } from "../parts/error-text.tsx"
import { count, languageName, milliseconds, smallDollars } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { Notice } from "../parts/page.tsx"
import { AnswerDetails, AnswerLine, likelihoodOf, verdictOf } from "./answer-view.tsx"
import type { Answered } from "./ask.ts"
import type { Answer, DraftQuestion } from "./draft.ts"
import { measuresOf, worthOf } from "./measured.ts"
import type { Outcome, Run } from "./run.ts"
import type { AnsweredStage } from "./stages.ts"
import { t, tn } from "../i18n/translate.ts"

export function AnswersPanel({
  questions,
  models,
  catalog,
  run,
  stale,
  busy,
}: {
  questions: readonly DraftQuestion[]
  /** Those that are asked next: one, or two to compare. */
  models: readonly string[]
  catalog: readonly OrgModel[]
  run: Run | null
  /** The draft has changed since it was asked. */
  stale: boolean
  busy: boolean
}): ReactNode {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const answered = run?.outcomes.flatMap((outcome) => ("answered" in outcome ? [outcome.answered] : [])) ?? []
  const ids = questions.map(({ id }) => id)
  const all = ids.every((id) => open.has(id))
  const columns = run ? answered.map(({ model }) => model) : models
  return (
    <section className="panel" aria-label={t("Answers")}>
      <header className="flex h-11 items-center justify-between gap-2 px-3">
        <h2 className="text-sm font-semibold">{t("Answers")}</h2>
        {run && answered.length > 0 ? (
          <div className="flex gap-1">
            <CopyButton bare label={t("Copy answers")} text={answersText(run.draft.questions, answered)} />
            <Button kind="bare" small onClick={() => setOpen(new Set(all ? [] : ids))}>
              {all ? t("Collapse all") : t("Expand all")}
            </Button>
          </div>
        ) : null}
      </header>
      {columns.length > 1 ? <ModelNames models={columns} /> : null}
      <ol
        className={`divide-line border-line divide-y border-t transition-[opacity,filter] lg:max-h-[60dvh] lg:overflow-y-auto ${stale || busy ? "opacity-85 grayscale" : ""}`}
      >
        {questions.map((question, index) => (
          <AnswerRow
            key={question.id}
            number={index + 1}
            question={question}
            run={run}
            answered={answered}
            catalog={catalog}
            open={open.has(question.id)}
            onOpen={(wanted) => setOpen(toggled(open, question.id, wanted))}
          />
        ))}
      </ol>
      <footer
        className="border-line flex flex-col gap-2 border-t px-3 py-2.5"
        role="status"
        aria-label={t("Result")}
      >
        {run ? (
          run.outcomes.map((outcome, index) => <OutcomeView key={index} outcome={outcome} />)
        ) : (
          <Figures answered={null} sequenceId={null} />
        )}
        {stale ? (
          <p className="text-soft text-xs">{t("Changed since: decide again to refresh the answers.")}</p>
        ) : null}
      </footer>
    </section>
  )
}

function toggled(open: ReadonlySet<string>, id: string, wanted: boolean): Set<string> {
  const next = new Set(open)
  if (wanted) next.add(id)
  else next.delete(id)
  return next
}

/** A line for each question as it was asked, with a column for each model: what a sheet takes. */
const answersText = (asked: readonly DraftQuestion[], answered: readonly Answered[]): string =>
  asked
    .map((question, index) => {
      const given = answered.map(({ answers }) => {
        const { word, aside } = verdictOf({ answer: answers[index] ?? null, options: question.options })
        return aside ? `${word} (${aside})` : word
      })
      return [titleOf(question, index + 1), ...given].map((cell) => cell.replaceAll(/\s+/g, " ")).join("\t")
    })
    .join("\n")

const titleOf = ({ name, instructions }: DraftQuestion, number: number): string =>
  name.trim() || instructions.trim() || t("Question {number}", { number })

const titleWidth = "w-[32%] shrink-0"
const comparedColumns = "grid min-w-0 flex-1 gap-x-4 gap-y-1 sm:grid-cols-2"

/** Above the answers of two models: whose they are, in the same order. */
function ModelNames({ models }: { models: readonly string[] }): ReactNode {
  return (
    <div className="border-line text-soft flex items-center gap-2 border-t px-3 py-1.5 text-xs">
      <span className="size-3.5 shrink-0" />
      <span className={titleWidth}>{t("Model")}</span>
      <span className={comparedColumns}>
        {models.map((model, column) => (
          <span key={column} className="text-ink truncate font-medium" title={model}>
            {model}
          </span>
        ))}
      </span>
    </div>
  )
}

/** The answers to a question as it was asked, which may since have changed. */
function AnswerRow({
  number,
  question,
  run,
  answered,
  catalog,
  open,
  onOpen,
}: {
  number: number
  question: DraftQuestion
  run: Run | null
  /** One per model that answered. */
  answered: readonly Answered[]
  catalog: readonly OrgModel[]
  open: boolean
  onOpen: (open: boolean) => void
}): ReactNode {
  const index = run?.draft.questions.findIndex(({ id }) => id === question.id) ?? -1
  const asked = run?.draft.questions[index]
  const given = asked
    ? answered.map(({ answers }) => ({ answer: answers[index] ?? null, options: asked.options }))
    : []
  const has = given.length > 0
  const shown = has && open
  const title = titleOf(question, number)
  return (
    <li>
      <div role="group" aria-label={t("Answer to question {number}", { number })}>
        <button
          type="button"
          disabled={!has}
          aria-expanded={shown}
          onClick={() => onOpen(!open)}
          className="hover:not-disabled:bg-sunken/60 flex min-h-10 w-full cursor-pointer items-center gap-2 px-3 py-1.5 text-start disabled:cursor-default"
        >
          <Icon
            name="down"
            className={`text-soft size-3.5 transition-transform ${shown ? "" : "-rotate-90"} ${has ? "" : "invisible"}`}
          />
          <span dir="auto" className={`text-soft truncate text-[13px] ${titleWidth}`} title={title}>
            {title}
          </span>
          <span className={given.length > 1 ? comparedColumns : "grid min-w-0 flex-1"}>
            {has ? (
              given.map((one, column) => <AnswerLine key={column} {...one} bar={given.length === 1} />)
            ) : (
              <span className="text-soft text-sm">–</span>
            )}
          </span>
        </button>
        {shown ? (
          <div className="flex flex-col gap-4 px-3 pt-1 pb-3">
            {given.map((one, column) => (
              <div key={column} className="min-w-0">
                {given.length > 1 ? (
                  <p className="text-soft mb-1 flex items-center gap-1 text-xs">
                    <Icon name="layers" className="size-3" /> {answered[column]?.model}
                  </p>
                ) : null}
                <AnswerDetails {...one} worth={worthIn(catalog, answered[column]?.model, one.answer)} />
              </div>
            ))}
          </div>
        ) : null}
      </div>
    </li>
  )
}

function worthIn(
  catalog: readonly OrgModel[],
  model: string | undefined,
  answer: Answer | null,
): string | null {
  const measures = measuresOf(catalog.find(({ model_sku }) => model_sku === model))
  const likelihood = likelihoodOf(answer)
  return measures && answer && likelihood !== null ? worthOf(measures, answer.type, likelihood) : null
}

function OutcomeView({ outcome }: { outcome: Outcome }): ReactNode {
  if ("answered" in outcome) return <Figures answered={outcome.answered} sequenceId={outcome.sequenceId} />
  return (
    <Notice tone="bad">
      <ErrorText error={outcome.error} />
      {outcome.sequenceId ? (
        <span className="mt-1 block text-xs">
          {t("Recorded as")} <SequenceLink id={outcome.sequenceId} />
        </span>
      ) : null}
    </Notice>
  )
}

function Figures({
  answered,
  sequenceId,
}: {
  /** Null before anything was asked: the place is kept. */
  answered: Answered | null
  sequenceId: string | null
}): ReactNode {
  const figures: readonly (readonly [string, string])[] = answered
    ? [
        [t("Tokens"), count(answered.inputTokens)],
        [t("Latency"), milliseconds(answered.latencyMs)],
        [t("Cost"), answered.costUsd === null ? "–" : smallDollars(answered.costUsd)],
      ]
    : [t("Tokens"), t("Latency"), t("Cost")].map((name) => [name, "–"])
  return (
    <div className="text-xs">
      <dl className="number flex flex-wrap gap-x-4 gap-y-1">
        {figures.map(([name, value]) => (
          <div key={name} className="flex gap-1.5">
            <dt className="text-soft">{name}</dt>
            <dd className="font-medium">{value}</dd>
          </div>
        ))}
        {answered?.language === undefined ? null : (
          <div>
            <dt className="sr-only">{t("Language")}</dt>
            <dd className="font-medium">{languageName(answered.language)}</dd>
          </div>
        )}
      </dl>
      {answered?.stages && answered.stages.length > 0 ? <StageList stages={answered.stages} /> : null}
      <p className="text-soft mt-1 flex h-4 gap-x-3">
        <span className="truncate">{answered?.model}</span>
        {sequenceId ? (
          <span className="ms-auto shrink-0 truncate">
            <span className="max-sm:sr-only">{t("Recorded as")} </span>
            <SequenceLink id={sequenceId} />
          </span>
        ) : null}
      </p>
    </div>
  )
}

/** Who was asked how much, in order. */
function StageList({ stages }: { stages: readonly AnsweredStage[] }): ReactNode {
  return (
    <ol className="mt-1 flex flex-wrap gap-x-3 gap-y-1" aria-label={t("Stages")}>
      {stages.map(({ model, result, questions, tokens }, index) => (
        <li key={index} className="flex items-center gap-1">
          <Icon name="layers" className="text-soft size-3" />
          <span className="font-medium">{model}</span>
          <span className="text-soft number">
            {result === "success"
              ? tn(questions, "{count} question, {tokens} tokens", "{count} questions, {tokens} tokens", {
                  tokens: count(tokens),
                })
              : result}
          </span>
        </li>
      ))}
    </ol>
  )
}
