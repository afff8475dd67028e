/** What is being written of a set's questions, until it is saved as a version; kept in this browser meanwhile. */
import { useEffect, useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import type { BrowserStorage } from "../parts/storage.ts"
import type { Draft } from "../playground/draft.ts"
import { useBrowserStorage, useTabStorage } from "../session.ts"
import { forgetSetDraft, keepSetDraft, keptSetDraft } from "./kept-set-draft.ts"
import {
  type QuestionSettings,
  type SetDraft,
  defaultSettings,
  draftOfSet,
  isSameContent,
} from "./set-draft.ts"

/** The set as it was when the writing began. */
type Base = Pick<QuestionSet, "revision" | "hash">

interface Editing {
  readonly base: Base
  readonly saved: SetDraft
  readonly current: SetDraft
  /** When the changes were kept that an earlier visit left; null: they were made on this one. */
  readonly keptAt: number | null
}

export interface SetEditor {
  readonly base: Base
  readonly current: SetDraft
  readonly changed: boolean
  readonly keptAt: number | null
  /** Another version was saved since the changes were begun. */
  readonly isStale: boolean
  readonly changeDraft: (draft: Draft) => void
  readonly settingsOf: (questionId: string) => QuestionSettings
  readonly changeSettings: (questionId: string, settings: QuestionSettings) => void
  /** Begins again with the set as it is now, or as it was just saved. */
  readonly reset: (set: QuestionSet) => void
  /** Keeps the changes, to be saved after the version that came between. */
  readonly rebase: (set: QuestionSet) => void
}

export function useSetEditor(set: QuestionSet): SetEditor {
  // A tab has its own changes, so that two do not overwrite each other's; a new tab begins with the latest of any.
  const [tab, browser] = [useTabStorage(), useBrowserStorage()]
  const [editing, setEditing] = useState(() => resume(set, [tab, browser]))
  const { base, current } = editing
  const changed = !isSameContent(editing.saved, current)
  // A version that others made, or teaching did, is shown at once; what is being written is kept.
  if (set.revision > base.revision) {
    if (set.hash === base.hash) setEditing({ ...editing, base: set })
    else if (!changed) setEditing(begin(set))
  }
  useEffect(() => {
    for (const storage of [tab, browser])
      if (changed) keepSetDraft(storage, set.id, { ...base, at: Date.now(), current })
      else forgetSetDraft(storage, set.id)
  }, [tab, browser, set.id, base, current, changed])
  const put = (next: SetDraft): void => setEditing({ ...editing, current: next })
  return {
    base,
    current,
    changed,
    keptAt: changed ? editing.keptAt : null,
    isStale: changed && set.hash !== base.hash,
    changeDraft: (draft) => put({ ...current, draft }),
    settingsOf: (id) => current.settings[id] ?? defaultSettings,
    changeSettings: (id, settings) => put({ ...current, settings: { ...current.settings, [id]: settings } }),
    reset: (given) => setEditing(begin(given)),
    rebase: (given) => setEditing({ ...editing, base: given, saved: draftOfSet(given) }),
  }
}

function begin(base: QuestionSet): Editing {
  const saved = draftOfSet(base)
  return { base, saved, current: saved, keptAt: null }
}

/** With what an earlier visit left unsaved. */
function resume(set: QuestionSet, storages: readonly BrowserStorage[]): Editing {
  const kept = storages.map((storage) => keptSetDraft(storage, set.id)).find((one) => one !== null)
  if (!kept) return begin(set)
  const { revision, hash, at, current } = kept
  return { base: { revision, hash }, saved: draftOfSet(set), current, keptAt: at }
}
