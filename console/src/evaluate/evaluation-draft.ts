/** The evaluation that is being prepared; it stays while other pages are looked at. */
import { sentenceOf } from "../api.ts"
import { type Rows, readRows } from "../tables/rows.ts"
import { useHeld } from "../tables/use-held.ts"
import { type Plan, guessPlan } from "./plan.ts"

interface EvaluationDraft {
  readonly file: { readonly name: string; readonly rows: Rows } | null
  readonly plan: Plan | null
  /** Why the last file was refused. */
  readonly error: string | null
}

const nothing: EvaluationDraft = { file: null, plan: null, error: null }

export function useEvaluationDraft() {
  const [draft, change] = useHeld("evaluation", nothing)
  return {
    ...draft,
    change,
    take: (name: string, bytes: Uint8Array, instructions = ""): void => {
      try {
        const rows = readRows(bytes, name)
        change({ file: { name, rows }, plan: { ...guessPlan(rows), instructions }, error: null })
      } catch (failure) {
        change({ error: sentenceOf(failure) })
      }
    },
  }
}
