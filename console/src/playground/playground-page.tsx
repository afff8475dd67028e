/** The playground: evidence on the left, questions on the right, answers beneath each question. */
import { useQuery } from "@tanstack/react-query"
import { type Dispatch, type ReactNode, type SetStateAction, useEffect, useRef, useState } from "react"
import { rememberSequence } from "../analytics/recent.ts"
import { SequenceLink } from "../analytics/sequence-link.tsx"
import { sentenceOf } from "../api.ts"
import { Button, copyText } from "../parts/button.tsx"
import { ErrorText } from "../parts/error-text.tsx"
import { Segments } from "../parts/field.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, milliseconds, smallDollars } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { Notice } from "../parts/page.tsx"
import { moved } from "../parts/moved.ts"
import { MoveStatus, useReorder } from "../parts/reorder.tsx"
import { Onboarding } from "../shell/onboarding.tsx"
import { modelsQuery, useBrowserStorage, useOrganization } from "../session.ts"
import { AnswerView } from "./answer-view.tsx"
import { type Answered, type AskOptions, ask } from "./ask.ts"
import { CodeDialog } from "./code-dialog.tsx"
import { type Api, type Draft, question, questionTypes, whatIsMissing } from "./draft.ts"
import { EvidencePane } from "./evidence-pane.tsx"
import { examples } from "./examples.ts"
import { HistoryDialog } from "./history-dialog.tsx"
import { addToHistory, keepDraft, keptDraft, packDraft, unpackDraft } from "./keep.ts"
import { ModelSelect } from "./model-select.tsx"
import { QuestionCard, typeNames } from "./question-card.tsx"

/** What one model answered, and the id of the request's record where one was begun. */
type Outcome = ({ readonly answered: Answered } | { readonly error: unknown }) & {
  readonly sequenceId: string | null
}
interface Run {
  readonly draft: Draft
  /** One per model asked. */
  readonly outcomes: readonly Outcome[]
}

const apis: readonly { value: Api; label: string }[] = [
  { value: "decisions", label: "Decisions" },
  { value: "systemone", label: "System One" },
]

export function PlaygroundPage(): ReactNode {
  const { id: orgId } = useOrganization()
  const models = useQuery(modelsQuery(orgId)).data ?? []
  const [draft, change] = useDraft(
    models.find(({ status, model_kind }) => status === "active" && model_kind === "generation")?.model_sku,
  )
  const { run, busy, start, cancel } = useRun(draft, orgId, models)
  const [dialog, setDialog] = useState<"code" | "history" | null>(null)
  const missing = whatIsMissing(draft)
  const stale =
    run !== null && (run.draft.questions !== draft.questions || run.draft.evidence !== draft.evidence)
  useRunKey(() => missing === null && !busy && start())
  return (
    <div className="mx-auto flex w-full max-w-7xl flex-col gap-4 px-4 py-5 sm:px-6">
      <header className="flex flex-wrap items-center gap-x-2 gap-y-3">
        <div className="flex items-center gap-2 max-sm:w-full max-sm:justify-between">
          <h1 className="mr-3 text-xl font-semibold tracking-tight">Playground</h1>
          <Segments
            label="Endpoint"
            value={draft.api}
            options={apis}
            onChange={(api) => change((latest) => ({ ...latest, api }))}
          />
        </div>
        <div className="flex flex-wrap items-center gap-2 max-sm:w-full">
          <ModelSelect
            label="Model"
            models={models}
            value={draft.model}
            onChange={(model) => change((latest) => ({ ...latest, model }))}
          />
          <Rival draft={draft} models={models} onChange={change} />
        </div>
        <div className="ml-auto flex max-sm:w-full max-sm:justify-between">
          <Button kind="bare" icon="clock" onClick={() => setDialog("history")}>
            History
          </Button>
          <ShareButton draft={draft} />
          <Button kind="bare" icon="code" onClick={() => setDialog("code")}>
            Code
          </Button>
        </div>
      </header>
      <Onboarding onCode={() => setDialog("code")} />
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,5fr)_minmax(0,7fr)]">
        <div className="flex flex-col gap-3 lg:sticky lg:top-5">
          <EvidencePane
            evidence={draft.evidence}
            onChange={(evidence) => change((latest) => ({ ...latest, evidence }))}
            onExample={(example) => change((latest) => ({ ...latest, ...example }))}
          />
          <div className="flex flex-col gap-2">
            {busy ? (
              <Button icon="stop" onClick={cancel}>
                Cancel
              </Button>
            ) : (
              <Button kind="loud" icon="play" disabled={missing !== null} onClick={start}>
                Decide
                <kbd className="ml-1 font-sans text-xs opacity-80 max-md:hidden">
                  {navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl"} Enter
                </kbd>
              </Button>
            )}
            {missing ? <p className="text-soft text-xs">{missing}</p> : null}
          </div>
          <RunSummary run={run} stale={stale} />
        </div>
        <Questions draft={draft} run={run} stale={stale} busy={busy} onChange={change} />
      </div>
      {dialog === "code" ? <CodeDialog draft={draft} onClose={() => setDialog(null)} /> : null}
      {dialog === "history" ? (
        <HistoryDialog
          onClose={() => setDialog(null)}
          onPick={(past) => {
            change(past)
            setDialog(null)
          }}
        />
      ) : null}
    </div>
  )
}

