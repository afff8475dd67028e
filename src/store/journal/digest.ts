/** What the ledger needs to know of a stretch of the journal, made without the store: small stretches at once, large ones in a thread. */
import { type Threads, createThreads } from "../../base/threads.ts"
import type { Ticks } from "../../base/money.ts"
import { dayOf, monthOf } from "../months.ts"
import type { SequenceRecord } from "./record.ts"
import { type JournalPosition, isBefore, readJournal } from "./segments.ts"

/** What an account owes for a month. */
export interface AccountSum {
  readonly accountId: string
  /** The first day of the month. */
  readonly month: string
  readonly ticks: Ticks
}

/** The sequences that cost something. */
export interface UsageDigest {
  /** A JSON list of them, for the store to count. */
  readonly rows: string
  /** What they take from each account and month. */
  readonly sums: readonly AccountSum[]
}

export interface DigestJob {
  readonly directory: string
  readonly from: JournalPosition
  /** Nothing at or after it is read. */
  readonly until: JournalPosition
}

export interface DigestedStretch {
  readonly usage: UsageDigest
  /** Where to go on. Equal to `from` when there is nothing more. */
  readonly next: JournalPosition
  /** Lines that were written whole and are no longer what was written. */
  readonly damaged: number
}

/** Some 1,000 records: one transaction of the ledger. */
export const stretchBytesMax = 512 * 1024
/** Some 100 records: reading them takes less than a millisecond, and they need not be sent from thread to thread. */
export const digestedApartBytesMin = 64 * 1024

/** Reads the journal for the ledger without holding up requests. */
export class Digester {
  readonly #threads: Threads<DigestJob, DigestedStretch> = createThreads({
    entry: new URL("./digest-thread.ts", import.meta.url),
    threadsMax: 1,
  })
  /** The last stretch did not reach the end of what there was. */
  #isBehind = false

  /** The signal ends the wait for a stretch, not a stretch that is being read. */
  async read(job: DigestJob, signal: AbortSignal): Promise<DigestedStretch> {
    const { from, until } = job
    // How much there is in segments before the last is not known; after a start it is mostly nothing.
    const isLarge =
      from.segment === until.segment ? until.offset - from.offset >= digestedApartBytesMin : this.#isBehind
    const stretch = await (isLarge
      ? this.#threads.run("ledger", job, signal)
      : digestStretch(job, digestedApartBytesMin))
    this.#isBehind = isBefore(stretch.next, until)
    return stretch
  }
}

export async function digestStretch(
  { directory, from, until }: DigestJob,
  bytesMax: number,
): Promise<DigestedStretch> {
  const { records, next, damaged } = await readJournal(directory, from, { until, bytesMax })
  return { usage: digestRecords(records), next, damaged }
}

export function digestRecords(records: readonly SequenceRecord[]): UsageDigest {
  const sums = new Map<string, AccountSum>()
  const rows: unknown[] = []
  for (const record of records) {
    const { billing_account_id: accountId, timestamp, cost_ticks: ticks } = record
    if (accountId === null || ticks === "0") continue
    rows.push({
      seq_id: record.seq_id,
      account: accountId,
      organization: record.organization_id,
      model: record.model,
      day: dayOf(timestamp),
      input: record.input_tokens,
      cached: record.cached_input_tokens,
      output: record.output_tokens,
      ticks,
    })
    const month = monthOf(timestamp)
    const key = `${accountId} ${month}`
    sums.set(key, { accountId, month, ticks: (sums.get(key)?.ticks ?? 0n) + BigInt(ticks) })
  }
  return { rows: JSON.stringify(rows), sums: [...sums.values()] }
}
