/** What a quick start holds until it is taught: the pasted rows, what was changed of the proposal, and the labels given by hand. */
import { useEffect, useMemo } from "react"
import { z } from "zod"
import { sentenceOf } from "../api.ts"
import { useTabStorage } from "../session.ts"
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"
import { questionTypes } from "../playground/draft.ts"
import { type LabelValue, possibleLabels } from "../sets/labels.ts"
import type { Rows } from "../tables/rows.ts"
import { useHeld } from "../tables/use-held.ts"
import { pastedRows } from "./pasted-rows.ts"
import { type Changes, type Proposal, givenLabel, propose, questionOf } from "./proposal.ts"
import { t } from "../i18n/translate.ts"

const LabelledAs = z.union([z.string(), z.boolean(), z.number()])

const KeptDraft = z.object({
  source: z.string(),
  /** The source is whole: its rows are worked on. */
  isTaken: z.boolean(),
  changes: z
    .object({
      text: z.string(),
      label: z.string(),
      type: z.enum(questionTypes),
      instructions: z.string(),
    } satisfies Record<keyof Omit<Changes, "values">, z.ZodType>)
    .partial(),
  /** The options or levels as they are being typed, one a line; null: the proposed ones. */
  options: z.string().nullable(),
  /** By the text of the row; null: skipped. */
  labels: z.record(z.string(), LabelledAs.nullable()),
  /** Texts in the order in which they were labelled or skipped. */
  decided: z.array(z.string()),
  /** The set that was made of it, and the question that it asks: more labels of the same question go there. */
  made: z.object({ id: z.string(), name: z.string(), asked: z.string() }).nullable(),
})
export type StartDraft = Readonly<z.infer<typeof KeptDraft>>

const nothing: StartDraft = {
  source: "",
  isTaken: false,
  changes: {},
  options: null,
  labels: {},
  decided: [],
  made: null,
}

export interface StartRow {
  readonly text: string
  readonly label: LabelValue | null
  readonly isSkipped: boolean
}

/** More are for the Examples of a set. */
export const startRowsMax = 200
export const sourceCharactersMax = 400_000

const entry = "start"

/** Kept by the tab, so that a reload loses no label. */
export function useStartDraft() {
  const tab = useTabStorage()
  const kept = useMemo(() => KeptDraft.safeParse(tab.read(entry)).data ?? nothing, [tab])
  const [draft, change] = useHeld("start", kept)
  useEffect(() => {
    if (draft !== kept) tab.write(entry, draft)
  }, [tab, kept, draft])
  return { draft, change, clear: () => change(nothing) }
}

type Taken =
  | { readonly problem: string }
  | { readonly table: Rows; readonly proposal: Proposal; readonly question: DecisionQuestion | null }

/** What the source says, with what the user changed of it. */
export function takenOf({
  source,
  changes,
  options,
}: Pick<StartDraft, "source" | "changes" | "options">): Taken {
  try {
    const table = pastedRows(source)
    if (table.rows.length === 0)
      return { problem: t("There are no rows. Paste some texts, each on a line of its own.") }
    const values = options === null ? {} : { values: linesOf(options) }
    const proposal = propose(table, { ...changes, ...values })
    return { table, proposal, question: questionOf(proposal) }
  } catch (failure) {
    return { problem: sentenceOf(failure) }
  }
}

const linesOf = (text: string): string[] => [
  ...new Set(text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]))),
]

/** Each text once, with the label that was given by hand, or else its own. */
export function rowsOf(
  { rows }: Rows,
  proposal: Proposal,
  { labels }: Pick<StartDraft, "labels">,
): { readonly rows: readonly StartRow[]; readonly unused: number } {
  const question = questionOf(proposal)
  const possible = new Set(question ? possibleLabels(question).map(({ value }) => value) : [])
  const found = new Map<string, StartRow>()
  for (const row of rows) {
    const text = (row[proposal.text] ?? "").trim()
    if (text === "" || found.has(text)) continue
    const byHand = labels[text]
    const label = byHand === undefined ? givenLabel(row, proposal) : byHand
    found.set(text, {
      text,
      label: label !== null && possible.has(label) ? label : null,
      isSkipped: byHand === null,
    })
  }
  const all = [...found.values()]
  return { rows: all.slice(0, startRowsMax), unused: Math.max(0, all.length - startRowsMax) }
}