/** The draft of the address if there is one, else that of last time, else an example. */
function useDraft(firstModel: string | undefined): [Draft, Dispatch<SetStateAction<Draft>>] {
  const storage = useBrowserStorage()
  const [draft, setDraft] = useState<Draft>(
    () =>
      keptDraft(storage) ?? {
        api: "decisions",
        model: "",
        rival: null,
        evidence: "",
        questions: [],
        ...examples[0]?.make(),
      },
  )
  useEffect(() => {
    const shared = new URLSearchParams(location.hash.slice(1)).get("d")
    if (!shared) return
    history.replaceState(history.state, "", location.pathname)
    void unpackDraft(shared).then((found) => found && setDraft(found))
  }, [])
  useEffect(() => keepDraft(storage, draft), [storage, draft])
  const model = draft.model || firstModel || ""
  return [model === draft.model ? draft : { ...draft, model }, setDraft]
}

function useRun(draft: Draft, orgId: string, models: AskOptions["models"]) {
  const storage = useBrowserStorage()
  const [run, setRun] = useState<Run | null>(null)
  const [running, setRunning] = useState<AbortController | null>(null)
  const start = async (): Promise<void> => {
    const controller = new AbortController()
    setRunning(controller)
    const skus = draft.rival === null ? [draft.model] : [draft.model, draft.rival]
    const outcomes = await Promise.all(
      skus.map(async (sku): Promise<Outcome> => {
        let sequenceId: string | null = null
        const onSequence = (id: string): void => {
          sequenceId = id
          rememberSequence(storage, id, draft.evidence)
        }
        try {
          const answered = await ask(draft, sku, { orgId, models, signal: controller.signal, onSequence })
          return { answered, sequenceId }
        } catch (error) {
          return { error, sequenceId }
        }
      }),
    )
    setRunning(null)
    if (controller.signal.aborted) return
    setRun({ draft, outcomes })
    const [first] = outcomes
    if (first && "answered" in first)
      addToHistory(storage, { at: Date.now(), draft, answers: first.answered.answers })
  }
  return { run, busy: running !== null, start: () => void start(), cancel: () => running?.abort() }
}

function useRunKey(start: () => void): void {
  const latest = useRef(start)
  useEffect(() => {
    latest.current = start
  })
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey)) return
      event.preventDefault()
      latest.current()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
}

function Rival({
  draft,
  models,
  onChange,
}: {
  draft: Draft
  models: AskOptions["models"]
  onChange: Dispatch<SetStateAction<Draft>>
}): ReactNode {
  if (draft.rival === null)
    return (
      <Button
        kind="bare"
        icon="split"
        onClick={() => onChange((latest) => ({ ...latest, rival: draft.model }))}
      >
        Compare
      </Button>
    )
  return (
    <span className="flex items-center gap-1">
      <span className="text-soft text-xs">with</span>
      <ModelSelect
        label="Second model"
        models={models}
        value={draft.rival}
        onChange={(rival) => onChange((latest) => ({ ...latest, rival }))}
      />
      <Button
        kind="bare"
        icon="cross"
        aria-label="Stop comparing"
        onClick={() => onChange((latest) => ({ ...latest, rival: null }))}
      />
    </span>
  )
}

const sharedShownMs = 2_500

function ShareButton({ draft }: { draft: Draft }): ReactNode {
  const [said, setSaid] = useState<string | null>(null)
  const share = async (): Promise<void> => {
    try {
      const packed = await packDraft(draft)
      await copyText(`${location.origin}${location.pathname}#d=${packed}`)
      setSaid("Link copied")
    } catch (error) {
      setSaid(sentenceOf(error))
    }
    setTimeout(() => setSaid(null), sharedShownMs)
  }
  return (
    <>
      <Button kind="bare" icon={said ? "check" : "share"} onClick={() => void share()}>
        {said ?? "Share"}
      </Button>
      <span role="status" className="sr-only">
        {said}
      </span>
    </>
  )
}

