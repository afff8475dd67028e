/**
 * What this process tells of its work: metrics (counts, levels and distributions, in the text that Prometheus reads), and the
 * spans of a trace, of which nothing is made or kept unless a tracer is given.
 */
import { AsyncLocalStorage } from "node:async_hooks"

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

/** Different labels of one metric; a label that can take any value must not fill the memory. */
const seriesMax = 10_000
/** Upper bounds of durations, from a decision to a long answer. */
export const durationBucketsSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge" | "histogram"
  readonly lines: () => Iterable<string>
}

interface Distribution {
  readonly counts: number[]
  sum: number
  count: number
}

export class Metrics {
  readonly #metrics: Metric[] = []

  /** Answers the function that counts. */
  counter(name: string, help: string): (labels: Labels, by?: number) => void {
    const count = this.counters(name, help)
    return (labels, by = 1) => count(labels)(by)
  }

  /** Returns a function that finds the series of some labels; callers that count often keep it, since formatting labels takes longer. */
  counters(name: string, help: string): (labels: Labels) => (by?: number) => void {
    const series = new Map<string, { count: number }>()
    this.#add({
      name,
      help,
      type: "counter",
      lines: () => [...series].map(([key, { count }]) => `${key} ${count}`),
    })
    return (labels) => {
      const key = name + drawLabels(labels)
      let known: { count: number } | undefined
      return (by = 1) => {
        known ??= series.get(key)
        if (known) known.count += by
        else if (series.size < seriesMax) series.set(key, { count: by })
      }
    }
  }

  /** Returns what finds the series of some labels, to which observations are added. */
  histograms(
    name: string,
    help: string,
    buckets: readonly number[],
  ): (labels: Labels) => (value: number) => void {
    const series = new Map<string, { readonly labels: Labels; readonly seen: Distribution }>()
    const lines = (): string[] =>
      [...series.values()].flatMap(({ labels, seen }) => distributionLines(name, seen, { labels, buckets }))
    this.#add({ name, help, type: "histogram", lines })
    return (labels) => {
      const key = drawLabels(labels)
      let known = series.get(key)
      if (!known) {
        if (series.size >= seriesMax) return () => undefined
        series.set(key, (known = { labels, seen: { counts: buckets.map(() => 0), sum: 0, count: 0 } }))
      }
      const { seen } = known
      return (value) => observe(seen, buckets, value)
    }
  }

  /** Measured when the text is asked for. */
  gauge(name: string, help: string, measure: () => Iterable<Sample>): void {
    this.#add({ name, help, type: "gauge", lines: measuredLines(name, measure) })
  }

  /** A counter that is kept elsewhere; measured when the text is asked for. */
  total(name: string, help: string, measure: () => Iterable<Sample>): void {
    this.#add({ name, help, type: "counter", lines: measuredLines(name, measure) })
  }

  text(): string {
    const blocks = this.#metrics.map(({ name, help, type, lines }) =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines()].join("\n"),
    )
    return `${blocks.join("\n")}\n`
  }

  #add(metric: Metric): void {
    if (this.#metrics.some(({ name }) => name === metric.name))
      throw new RangeError(`Cannot add the metric ${metric.name}: there is one of this name`)
    if (metric.name.endsWith("_total") !== (metric.type === "counter"))
      throw new RangeError(`Cannot add the metric ${metric.name}: counters, and only they, end in _total`)
    this.#metrics.push(metric)
  }
}

const measuredLines = (name: string, measure: () => Iterable<Sample>) => (): string[] =>
  [...measure()].map(({ labels, value }) => `${name}${drawLabels(labels)} ${value}`)

function observe(seen: Distribution, buckets: readonly number[], value: number): void {
  seen.sum += value
  seen.count++
  for (let index = buckets.length - 1; index >= 0 && value <= (buckets[index] ?? 0); index--)
    seen.counts[index] = (seen.counts[index] ?? 0) + 1
}

function distributionLines(
  name: string,
  { counts, sum, count }: Distribution,
  { labels, buckets }: { readonly labels: Labels; readonly buckets: readonly number[] },
): string[] {
  const bucket = (upTo: string, value: number): string =>
    `${name}_bucket${drawLabels({ ...labels, le: upTo })} ${value}`
  return [
    ...buckets.map((upTo, index) => bucket(String(upTo), counts[index] ?? 0)),
    bucket("+Inf", count),
    `${name}_sum${drawLabels(labels)} ${sum}`,
    `${name}_count${drawLabels(labels)} ${count}`,
  ]
}

function drawLabels(labels: Labels): string {
  let text = ""
  for (const name in labels) text += `${text === "" ? "{" : ","}${name}="${escape(labels[name] ?? "")}"`
  return text === "" ? "" : `${text}}`
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" }

const escape = (value: string): string =>
  /[\\"\n]/.test(value) ? value.replaceAll(/[\\"\n]/g, (found) => escapes[found] ?? found) : value

export type SpanKind = "server" | "client" | "internal"
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | null>>

export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** The W3C headers that make what another server does a part of this span. */
  readonly headers: Readonly<Record<string, string>>
  child(name: string, kind?: SpanKind): Span
  rename(name: string): void
  /** A null is left out. */
  set(attributes: Attributes): void
  /** By the code of an error; messages may quote what was sent. */
  fail(code: string): void
  end(): void
}

export interface Tracer {
  /** A span that goes on with the caller's trace where its headers name one. */
  begin(name: string, kind: SpanKind, header: (name: string) => string | null): Span
}

const active = new AsyncLocalStorage<Span>()

/** The span that the present work belongs to. */
export const activeSpan = (): Span | undefined => active.getStore()

export function withSpan<Result>(span: Span | undefined, work: () => Result): Result {
  return span ? active.run(span, work) : work()
}
