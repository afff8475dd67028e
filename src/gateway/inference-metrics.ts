/** What Prometheus is told of finished requests: how many, how long, what they used and what they cost, by model. */
import type { Catalog } from "../base/catalog.ts"
import { type Metrics, durationBucketsSeconds } from "../base/metrics.ts"
import { dollarsOf } from "../base/money.ts"
import type { SequenceRecord } from "../store/journal/record.ts"

/** What a record does not hold. */
export interface FinishedDetails {
  /** Branches that were scored; zero where nothing was. */
  readonly branches: number
  /** Unix milliseconds at which a worker began to answer; null when none did. */
  readonly answerBeganMs: number | null
}

export type ObserveFinished = (record: SequenceRecord, details: FinishedDetails) => void

/** Most requests find a slot at once. */
const queueBucketsSeconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30]
const millisecondsPerSecond = 1_000
/** What a request sends is no label: anyone could fill the memory with names. */
const otherModel = "other"

export function createInferenceMetrics(metrics: Metrics, catalog: Pick<Catalog, "find">): ObserveFinished {
  const open = seriesOf(metrics)
  const known = new Map<string, ReturnType<typeof open>>()
  return (record, details) => {
    const isSku = catalog.find(record.model)?.sku === record.model
    const model = isSku ? record.model : otherModel
    const key = `${record.call_source} ${model}`
    let observe = known.get(key)
    if (!observe) known.set(key, (observe = open(model, record.call_source)))
    observe(record, details)
  }
}

function seriesOf(metrics: Metrics): (model: string, source: string) => ObserveFinished {
  const counts = countersOf(metrics)
  const durations = durationsOf(metrics)
  return (model, source) => {
    const count = counts(model, source)
    const time = durations(model, source)
    return (record, details) => {
      count(record, details)
      time(record, details)
    }
  }
}

function countersOf(metrics: Metrics): (model: string, source: string) => ObserveFinished {
  const requests = metrics.counters(
    "umpire_requests_total",
    "Inference requests that ended, by result: success, error (also refusals) or cancelled.",
  )
  const errors = metrics.counters("umpire_request_errors_total", "Failed inference requests by error code.")
  const tokens = metrics.counters(
    "umpire_tokens_total",
    "Tokens charged: input (without cached ones), cached_input and output.",
  )
  const cost = metrics.counters("umpire_cost_dollars_total", "What requests were charged, in USD.")
  const questions = metrics.counters("umpire_decisions_total", "Questions that were answered.")
  const branches = metrics.counters("umpire_decision_branches_total", "Branches that were scored.")
  const abstained = metrics.counters(
    "umpire_decision_abstentions_total",
    "Questions that sets abstained from.",
  )
  return (model, source) => {
    const byModel = { model, call_source: source }
    const ofType = (type: string) => tokens({ ...byModel, type })
    const [input, cachedInput, output] = [ofType("input"), ofType("cached_input"), ofType("output")]
    const charge = cost(byModel)
    const [asked, scored, abstain] = [questions(byModel), branches(byModel), abstained(byModel)]
    const results = {
      success: requests({ ...byModel, result: "success" }),
      error: requests({ ...byModel, result: "error" }),
      cancelled: requests({ ...byModel, result: "cancelled" }),
    }
    return (record, details) => {
      results[record.result]()
      if (record.error_code !== null) errors({ ...byModel, error_code: record.error_code })()
      input(record.input_tokens)
      cachedInput(record.cached_input_tokens)
      output(record.output_tokens)
      charge(dollarsOf(record.cost_ticks))
      if (record.result !== "success" || !record.questions) return
      asked(record.questions)
      scored(details.branches)
      abstain(record.abstained ?? 0)
    }
  }
}

function durationsOf(metrics: Metrics): (model: string, source: string) => ObserveFinished {
  const requests = metrics.histograms(
    "umpire_request_duration_seconds",
    "Time of an inference request, from its head to the end of its answer.",
    durationBucketsSeconds,
  )
  const firstTokens = metrics.histograms(
    "umpire_time_to_first_token_seconds",
    "Time from the head of a request to the first token that a model wrote for it.",
    durationBucketsSeconds,
  )
  const queues = metrics.histograms(
    "umpire_queue_duration_seconds",
    "Time that a request waited for a slot at a worker.",
    queueBucketsSeconds,
  )
  const engines = metrics.histograms(
    "umpire_engine_duration_seconds",
    "Time that engines worked on a request.",
    durationBucketsSeconds,
  )
  return (model, source) => {
    const labels = { model, call_source: source }
    const whole = requests(labels)
    const queue = queues(labels)
    const engine = engines(labels)
    return (record, { answerBeganMs }) => {
      whole(record.seq_duration_ms / millisecondsPerSecond)
      if (typeof record.queue_ms === "number") queue(record.queue_ms / millisecondsPerSecond)
      if (typeof record.engine_ms === "number") engine(record.engine_ms / millisecondsPerSecond)
      if (record.output_tokens > 0 && answerBeganMs !== null)
        firstTokens(labels)(Math.max(0, answerBeganMs - record.timestamp) / millisecondsPerSecond)
    }
  }
}
