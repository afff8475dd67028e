/** `umpire models check`: asks a chat model 200 questions with known answers, and fits how sure it may be of each kind. */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { z } from "zod"
import type { Model } from "../base/catalog.ts"
import { mapConcurrent } from "../base/lists.ts"
import type { Ticks } from "../base/money.ts"
import { task, threads } from "../base/peer/threads.ts"
import { Fault } from "../contract/errors.ts"
import { Calibrations, type ModelCheck } from "../contract/model-check.ts"
import type { Branch } from "../engine/branch.ts"
import { type DecisionMethod, type ScoreEngine, type ScoreWork, unusableIn } from "../engine/engine.ts"
import { expandQuestion, type Question } from "../gateway/classification/classification.ts"
import { costOf, noUsage } from "../gateway/meter.ts"
import { retryWhileFull } from "../gateway/retry-while-full.ts"
import { type CountedTokens, usageOf } from "../gateway/score.ts"
import { uncalibrated } from "../scoring/calibration.ts"
import { type LabelledMargins, fitCalibrations } from "../scoring/fit-calibration.ts"

const kinds = ["predicate", "choice", "score"] as const
const Option = z.strictObject({ value: z.string(), description: z.string() })
const CheckRow = z.strictObject({
  kind: z.enum(kinds),
  text: z.string(),
  instructions: z.string(),
  options: z.array(Option),
  /** Which option is right; null: no. */
  right: z.int().min(0).nullable(),
})
export type CheckRow = z.infer<typeof CheckRow>

const file = join(import.meta.dirname, "..", "..", "model", "check-rows.jsonl")
/** Rows that are asked at the same time. */
const ROWS_AT_ONCE = 8

export async function readCheckRows(): Promise<readonly CheckRow[]> {
  const lines = (await readFile(file, "utf8")).trim().split("\n")
  return lines.map((line) => CheckRow.parse(JSON.parse(line)))
}

function questionOf({ kind, instructions, options }: CheckRow): Question {
  const stem = { name: null, path: "questions.0", instructions }
  switch (kind) {
    case "predicate":
      return { ...stem, type: kind, yesMeans: "", noMeans: "" }
    case "choice":
      return { ...stem, type: kind, options }
    case "score":
      return {
        ...stem,
        type: kind,
        levels: options.map(({ value, description }) => ({ label: value, description })),
      }
  }
}

const workOf = (row: CheckRow): ScoreWork => ({
  organizationId: "",
  evidence: row.text,
  branches: expandQuestion(questionOf(row)),
})

/** The most that a check can cost, before anything is asked. */
export const checkCostMost = (
  scorer: Pick<ScoreEngine, "sizeMost">,
  model: Model,
  rows: readonly CheckRow[],
): Ticks =>
  rows.reduce((sum, row) => {
    const size = scorer.sizeMost?.(workOf(row)) ?? { inputTokens: 0, outputTokens: 0 }
    return sum + costOf(model.prices, { ...noUsage, ...size })
  }, 0n)

interface CheckDeps {
  readonly scorer: Pick<ScoreEngine, "score">
  readonly model: Model
  readonly method: DecisionMethod
  readonly signal: AbortSignal
  readonly nowMs: () => number
  /** Told after each row what it cost, whether it is answered or left out. */
  readonly onRow: (costTicks: Ticks) => void
}

interface LeftOut {
  readonly row: number
  readonly reason: string
}

interface AnsweredRow {
  readonly row: CheckRow
  readonly margins: readonly number[]
}

/** Rows that the server does not answer, such as one that its filter refuses, are left out; throws where less than half of a kind is left. */
export async function checkModel(
  deps: CheckDeps,
  rows: readonly CheckRow[],
): Promise<{ check: ModelCheck; leftOut: readonly LeftOut[] }> {
  const leftOut: LeftOut[] = []
  const failed = Object.fromEntries(kinds.map((kind) => [kind, 0]))
  const asked = await mapConcurrent(
    rows,
    { concurrency: ROWS_AT_ONCE, signal: deps.signal },
    async (row, at, signal): Promise<AnsweredRow | null> => {
      try {
        return { row, margins: await askRow(deps, row, signal) }
      } catch (error) {
        if (!(error instanceof Fault) || signal.aborted) throw error
        leftOut.push({ row: at + 1, reason: error.message })
        const count = (failed[row.kind] ?? 0) + 1
        failed[row.kind] = count
        if (2 * count > rows.filter(({ kind }) => kind === row.kind).length)
          throw new Fault(
            error.code,
            `Over half of the questions of one kind are not answered: ${error.message}`,
          )
        return null
      }
    },
  )
  const answered = asked.filter((one) => one !== null)
  const right = answered.filter(({ row, margins }) => isRight(row, margins)).length
  return {
    check: {
      method: deps.method,
      rows: answered.length,
      accuracy: right / Math.max(1, answered.length),
      calibrations: await calibrationsOf(answered),
      checked_at: new Date(deps.nowMs()).toISOString(),
    },
    leftOut: leftOut.toSorted((a, b) => a.row - b.row),
  }
}

async function askRow(
  { scorer, model, onRow }: CheckDeps,
  row: CheckRow,
  signal: AbortSignal,
): Promise<readonly number[]> {
  let costTicks = 0n
  const count = (used: CountedTokens): void => void (costTicks += costOf(model.prices, usageOf(used, 0)))
  try {
    return await retryWhileFull({ signal }, async () => {
      const call = { signal, admit: async () => undefined }
      const scored = await scorer.score(workOf(row), call).catch((error: unknown) => {
        const unusable = unusableIn(error)
        if (unusable) count({ inputTokens: unusable.used.inputTokens, chat: unusable.used })
        throw error
      })
      count(scored)
      return [...scored.margins]
    })
  } finally {
    onRow(costTicks)
  }
}

const fitTask = task(new URL("../scoring/fit-calibration.ts", import.meta.url).href, fitCalibrations)

/** In a thread: it takes up to seconds. */
async function calibrationsOf(answered: readonly AnsweredRow[]): Promise<Calibrations> {
  const labelled = kinds.map((kind) =>
    answered
      .filter(({ row }) => row.kind === kind)
      .map(({ row, margins }): LabelledMargins => ({
        margins,
        right: row.right,
        kind: kind === "predicate" ? "predicate" : "options",
      })),
  )
  const fitted = await threads.run("model check", fitTask, labelled)
  return Calibrations.parse(Object.fromEntries(kinds.map((kind, at) => [kind, fitted[at]])))
}

const isRight = ({ kind, right }: CheckRow, margins: readonly number[]): boolean =>
  kind === "predicate"
    ? (right === 0) === (margins[0] ?? 0) >= 0
    : right === margins.indexOf(Math.max(...margins))

/** The margins of branches as the check of their model has them. */
export function calibrated(
  branches: readonly Branch[],
  margins: Float64Array,
  calibrations: Calibrations,
): Float64Array {
  return margins.map((margin, at) => {
    const { temperature, bias } = calibrations[branches[at]?.kind ?? "predicate"] ?? uncalibrated
    return margin / temperature + bias
  })
}
