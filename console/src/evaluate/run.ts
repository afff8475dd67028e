/** Asks about every row, a few at a time, until all are answered, enough have failed, or someone cancels. */
import type { CallOptions } from "../../../src/contract/client.ts"
import type { Judged } from "../../../src/scoring/evaluation.ts"
import { sequenceHeader } from "../../../src/contract/endpoint.ts"
import { api } from "../api.ts"
import { fromDecision } from "../playground/draft.ts"
import { type Plan, judge, requestOf } from "./plan.ts"
import type { Rows } from "./rows.ts"

const atOnce = 4
/** One wrong key or an empty balance fails every row: stop early and say so. */
const failuresMax = 20

export interface JudgedRow extends Judged {
  readonly index: number
  readonly evidence: string
  /** The record of the row's request. */
  readonly sequenceId: string | null
}

export interface Progress {
  readonly done: readonly JudgedRow[]
  readonly failed: number
  readonly lastError: { readonly error: unknown; readonly sequenceId: string | null } | null
  readonly inputTokens: number
}

export const noProgress: Progress = { done: [], failed: 0, lastError: null, inputTokens: 0 }

export async function runPlan(
  plan: Plan,
  { rows }: Rows,
  orgId: string,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  let progress = noProgress
  let next = 0
  const tell = (change: Partial<Progress>): void => {
    progress = { ...progress, ...change }
    onProgress(progress)
  }
  const work = async (): Promise<void> => {
    while (next < rows.length && !signal.aborted && progress.failed < failuresMax) {
      const index = next++
      const row = rows[index]
      if (!row) return
      let sequenceId: string | null = null
      const onHeaders = (headers: Headers): void => {
        sequenceId = headers.get(sequenceHeader)
      }
      try {
        const answered = await answerRow(plan, row, orgId, { signal, onHeaders })
        const evidence = row[plan.evidence] ?? ""
        tell({
          done: [...progress.done, { ...answered.judged, index, evidence, sequenceId }],
          inputTokens: progress.inputTokens + answered.inputTokens,
        })
      } catch (error) {
        if (!signal.aborted) tell({ failed: progress.failed + 1, lastError: { error, sequenceId } })
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

async function answerRow(
  plan: Plan,
  row: Readonly<Record<string, string>>,
  orgId: string,
  options: Pick<CallOptions, "signal" | "onHeaders">,
): Promise<{ judged: Judged; inputTokens: number }> {
  const { answers, usage } = await api.createDecision({
    body: requestOf(plan, row),
    headers: { "x-umpire-organization": orgId },
    ...options,
  })
  const answer = answers[0] ? fromDecision(answers[0]) : null
  if (!answer) throw new Error("The model refused to answer a row.")
  return { judged: judge(plan, row, answer), inputTokens: usage.input_tokens }
}
