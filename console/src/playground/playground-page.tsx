/** The playground: evidence and answers on the left, questions on the right. */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { type Dispatch, type ReactNode, type SetStateAction, useEffect, useRef, useState } from "react"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { useCopy } from "../parts/copy-button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { CheckField, Segments } from "../parts/field.tsx"
import { useTitle } from "../parts/page.tsx"
import { Onboarding } from "../shell/onboarding.tsx"
import { modelsQuery, useOrganization, useTabStorage } from "../session.ts"
import { AnswersPanel } from "./answers-panel.tsx"
import { modelHere } from "./ask-here.ts"
import { CodeDialog } from "./code-dialog.tsx"
import type { ContextUse } from "./context-meter.tsx"
import { type Api, type Draft, whatIsMissing } from "./draft.ts"
import { EvidencePane } from "./evidence-pane.tsx"
import { exampleDraft } from "./examples.ts"
import { HistoryDialog } from "./history-dialog.tsx"
import { packDraft } from "./keep.ts"
import { ModelSelect, setModel } from "./model-select.tsx"
import { measuresOf } from "./measured.ts"
import { linguistOf, rivalOf } from "./models.ts"
import { Questions } from "./questions.tsx"
import { modelsAsked, useRun } from "./run.ts"
import { SaveAsSet } from "../sets/create-set.tsx"
import { setsKey } from "../sets/set-query.ts"
import { triedTextEntry } from "../sets/set-tabs.ts"
import { estimateTokens } from "./tokens.ts"
import { UndoBar } from "./undo-bar.tsx"
import { type DraftState, useDraft } from "./use-draft.ts"
import { isForeign, weakSpotSentence, weakSpots } from "./weak-spots.ts"
import { t } from "../i18n/translate.ts"

const apis: readonly { value: Api; label: string }[] = [
  { value: "decisions", label: t("Decisions") },
  { value: "systemone", label: "System One" },
]

type PageDialog = "code" | "history" | "set"

