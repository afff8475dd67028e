/** Asks a draft, of one model or of two, and keeps what came back. */
import { useState } from "react"
import { rememberSequence } from "../analytics/recent.ts"
import { useBrowserStorage, useTabStorage } from "../session.ts"
import { type Answered, ask } from "./ask.ts"
import { askHere, modelHere } from "./ask-here.ts"
import type { Draft } from "./draft.ts"
import { addToHistory } from "./keep.ts"
import { keepRun, keptRun } from "./kept-run.ts"
import { learnTokens } from "./tokens.ts"

/** What one model answered, and the id of the request's record where one was begun. */
export type Outcome = ({ readonly answered: Answered } | { readonly error: unknown }) & {
  readonly sequenceId: string | null
}

export interface Run {
  readonly draft: Draft
  /** One per model asked. */
  readonly outcomes: readonly Outcome[]
}

interface RunOptions {
  readonly orgId: string
  /** In this browser, and nowhere else. */
  readonly isHere: boolean
}

export const modelsAsked = ({ model, rival }: Draft): string[] => (rival === null ? [model] : [model, rival])

export function useRun(draft: Draft, { orgId, isHere }: RunOptions) {
  const [storage, tab] = [useBrowserStorage(), useTabStorage()]
  const [run, setRun] = useState<Run | null>(() => keptRun(tab, draft))
  const [running, setRunning] = useState<AbortController | null>(null)
  const askOne = async (sku: string, signal: AbortSignal): Promise<Outcome> => {
    let sequenceId: string | null = null
    const onSequence = (id: string): void => {
      sequenceId = id
      rememberSequence(storage, id, draft.evidence)
    }
    try {
      const answered = isHere
        ? await askHere(draft, signal)
        : await ask(draft, sku, { orgId, signal, onSequence })
      learnTokens(draft, sku, answered.inputTokens)
      return { answered, sequenceId }
    } catch (error) {
      return { error, sequenceId }
    }
  }
  const start = async (): Promise<void> => {
    const controller = new AbortController()
    setRunning(controller)
    const skus = isHere ? [modelHere] : modelsAsked(draft)
    const outcomes = await Promise.all(skus.map(async (sku) => await askOne(sku, controller.signal)))
    setRunning(null)
    if (controller.signal.aborted) return
    setRun({ draft, outcomes })
    keepRun(tab, { draft, outcomes })
    const [first] = outcomes
    if (first && "answered" in first)
      addToHistory(storage, { at: Date.now(), draft, answers: first.answered.answers })
  }
  return { run, busy: running !== null, start: () => void start(), cancel: () => running?.abort() }
}
