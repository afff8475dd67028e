/** What the ledger needs to know of a stretch of the journal, made without the store: small stretches at once, large ones in a thread. */
import { task, threadBytesMin, threads } from "../../base/peer/threads.ts"
import type { Ticks } from "../../base/money.ts"
import { dayOf, monthOf, periodAt } from "../../base/clock.ts"
import { type KeyDaySpend, budgetId } from "../budgets.ts"
import { type JournalPosition, isBefore } from "./journal.ts"
import type { SequenceRecord } from "./record.ts"
import { type Damage, readJournal } from "./segments.ts"

/** What an account owes for a month, or what was used of a budget in a period. */
export interface AccountSum {
  readonly accountId: string
  /** The first day of the month or period. */
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
  /** What all of them take from each budget and period. */
  readonly budgetSums: readonly AccountSum[]
  readonly keySpends: readonly KeyDaySpend[]
}

/** A word for each charge, in the same order: a text is a fraction of the work that a list of objects is for the store. */
export interface ChargeWords {
  readonly sequences: string
  readonly accounts: string
  readonly ticks: string
}

interface DigestJob {
  readonly directory: string
  readonly from: JournalPosition
  /** Nothing at or after it is read. */
  readonly until: JournalPosition
}

export interface DigestedStretch {
  readonly usage: UsageDigest
  /** Where to go on. Equal to `from` when there is nothing more. */
  readonly next: JournalPosition
  readonly damages: readonly Damage[]
}

/** Some 1,000 records: one transaction of the ledger. */
export const stretchBytesMax = 512 * 1024

/** Reads the journal for the ledger without holding up requests. */
export class Digester {
  /** The last stretch did not reach the end of what there was. */
  #isBehind = false

  /** The signal ends the wait for a stretch, not a stretch that is being read. */
  async read(job: DigestJob, signal: AbortSignal): Promise<DigestedStretch> {
    const { from, until } = job
    // How much there is in segments before the last is not known; after a start it is mostly nothing.
    const isLarge =
      from.segment === until.segment ? until.offset - from.offset >= threadBytesMin : this.#isBehind
    const stretch = await (isLarge
      ? threads.run("ledger", digestTask, job, signal)
      : digestStretch(job, threadBytesMin))
    this.#isBehind = isBefore(stretch.next, until)
    return stretch
  }
}

const digestTask = task(import.meta.url, digestLarge)

/** In a thread. */
export async function digestLarge(job: DigestJob): Promise<DigestedStretch> {
  return await digestStretch(job, stretchBytesMax)
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
  /** The first of its sequences, with the model where that sequence counts with another: no two entries can share it. */
  readonly reference: string
  sequences: number
  input: number
  cached: number
  output: number
  ticks: Ticks
}

/** Those that were charged before count only in the sums: what was held for them is released, whichever gateway charged them. */
export function digestRecords(
  records: readonly SequenceRecord[],
  charged: ReadonlySet<string> = new Set(),
): UsageDigest {
  const sums = new Map<string, AccountSum>()
  const budgetSums = new Map<string, AccountSum>()
  const keySpends = new Map<string, KeyDaySpend>()
  const entries = new Map<string, UsageEntry>()
  const fresh = new Map<string, SequenceRecord>()
  for (const record of records) {
    const { billing_account_id: accountId, timestamp, cost_ticks: ticks } = record
    if (accountId === null || ticks === "0") continue
    addTo(sums, accountId, monthOf(timestamp), BigInt(ticks))
    const keyId = record.api_key_id
    // Records of earlier versions may name a budget several times; its cost is one.
    for (const period of keyId === null ? [] : new Set(record.budgets))
      addTo(budgetSums, budgetId(keyId ?? "", period), periodAt(period, timestamp).startsOn, BigInt(ticks))
    const tagBudgets = Object.entries(record.tag_budgets ?? {})
    for (const [id, periods] of tagBudgets)
      for (const period of periods)
        addTo(budgetSums, budgetId(id, period), periodAt(period, timestamp).startsOn, BigInt(ticks))
    if (charged.has(record.seq_id) || fresh.has(record.seq_id)) continue
    fresh.set(record.seq_id, record)
    count(entries, accountId, record)
    const day = dayOf(timestamp)
    for (const id of [...(keyId === null ? [] : [keyId]), ...tagBudgets.map(([tagBudget]) => tagBudget)]) {
      const spend = keySpends.get(`${id} ${day}`)?.ticks ?? 0n
      keySpends.set(`${id} ${day}`, { keyId: id, day, ticks: spend + BigInt(ticks) })
    }
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
    budgetSums: [...budgetSums.values()],
    keySpends: [...keySpends.values()],
  }
}

function addTo(sums: Map<string, AccountSum>, accountId: string, month: string, ticks: Ticks): void {
  const key = `${accountId} ${month}`
  sums.set(key, { accountId, month, ticks: (sums.get(key)?.ticks ?? 0n) + ticks })
}

function count(entries: Map<string, UsageEntry>, account: string, record: SequenceRecord): void {
  const { organization_id: organization } = record
  const day = dayOf(record.timestamp)
  const admitted = record.billing_mode ?? null
  for (const { model, reference, ...used } of sharesOf(record)) {
    // Only the model, which comes last, can hold a space.
    const key = `${account} ${admitted} ${organization} ${day} ${model}`
    const known = entries.get(key)
    const entry = known ?? { account, admitted, organization, model, day, reference, ...nothing }
    if (!known) entries.set(key, entry)
    entry.sequences += used.sequences
    entry.input += used.input
    entry.cached += used.cached
    entry.output += used.output
    entry.ticks += used.ticks
  }
}

type Share = Pick<UsageEntry, "model" | "reference" | "sequences" | "input" | "cached" | "output" | "ticks">

/**
 * What each model has of a request: that of a virtual model is charged for several. The request counts once, with the model that
 * answered; what the stages do not account for is that model's too, so that the shares are the request to the token.
 */
function sharesOf(record: SequenceRecord): Share[] {
  const stages = (record.stages ?? []).filter(({ cost_ticks }) => cost_ticks !== "0")
  const answering = stages.findLast(({ model }) => model === record.model) ?? stages.at(-1)
  const main = answering?.model ?? record.model
  const others = stages.filter(({ model }) => model !== main)
  const shares = [...Map.groupBy(others, ({ model }) => model)].map(([model, own]): Share => {
    const sum = (field: "input_tokens" | "cached_input_tokens" | "output_tokens"): number =>
      own.reduce((total, stage) => total + stage[field], 0)
    return {
      model,
      reference: `${record.seq_id} ${model}`,
      sequences: 0,
      input: sum("input_tokens"),
      cached: sum("cached_input_tokens"),
      output: sum("output_tokens"),
      ticks: own.reduce((total, { cost_ticks }) => total + BigInt(cost_ticks), 0n),
    }
  })
  const rest = (field: "input" | "cached" | "output", all: number): number =>
    shares.reduce((left, share) => left - share[field], all)
  return [
    {
      model: main,
      reference: record.seq_id,
      sequences: 1,
      input: rest("input", record.input_tokens),
      cached: rest("cached", record.cached_input_tokens),
      output: rest("output", record.output_tokens),
      ticks: shares.reduce((left, { ticks }) => left - ticks, BigInt(record.cost_ticks)),
    },
    ...shares,
  ]
}

const nothing = { sequences: 0, input: 0, cached: 0, output: 0, ticks: 0n }
