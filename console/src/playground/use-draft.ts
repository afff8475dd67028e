/** The draft of this tab: from a shared link, from last time, or an example; what replaces it as a whole can be undone. */
import { type Dispatch, type SetStateAction, useCallback, useEffect, useMemo, useRef, useState } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { useHashLink } from "../parts/hash-link.ts"
import { useBrowserStorage, useTabStorage } from "../session.ts"
import type { Draft } from "./draft.ts"
import { exampleDraft, examples } from "./examples.ts"
import { keepDraft, keptDraft, unpackDraft } from "./keep.ts"
import { firstModel } from "./models.ts"
import { t } from "../i18n/translate.ts"

export interface Replaced {
  readonly what: string
  /** What was replaced, and nothing else: what is written elsewhere meanwhile stays. */
  readonly before: Partial<Draft>
}

export interface DraftState {
  readonly draft: Draft
  readonly change: Dispatch<SetStateAction<Draft>>
  /** Puts another draft in place of this one and says so, with a way back. */
  readonly replace: (next: Partial<Draft>, what: string) => void
  readonly replaced: Replaced | null
  readonly undo: () => void
  readonly dismiss: () => void
}

const empty: Draft = { api: "decisions", model: "", rival: null, evidence: "", questions: [] }

/** Of somebody who has none yet. */
export function firstDraft(models: readonly OrgModel[], chosen?: string): Draft {
  const [example] = examples
  return { ...empty, ...(example ? exampleDraft(example, models, chosen) : {}) }
}

/** Fills in models that were not known yet when the draft was made. */
function withModels(draft: Draft, firstSku: string): Draft {
  const model = draft.model || firstSku
  const rival = draft.rival === "" ? model : draft.rival
  return model === draft.model && rival === draft.rival ? draft : { ...draft, model, rival }
}

export function useDraft(models: readonly OrgModel[]): DraftState {
  // A tab has its own draft, so that two do not overwrite each other's; a new tab begins with the latest of any.
  const [tab, browser] = [useTabStorage(), useBrowserStorage()]
  const [written, setDraft] = useState<Draft | null>(() => keptDraft(tab) ?? keptDraft(browser))
  const first = useMemo(() => firstDraft(models), [models])
  const draft = written ?? first
  const [replaced, setReplaced] = useState<Replaced | null>(null)
  const latest = useRef(draft)
  useEffect(() => {
    latest.current = draft
    // An example is not in its language before the models are known.
    if (written === null && draft.model === "") return
    keepDraft(tab, draft)
    keepDraft(browser, draft)
  }, [tab, browser, draft, written])
  const replace = useCallback((next: Partial<Draft>, what: string): void => {
    const before: Partial<Draft> = Object.fromEntries(
      Object.entries(latest.current).filter(([field]) => field in next),
    )
    setReplaced({ what, before })
    setDraft({ ...latest.current, ...next })
  }, [])
  useHashLink("d", (shared) => {
    void unpackDraft(shared).then((found) => found && replace(found, t("The link replaced your draft.")))
  })
  const undo = (): void => {
    if (replaced) replace(replaced.before, t("Your draft is back."))
  }
  return {
    draft: useMemo(() => withModels(draft, firstModel(models, "decisions")), [draft, models]),
    // The next edit is on top of what was replaced: the way back ends.
    change: (next) => {
      setReplaced(null)
      setDraft((before) => (typeof next === "function" ? next(before ?? first) : next))
    },
    replace,
    replaced,
    undo,
    dismiss: () => setReplaced(null),
  }
}
