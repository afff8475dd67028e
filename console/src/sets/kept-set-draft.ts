/** Keeps unsaved changes of a set's questions in this browser, so that leaving the page loses none of them. */
import { EvidenceRule } from "../../../src/contract/question-sets/content.ts"
import type { BrowserStorage } from "../parts/storage.ts"
import { readDraft } from "../playground/keep.ts"
import { type QuestionSettings, type SetDraft, defaultSettings } from "./set-draft.ts"

interface KeptSetDraft {
  /** Of the set to which the changes were made. */
  readonly revision: number
  readonly hash: string
  readonly at: number
  readonly current: SetDraft
}

const entry = (setId: string): string => `set-draft.${setId}`

export function keepSetDraft(storage: BrowserStorage, setId: string, kept: KeptSetDraft): void {
  const { draft, settings } = kept.current
  // Rows get other ids when they are read again, so the settings stand in the order of the questions.
  const rows = draft.questions.map(({ id }) => settings[id] ?? defaultSettings)
  storage.write(entry(setId), { ...kept, current: { draft, settings: rows } })
}

export const forgetSetDraft = (storage: BrowserStorage, setId: string): void => storage.remove(entry(setId))

/** Null where nothing is kept, or what is kept has another form. */
export function keptSetDraft(storage: BrowserStorage, setId: string): KeptSetDraft | null {
  const found = storage.read(entry(setId))
  if (typeof found !== "object" || found === null) return null
  const { revision, hash, at, current } = found as Record<string, unknown>
  if (typeof revision !== "number" || typeof hash !== "string" || typeof at !== "number") return null
  const read = readSetDraft(current)
  return read && { revision, hash, at, current: read }
}

function readSetDraft(given: unknown): SetDraft | null {
  const { draft: written, settings: rows } = (given ?? {}) as Record<string, unknown>
  const draft = readDraft(written)
  if (!draft || !Array.isArray(rows) || rows.length !== draft.questions.length) return null
  return {
    draft,
    settings: Object.fromEntries(draft.questions.map(({ id }, index) => [id, readSettings(rows[index])])),
  }
}

const Rules = EvidenceRule.array()

function readSettings(given: unknown): QuestionSettings {
  const { threshold, below, target_accuracy, calibration, rules } = (given ?? {}) as Record<string, unknown>
  const read = Rules.safeParse(rules)
  return {
    threshold: share(threshold),
    below: below === "answer" ? "answer" : "abstain",
    target_accuracy: share(target_accuracy),
    calibration: readCalibration(calibration),
    ...(read.success ? { rules: read.data } : {}),
  }
}

const share = (value: unknown): number | null => (typeof value === "number" ? value : null)

function readCalibration(given: unknown): QuestionSettings["calibration"] {
  const { temperature, bias } = (given ?? {}) as Record<string, unknown>
  return typeof temperature === "number" && typeof bias === "number" ? { temperature, bias } : null
}
