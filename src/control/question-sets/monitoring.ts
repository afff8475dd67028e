/** Monitoring of a set's answers: what was counted in a range, against a reference window. */
import type { Handlers, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { isStorable } from "../../contract/platform/field-schemas.ts"
import { monitoringLimits, type monitoringTable } from "../../contract/question-sets/monitoring.ts"
import {
  type AnswerSums,
  languageQuestion,
  listAnsweringVersions,
  sumAnswers,
} from "../../store/question-sets/answer-counts.ts"
import { type ControlDeps, acting } from "../audited-change.ts"
import { monitorLanguages, monitorQuestion } from "./answer-figures.ts"
import { readSet } from "./view.ts"

type Table = typeof monitoringTable

const hourMs = 3_600_000
const lengthsMs = { hour: hourMs, day: 24 * hourMs } as const
const rangeMsDefault = 7 * lengthsMs.day
/** Of questions, answers and buckets together. */
const sumsMax = 100_000

export function monitoringHandlers(deps: ControlDeps): Handlers<Table> {
  return { getQuestionSetMonitoring: async (call) => await monitor(deps, call) }
}

const monitor: Handle<ControlDeps, Table["getQuestionSetMonitoring"]> = async ({ database, clock }, call) => {
  const { bucket, version } = call.query
  const set = await readSet(database, acting(call).membership, call.params.set_id)
  const lengthMs = lengthsMs[bucket]
  const range = rangeOf(call.query, lengthMs, clock.nowMs())
  const reference = referenceOf(call.query, range)
  const selection = { setId: set.id, version: version ?? null, question: null }
  const languages = { ...selection, question: languageQuestion }
  const [sums, referenceSums, texts, referenceTexts, versions] = await Promise.all([
    sumAnswers(database, { ...selection, ...range }, lengthMs / 1000, sumsMax + 1),
    sumAnswers(database, { ...selection, ...reference }, null, sumsMax + 1),
    sumAnswers(database, { ...languages, ...range }, lengthMs / 1000, sumsMax),
    sumAnswers(database, { ...languages, ...reference }, null, sumsMax),
    listAnsweringVersions(database, { ...selection, ...range }),
  ])
  if (sums.length > sumsMax || referenceSums.length > sumsMax)
    throw refuse("bucket", "that is too much at once; ask for a shorter range or for days")
  return {
    range: { start: range.startMs, end: range.endMs },
    reference: { start: reference.startMs, end: reference.endMs },
    bucket,
    versions,
    questions: eachQuestion(sums, referenceSums).map(([name, own, others]) =>
      monitorQuestion(name, own, others, { ...range, lengthMs }),
    ),
    languages: monitorLanguages(texts, referenceTexts, { ...range, lengthMs }),
  }
}

function eachQuestion(
  sums: readonly AnswerSums[],
  reference: readonly AnswerSums[],
): [string, AnswerSums[], AnswerSums[]][] {
  const own = Map.groupBy(sums, ({ question }) => question)
  const others = Map.groupBy(reference, ({ question }) => question)
  const names = [...new Set([...own.keys(), ...others.keys()])].toSorted()
  return names.map((name) => [name, own.get(name) ?? [], others.get(name) ?? []])
}

interface Query {
  readonly range_start?: number | undefined
  readonly range_end?: number | undefined
  readonly reference_start?: number | undefined
  readonly reference_end?: number | undefined
}

interface Range {
  readonly startMs: number
  readonly endMs: number
}

const floorTo = (ms: number, lengthMs: number): number => Math.floor(ms / lengthMs) * lengthMs
const ceilTo = (ms: number, lengthMs: number): number => Math.ceil(ms / lengthMs) * lengthMs

/** Counts are by the hour, so that a range begins with its first bucket and ends with the hour of its end. */
function rangeOf({ range_start, range_end }: Query, lengthMs: number, nowMs: number): Range {
  const endMs = ceilTo(range_end ?? nowMs, hourMs)
  const startMs = floorTo(range_start ?? endMs - rangeMsDefault, lengthMs)
  checkRange("range", { startMs, endMs })
  if (endMs - startMs > monitoringLimits.bucketsMax * lengthMs)
    throw refuse("range_start", `at most ${monitoringLimits.bucketsMax} buckets can be asked for`)
  return { startMs, endMs }
}

function referenceOf({ reference_start, reference_end }: Query, range: Range): Range {
  const endMs = reference_end === undefined ? range.startMs : ceilTo(reference_end, hourMs)
  const startMs =
    reference_start === undefined ? endMs - (range.endMs - range.startMs) : floorTo(reference_start, hourMs)
  checkRange("reference", { startMs, endMs })
  return { startMs: Math.max(0, startMs), endMs }
}

function checkRange(name: string, { startMs, endMs }: Range): void {
  if (endMs <= startMs) throw refuse(`${name}_end`, `it must be greater than ${name}_start`)
  if (!isStorable(endMs)) throw refuse(`${name}_end`, "it is too large")
}

const refuse = (path: string, message: string): Fault =>
  new Fault("invalid_query", `Cannot use ${path}: ${message}`, { details: [{ path, message }] })
