/** The gateway's side of analytics: asks the analytics process, which is started with the first question. */
import { PeerGone } from "../../base/peer/peer.ts"
import { childChannel, Supervisor } from "../../base/peer/supervisor.ts"
import type { GroupedTimeseriesResponse, OverviewResponse, Sequence } from "../../contract/analytics.ts"
import type { EventBatch } from "./event.ts"
import { EventEngineError } from "./engine.ts"
import type { JournalPart, Taken } from "./intake.ts"
import type { Question } from "./reports.ts"
import type { Lookup, LogPage, LogQuestion, SequenceFacts } from "./request-log.ts"
import type { ChargedSum, Excerpt, Holdings, TagSpend, TagSpendQuestion } from "./upkeep.ts"

export interface Events {
  ask<Kind extends QuestionKind>(
    kind: Kind,
    input: AnalyticsService[Kind]["input"],
  ): Promise<AnalyticsService[Kind]["output"]>
  /** Gives others what is to be shared, as it is taken. */
  import(file: string, share?: (batch: EventBatch) => Promise<void>): Promise<{ readonly events: number }>
  close(): Promise<void>
}

interface EventsSettings {
  readonly place: Place
  /** Called when the process ends unexpectedly. */
  readonly onDeath?: (reason: string) => void
}

const pendingMax = 200
const closeMsMax = 10_000

/** Starts nothing yet: the process begins with the first question. */
export function openEvents({ place, onDeath }: EventsSettings): Events {
  const peer = new Supervisor<AnalyticsService>({
    spawn: () => childChannel(new URL("./child.ts", import.meta.url)),
    open: place,
    pendingMax,
    ...(onDeath ? { onDeath } : {}),
  })
  return {
    async ask(kind, input) {
      try {
        return await peer.call(kind, input)
      } catch (error) {
        throw new EventEngineError(sentenceOf(error), { cause: error })
      }
    },
    async import(file, share) {
      try {
        const reading = await peer.stream("import", { file, share: share !== undefined })
        for (;;) {
          const next = await reading.next()
          if (next.done) return next.value
          await share?.(next.value)
        }
      } catch (error) {
        throw new EventEngineError(sentenceOf(error), { cause: error })
      }
    },
    async close() {
      // What was acknowledged is on disk; an orderly end only saves the next start some work.
      await peer.running?.call("close", null, AbortSignal.timeout(closeMsMax)).catch(() => undefined)
      await peer.close()
    },
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof PeerGone) return "Cannot ask about events: the analytics process ended"
  return error instanceof Error ? error.message : String(error)
}

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
  receive: { input: { readonly data: Uint8Array; readonly token: string }; output: null }
  import: {
    input: { readonly file: string; readonly share: boolean }
    item: EventBatch
    output: { readonly events: number }
  }
  export: { input: Excerpt & { readonly file: string }; output: { readonly events: number } }
  copy: { input: { readonly file: string }; output: null }
  prune: { input: { readonly beforeMs: number }; output: null }
  sums: { input: Excerpt; output: ChargedSum[] }
  spendByTag: { input: TagSpendQuestion; output: TagSpend[] }
  holdings: { input: null; output: Holdings }
  close: { input: null; output: null }
}

type QuestionKind = Exclude<keyof AnalyticsService, "import">
