/** What is being written of a set's questions, until it is saved as a version. */
import { useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import type { Draft } from "../playground/draft.ts"
import {
  type QuestionSettings,
  type SetDraft,
  defaultSettings,
  draftOfSet,
  isSameContent,
} from "./set-draft.ts"

interface Editing {
  /** The set as it was when the writing began. */
  readonly base: QuestionSet
  readonly saved: SetDraft
  readonly current: SetDraft
}

export interface SetEditor {
  readonly base: QuestionSet
  readonly current: SetDraft
  readonly changed: boolean
  readonly changeDraft: (draft: Draft) => void
  readonly settingsOf: (questionId: string) => QuestionSettings
  readonly changeSettings: (questionId: string, settings: QuestionSettings) => void
  /** Begins again with the set as it is now, or as it was just saved. */
  readonly reset: (set: QuestionSet) => void
}

export function useSetEditor(set: QuestionSet): SetEditor {
  const [editing, setEditing] = useState(() => begin(set))
  const changed = !isSameContent(editing.saved, editing.current)
  // A version that others made, or teaching did, is shown at once; what is being written is kept.
  if (set.revision > editing.base.revision) {
    if (set.hash === editing.base.hash) setEditing({ ...editing, base: set })
    else if (!changed) setEditing(begin(set))
  }
  const put = (current: SetDraft): void => setEditing({ ...editing, current })
  return {
    base: editing.base,
    current: editing.current,
    changed,
    changeDraft: (draft) => put({ ...editing.current, draft }),
    settingsOf: (id) => editing.current.settings[id] ?? defaultSettings,
    changeSettings: (id, settings) =>
      put({ ...editing.current, settings: { ...editing.current.settings, [id]: settings } }),
    reset: (given) => setEditing(begin(given)),
  }
}

function begin(base: QuestionSet): Editing {
  const saved = draftOfSet(base)
  return { base, saved, current: saved }
}
