/** Counts how sets answer, in memory, and adds the counts to the store now and then: no content, and no wait for a request. */
import { createHash } from "node:crypto"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Ticks } from "../../base/money.ts"
import type { LanguageTag } from "../../contract/language.ts"
import {
  type AnswerCounts,
  addAnswerCounts,
  confidenceBins,
  languageQuestion,
} from "../../store/question-sets/answer-counts.ts"
import type { Database } from "../../store/sql.ts"
import type { Verdict } from "../classification/classification.ts"
import type { AskedVersion } from "./version.ts"

interface CountedRequest {
  readonly version: AskedVersion
  readonly verdicts: readonly Verdict[]
  /** Unix milliseconds at which the request began. */
  readonly startedMs: number
  readonly costTicks: Ticks
  readonly language: LanguageTag
}

export interface AnswerCounter {
  /** Returns at once. */
  count(answered: CountedRequest): void
  /** Adds what was counted to the store. */
  flush(): Promise<void>
  /** Answers that were not counted, because the store was away for too long. */
  dropped(): number
  close(): Promise<void>
}

interface CounterDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

const flushEveryMs = 10_000
const hourMs = 3_600_000
/** Different answers of different hours that wait for the store; of more, only the number is kept. */
const entriesMax = 50_000
const rowsPerStatement = 500
/** An answer is part of an index's key, which has a size. */
const answerCharactersMax = 200

type Counts = { -readonly [Field in keyof AnswerCounts]: AnswerCounts[Field] } & { bins: number[] }

export const startAnswerCounter = (deps: CounterDeps): AnswerCounter => new MemoryCounter(deps)

class MemoryCounter implements AnswerCounter {
  readonly #deps: CounterDeps
  #entries = new Map<string, Counts>()
  #flushing: Promise<void> = Promise.resolve()
  #dropped = 0
  readonly #timer = setInterval(() => void this.flush(), flushEveryMs).unref()

  constructor(deps: CounterDeps) {
    this.#deps = deps
  }

  count({ version, verdicts, startedMs, costTicks, language }: CountedRequest): void {
    // Names of questions that requests bring themselves have no bound.
    if (version.questions.length === 0) return
    const nowMs = this.#deps.clock.nowMs()
    const hour = Math.floor(nowMs / hourMs) * hourMs
    const latencyMs = Math.max(0, nowMs - startedMs)
    const shares = divide(costTicks, verdicts.length)
    const { setId, number } = version
    const counted = { setId, version: number, hourMs: hour, rows: 1 }
    for (const [at, verdict] of verdicts.entries()) {
      const { name: question, isAbstention: abstained, confidence } = verdict
      const bins = noBins()
      bins[Math.min(confidenceBins - 1, Math.max(0, Math.floor(confidence * confidenceBins)))] = 1
      const answer = abstained ? "" : bounded(String(verdict.value))
      const costs = { confidence, latencyMs, costTicks: shares[at] ?? 0n }
      this.#add({ ...counted, question, abstained, answer, bins, ...costs })
    }
    const texts = { question: languageQuestion, abstained: false, answer: language, bins: noBins() }
    this.#add({ ...counted, ...texts, confidence: 0, latencyMs: 0, costTicks: 0n })
  }

  async flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write())
    await this.#flushing
  }

  dropped(): number {
    return this.#dropped
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async #write(): Promise<void> {
    const counts = [...this.#entries.values()]
    this.#entries = new Map()
    for (let start = 0; start < counts.length; start += rowsPerStatement) {
      const some = counts.slice(start, start + rowsPerStatement)
      try {
        await addAnswerCounts(this.#deps.database, some)
      } catch (error) {
        this.#deps.log.warn({ err: error }, "counts of answers could not be written; they are kept")
        for (const one of counts.slice(start)) this.#add(one)
        return
      }
    }
  }

  #add(counts: Counts): void {
    const key = keyOf(counts)
    const known = this.#entries.get(key)
    if (!known) {
      if (this.#entries.size < entriesMax) this.#entries.set(key, counts)
      else this.#dropped += counts.rows
      return
    }
    known.rows += counts.rows
    known.bins = known.bins.map((count, bin) => count + (counts.bins[bin] ?? 0))
    known.confidence += counts.confidence
    known.latencyMs += counts.latencyMs
    known.costTicks += counts.costTicks
  }
}

const noBins = (): number[] => Array.from<number>({ length: confidenceBins }).fill(0)

type Key = Pick<AnswerCounts, "setId" | "version" | "question" | "hourMs" | "abstained" | "answer">

const keyOf = ({ setId, version, question, hourMs: hour, abstained, answer }: Key): string =>
  `${setId} ${version} ${hour} ${abstained ? "-" : "+"}${question} ${answer}`

function bounded(answer: string): string {
  // The store cannot hold U+0000 or half of a surrogate pair, and one such answer would hold up all others.
  const text = answer.replaceAll("\0", "\ufffd").toWellFormed()
  if (text.length <= answerCharactersMax) return text
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8)
  return `${text.slice(0, answerCharactersMax).toWellFormed()}... (${hash})`
}

/** Shares that add up to the whole. */
function divide(ticks: Ticks, deps: number): Ticks[] {
  const count = BigInt(Math.max(1, deps))
  const share = ticks / count
  const rest = ticks - share * count
  return Array.from({ length: deps }, (_, at) => (BigInt(at) < rest ? share + 1n : share))
}
