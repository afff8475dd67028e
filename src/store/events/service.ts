/** What the gateway asks of the analytics process, and what it answers. */
import type { GroupedTimeseriesResponse, OverviewResponse, Sequence } from "../../contract/analytics.ts"
import type { JournalPart, Taken } from "./intake.ts"
import type { Lookup } from "./lookup.ts"
import type { Question } from "./reports.ts"
import type { LogPage, LogQuestion, SequenceFacts } from "./request-log.ts"
import type { ChargedSum, Excerpt, Holdings, TagSpend, TagSpendQuestion } from "./upkeep.ts"

/** Where the events are. */
export type Place =
  | { readonly engine: "duckdb"; readonly directory: string }
  | { readonly engine: "clickhouse"; readonly url: string }

/** What the analytics process serves. */
export interface AnalyticsService {
  open: { input: Place; output: null }
  overview: { input: Question; output: OverviewResponse }
  timeseries: { input: Question; output: GroupedTimeseriesResponse }
  sequence: { input: Lookup; output: Sequence | null }
  requests: { input: LogQuestion; output: LogPage }
  request: { input: Lookup; output: SequenceFacts | null }
  take: { input: JournalPart; output: Taken }
  import: { input: { readonly file: string }; output: { readonly events: number } }
  export: { input: Excerpt & { readonly file: string }; output: { readonly events: number } }
  copy: { input: { readonly file: string }; output: null }
  prune: { input: { readonly beforeMs: number }; output: null }
  sums: { input: Excerpt; output: ChargedSum[] }
  spendByTag: { input: TagSpendQuestion; output: TagSpend[] }
  holdings: { input: null; output: Holdings }
  close: { input: null; output: null }
}

export type QuestionKind = keyof AnalyticsService