function RunSummary({ run, stale }: { run: Run | null; stale: boolean }): ReactNode {
  if (!run) return null
  return (
    <div className="flex flex-col gap-2" role="status" aria-label="Result">
      {run.outcomes.map((outcome, index) =>
        "error" in outcome ? (
          <Notice key={index} tone="bad">
            <ErrorText error={outcome.error} />
            {outcome.sequenceId ? (
              <span className="mt-1 block text-xs">
                Recorded as <SequenceLink id={outcome.sequenceId} />
              </span>
            ) : null}
          </Notice>
        ) : (
          <AnsweredFigures
            key={index}
            answered={outcome.answered}
            faded={stale}
            sequenceId={outcome.sequenceId}
          />
        ),
      )}
      {stale ? (
        <p className="text-soft text-xs">Changed since: decide again to refresh the answers.</p>
      ) : null}
    </div>
  )
}

function AnsweredFigures({
  answered,
  sequenceId,
  faded,
}: {
  answered: Answered
  sequenceId: string | null
  faded: boolean
}): ReactNode {
  const { model, inputTokens, latencyMs, costUsd } = answered
  return (
    <div className={`panel px-3 py-2.5 ${faded ? "opacity-60" : ""}`}>
      <dl className="number grid grid-cols-[1fr_auto_auto_auto] gap-x-5 text-xs">
        <Figure look="firm" name="Model" value={model} />
        <Figure look="firm" name="Tokens" value={count(inputTokens)} />
        <Figure look="firm" name="Latency" value={milliseconds(latencyMs)} />
        <Figure look="firm" name="Cost" value={costUsd === null ? "by the second" : smallDollars(costUsd)} />
      </dl>
      {sequenceId ? (
        <p className="text-soft border-line mt-2 truncate border-t pt-2 text-xs">
          Recorded as <SequenceLink id={sequenceId} />
        </p>
      ) : null}
    </div>
  )
}

function Questions({
  draft,
  run,
  stale,
  busy,
  onChange,
}: {
  draft: Draft
  run: Run | null
  stale: boolean
  busy: boolean
  onChange: (draft: Draft) => void
}): ReactNode {
  const { questions } = draft
  const put = (next: Draft["questions"]): void => onChange({ ...draft, questions: next })
  const drag = useReorder(questions.length, (from, to) => put(moved(questions, from, to)))
  return (
    <div className="flex flex-col gap-3">
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
            onRemove={() => put(questions.toSpliced(index, 1))}
            onMove={(step) => put(moved(questions, index, index + step))}
            onCopy={(copy) => put(questions.toSpliced(index + 1, 0, copy))}
          >
            <CardAnswers id={one.id} run={run} faded={stale || busy} />
          </QuestionCard>
        </div>
      ))}
      <MoveStatus drag={drag} />
      <Menu
        align="start"
        trigger={
          <Button icon="plus" className="self-start">
            Add question
          </Button>
        }
      >
        {questionTypes.map((type) => (
          <MenuItem key={type} onSelect={() => put([...questions, question(type)])}>
            {typeNames[type]}
          </MenuItem>
        ))}
      </Menu>
    </div>
  )
}

/** The answers to the question as it was asked, which may since have changed. */
function CardAnswers({ id, run, faded }: { id: string; run: Run | null; faded: boolean }): ReactNode {
  const index = run?.draft.questions.findIndex((asked) => asked.id === id) ?? -1
  const asked = run?.draft.questions[index]
  const answered = run?.outcomes.flatMap((outcome) => ("answered" in outcome ? [outcome.answered] : [])) ?? []
  if (!asked || answered.length === 0) return null
  return (
    <div
      role="group"
      aria-label={`Answer to question ${index + 1}`}
      className={`border-line grid gap-4 border-t pt-3 transition-opacity ${answered.length > 1 ? "sm:grid-cols-2" : ""} ${faded ? "opacity-50" : ""}`}
    >
      {answered.map(({ model, answers }, column) => (
        <div key={column} className="min-w-0">
          {answered.length > 1 ? (
            <p className="text-soft mb-1 flex items-center gap-1 text-xs">
              <Icon name="layers" className="size-3" /> {model}
            </p>
          ) : null}
          <AnswerView answer={answers[index] ?? null} options={asked.options} />
        </div>
      ))}
    </div>
  )
}