export function PlaygroundPage(): ReactNode {
  useTitle(t("Playground"))
  const { id: orgId } = useOrganization()
  const { data: models = [], isPending: areModelsLoading } = useQuery(modelsQuery(orgId))
  const { draft, change, replace, replaced, undo, dismiss } = useDraft(models)
  const [wantsHere, setWantsHere] = useState(false)
  const isHere = wantsHere && draft.api === "decisions"
  const { run, busy, start, cancel } = useRun(draft, { orgId, isHere })
  const [dialog, setDialog] = useState<PageDialog | null>(null)
  const missing = whatIsMissing(draft)
  const stale =
    run !== null && (run.draft.questions !== draft.questions || run.draft.evidence !== draft.evidence)
  useRunKey(() => missing === null && !busy && start())
  return (
    <div className="page gap-4">
      <Toolbar draft={draft} models={models} onChange={change} onDialog={setDialog} />
      <Onboarding onCode={() => setDialog("code")} />
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
        <div className="flex min-w-0 flex-col gap-3 lg:sticky lg:top-5">
          <EvidencePane
            evidence={draft.evidence}
            context={contextOf(draft, models)}
            onChange={(evidence) => change((latest) => ({ ...latest, evidence }))}
            onReplace={(evidence, what) => replace({ evidence }, what)}
            onExample={(example) =>
              replace(
                exampleDraft(example, models, draft.model),
                t("The example “{name}” replaced your draft.", { name: example.name }),
              )
            }
          />
          <div className="flex flex-col gap-2">
            {busy ? (
              <Button icon="stop" onClick={cancel}>
                {t("Cancel")}
              </Button>
            ) : (
              <Button kind="loud" icon="play" disabled={missing !== null} onClick={start}>
                {t("Decide")}
                <kbd className="ms-1 font-sans text-xs opacity-80 max-md:hidden">
                  {navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl"} Enter
                </kbd>
              </Button>
            )}
            {missing && !areModelsLoading ? <p className="text-soft text-xs">{missing}</p> : null}
            {draft.api === "decisions" ? (
              <CheckField
                label={t("Run in this browser")}
                hint={t(
                  "The text does not leave this machine. {modelHere} is fetched once (40 MB); nothing is recorded or charged.",
                  { modelHere },
                )}
                checked={wantsHere}
                onChange={(event) => setWantsHere(event.target.checked)}
              />
            ) : null}
          </div>
          <AnswersPanel
            questions={draft.questions}
            models={isHere ? [modelHere] : modelsAsked(draft)}
            catalog={models}
            run={run}
            stale={stale}
            busy={busy}
          />
          <Care
            draft={isHere ? { ...draft, model: modelHere } : draft}
            models={models}
            onModel={(model) => {
              // The browser has one model alone.
              setWantsHere(false)
              change((latest) => ({ ...latest, model }))
            }}
          />
        </div>
        <Questions
          draft={draft}
          onChange={change}
          onRemove={(questions, what) => replace({ questions }, what)}
          actions={
            <Button
              kind="bare"
              icon="cards"
              disabled={draft.questions.length === 0}
              onClick={() => setDialog("set")}
            >
              {t("Save as set")}
            </Button>
          }
        />
      </div>
      {dialog === "code" ? <CodeDialog draft={draft} onClose={() => setDialog(null)} /> : null}
      {dialog === "set" ? <SaveAsSet draft={draft} onClose={() => setDialog(null)} /> : null}
      {dialog === "history" ? (
        <HistoryDialog
          onClose={() => setDialog(null)}
          onPick={(past) => {
            replace(past, t("An earlier draft replaced this one."))
            setDialog(null)
          }}
        />
      ) : null}
      <UndoBar replaced={replaced} onUndo={undo} onDismiss={dismiss} />
    </div>
  )
}

/** What the asked model is bad at, where the request looks like it; below the answers, so that it moves nothing. */
function Care({
  draft,
  models,
  onModel,
}: {
  draft: Draft
  models: readonly OrgModel[]
  onModel: (sku: string) => void
}): ReactNode {
  const model = models.find(({ model_sku }) => model_sku === draft.model)
  const measures = measuresOf(model)
  if (!measures) return null
  const asked = draft.questions.map(({ instructions }) => instructions)
  const spots = weakSpots(asked, draft.evidence, estimateTokens(draft, draft.model))
  const sentence = weakSpotSentence(draft.model, spots)
  if (sentence === null) return null
  const linguist = isForeign(draft.evidence) ? linguistOf(models) : undefined
  return (
    <div
      role="note"
      aria-label={t("Take care")}
      className="text-soft flex flex-col items-start gap-2 text-xs"
    >
      <p>{sentence}</p>
      {linguist ? (
        <>
          <p>
            {t("{model} has learnt {count} languages.", {
              model: linguist.model_sku,
              count: linguist.about?.languages.length ?? 0,
            })}
          </p>
          <Button small icon="layers" onClick={() => onModel(linguist.model_sku)}>
            {t("Use {model}", { model: linguist.model_sku })}
          </Button>
        </>
      ) : null}
    </div>
  )
}

/** Of the models that are asked, the one with the shortest context. */
function contextOf(draft: Draft, models: readonly OrgModel[]): ContextUse | null {
  const asked = models.filter(({ model_sku }) => model_sku === draft.model || model_sku === draft.rival)
  const [least] = asked.toSorted((a, b) => a.max_context_len - b.max_context_len)
  if (!least) return null
  const { model_sku: model, max_context_len: tokensMax } = least
  return { model, tokensMax, tokens: estimateTokens(draft, model) }
}

function Toolbar({
  draft,
  models,
  onChange,
  onDialog,
}: {
  draft: Draft
  models: readonly OrgModel[]
  onChange: DraftState["change"]
  onDialog: (dialog: PageDialog) => void
}): ReactNode {
  const { sets, trySet } = useSetsToTry()
  return (
    <header className="flex flex-wrap items-center gap-x-2 gap-y-3">
      <div className="flex items-center gap-2 max-sm:w-full max-sm:justify-between">
        <h1 className="me-3 text-xl font-semibold tracking-tight">{t("Playground")}</h1>
        <Segments
          label={t("Endpoint")}
          value={draft.api}
          options={apis}
          onChange={(api) => onChange((latest) => ({ ...latest, api }))}
        />
      </div>
      {draft.api === "systemone" ? (
        <p className="text-soft order-last w-full text-xs">
          {t(
            "System One is another form of the same request: named questions about one state, which may be JSON, at POST /v1/systemone. The model and its answers are the same.",
          )}
        </p>
      ) : null}
      <div className="flex flex-wrap items-center gap-2 max-sm:w-full">
        <ModelSelect
          label={t("Model")}
          models={models}
          sets={sets}
          value={draft.model}
          onChange={(model) => {
            const set = sets.find((name) => setModel(name) === model)
            if (set === undefined) onChange((latest) => ({ ...latest, model }))
            else trySet(set, draft.evidence)
          }}
        />
        <Rival draft={draft} models={models} onChange={onChange} />
      </div>
      <div className="ms-auto flex max-sm:-mx-3 max-sm:w-full">
        <Button kind="bare" icon="clock" onClick={() => onDialog("history")}>
          {t("History")}
        </Button>
        <ShareButton draft={draft} />
        <Button kind="bare" icon="code" onClick={() => onDialog("code")}>
          {t("Code")}
        </Button>
      </div>
    </header>
  )
}

const setsListedMax = 100

/** A set asks its own questions: it is tried on its page, about the text that stands here. */
function useSetsToTry(): { sets: readonly string[]; trySet: (name: string, text: string) => void } {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const storage = useTabStorage()
  const { data = [] } = useQuery({
    queryKey: [...setsKey(orgId), "names"],
    queryFn: async () => {
      const query = { limit: setsListedMax }
      return (await api.listQuestionSets({ params: { org_id: orgId }, query })).data.map(({ name }) => name)
    },
  })
  return {
    sets: data,
    trySet: (setName, text) => {
      storage.write(triedTextEntry, text)
      const to = "/o/$orgId/sets/$setName"
      void navigate({ to, params: { orgId, setName }, search: { tab: "try" } })
    },
  }
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
  models: readonly OrgModel[]
  onChange: Dispatch<SetStateAction<Draft>>
}): ReactNode {
  if (draft.rival === null)
    return (
      <Button
        kind="bare"
        icon="split"
        onClick={() => onChange((latest) => ({ ...latest, rival: rivalOf(draft.model, models) }))}
      >
        {t("Compare")}
      </Button>
    )
  return (
    <span className="flex min-w-0 items-center gap-1 max-sm:w-full">
      <span className="text-soft text-xs">{t("with")}</span>
      <ModelSelect
        label={t("Second model")}
        models={models}
        value={draft.rival}
        onChange={(rival) => onChange((latest) => ({ ...latest, rival }))}
      />
      <Button
        kind="bare"
        icon="cross"
        aria-label={t("Stop comparing")}
        onClick={() => onChange((latest) => ({ ...latest, rival: null }))}
      />
    </span>
  )
}

const sharedShownMs = 2_500

function ShareButton({ draft }: { draft: Draft }): ReactNode {
  const { copied, copy, byHand } = useCopy(sharedShownMs)
  const [error, setError] = useState<unknown>(null)
  const share = async (): Promise<void> => {
    try {
      await copy(`${location.origin}${location.pathname}#d=${await packDraft(draft)}`)
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <>
      <Button kind="bare" icon={copied ? "check" : "share"} onClick={() => void share()}>
        {copied ? t("Link copied") : t("Share")}
      </Button>
      <span role="status" className="sr-only">
        {copied ? t("Link copied") : null}
      </span>
      {byHand}
      {error ? (
        <Dialog title={t("Share")} onClose={() => setError(null)}>
          <ErrorNotice error={error} />
        </Dialog>
      ) : null}
    </>
  )
}
