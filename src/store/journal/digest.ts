/** What the ledger needs to know of a stretch of the journal, made without the store: small stretches at once, large ones in a thread. */
import { threadChannel } from "../../base/peer/supervisor.ts"
import { createPool } from "../../base/peer/pool.ts"
import type { Ticks } from "../../base/money.ts"
import { dayOf, monthOf } from "../../base/clock.ts"
import type { Damage } from "./damage.ts"
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
  readonly charges: ChargeWords
  /** A JSON list with one entry for each account, billing mode, organization, model and day. */
  readonly entries: string
  /** What all of them take from each account and month. */
  readonly sums: readonly AccountSum[]
}

/** A word for each charge, in the same order: a text is a fraction of the work that a list of objects is for the store. */
export interface ChargeWords {
  readonly sequences: string
  readonly accounts: string
  readonly ticks: string
}

export interface DigestJob {
  readonly directory: string
  readonly from: JournalPosition
  /** Nothing at or after it is read. */
  readonly until: JournalPosition
}

/** What the thread serves. */
export interface DigestService {
  digest: { input: DigestJob; output: DigestedStretch }
}

export interface DigestedStretch {
  readonly usage: UsageDigest
  /** Where to go on. Equal to `from` when there is nothing more. */
  readonly next: JournalPosition
  readonly damages: readonly Damage[]
}

/** Some 1,000 records: one transaction of the ledger. */
export const stretchBytesMax = 512 * 1024
/** Some 100 records: reading them takes less than a millisecond, and they need not be sent from thread to thread. */
export const digestedApartBytesMin = 64 * 1024

/** Reads the journal for the ledger without holding up requests. */
export class Digester {
  readonly #pool = createPool<DigestService>({
    spawn: () => threadChannel(new URL("./digest-thread.ts", import.meta.url)),
    peersMax: 1,
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
      ? this.#pool.run("ledger", "digest", job, signal)
      : digestStretch(job, digestedApartBytesMin))
    this.#isBehind = isBefore(stretch.next, until)
    return stretch
  }
}

export async function digestStretch(
  { directory, from, until }: DigestJob,
  bytesMax: number,
): Promise<DigestedStretch> {
  const { records, next, damages } = await readJournal(directory, from, { until, bytesMax })
  return { usage: digestRecords(records), next, damages }
}

/** An entry of the ledger, by the names that the store reads. */
interface UsageEntry {
  readonly account: string
  readonly organization: string
  readonly model: string
  readonly day: string
  /** Prepaid or postpaid; null in records that do not say so. */
  readonly admitted: string | null
  /** The first of its sequences: no two entries can share it. */
  readonly reference: string
  sequences: number
  input: number
  cached: number
  output: number
  ticks: Ticks
}

/** Those that were charged before count only in the sums: what was held for them goes back, whoever charged them. */
export function digestRecords(
  records: readonly SequenceRecord[],
  charged: ReadonlySet<string> = new Set(),
): UsageDigest {
  const sums = new Map<string, AccountSum>()
  const entries = new Map<string, UsageEntry>()
  const fresh = new Map<string, SequenceRecord>()
  for (const record of records) {
    const { billing_account_id: accountId, timestamp, cost_ticks: ticks } = record
    if (accountId === null || ticks === "0") continue
    const month = monthOf(timestamp)
    const key = `${accountId} ${month}`
    sums.set(key, { accountId, month, ticks: (sums.get(key)?.ticks ?? 0n) + BigInt(ticks) })
    if (charged.has(record.seq_id) || fresh.has(record.seq_id)) continue
    fresh.set(record.seq_id, record)
    count(entries, accountId, record)
  }
  const costly = [...fresh.values()]
  return {
    charges: {
      sequences: costly.map(({ seq_id }) => seq_id).join(" "),
      accounts: costly.map(({ billing_account_id }) => billing_account_id).join(" "),
      ticks: costly.map(({ cost_ticks }) => cost_ticks).join(" "),
    },
    entries: JSON.stringify([...entries.values()].map((entry) => ({ ...entry, ticks: String(entry.ticks) }))),
    sums: [...sums.values()],
  }
}

function count(entries: Map<string, UsageEntry>, account: string, record: SequenceRecord): void {
  const { organization_id: organization, model, seq_id: reference } = record
  const day = dayOf(record.timestamp)
  // Only the model, which comes last, can hold a space.
  const admitted = record.billing_mode ?? null
  const key = `${account} ${admitted} ${organization} ${day} ${model}`
  const known = entries.get(key)
  const entry = known ?? { account, admitted, organization, model, day, reference, ...nothing }
  if (!known) entries.set(key, entry)
  entry.sequences++
  entry.input += record.input_tokens
  entry.cached += record.cached_input_tokens
  entry.output += record.output_tokens
  entry.ticks += BigInt(record.cost_ticks)
}

const nothing = { sequences: 0, input: 0, cached: 0, output: 0, ticks: 0n }
