/** Holds the ledger, the gateways' journals and what the clients were told against one another, to the tick. */
import pg from "pg"
import type { SequenceRecord } from "../../src/store/journal/record.ts"
import { readRecords } from "../gateways.ts"
import { type Gateway, inputTokenTicks, outputTokenTicks } from "./cluster.ts"
import type { Receipts } from "./load.ts"

export interface Money {
  readonly expectedTicks: bigint
  readonly chargedTicks: bigint
  /** Ticks that were used and the ledger lacks, or that it has too much. */
  readonly lostTicks: bigint
  readonly doubledTicks: bigint
  readonly chargedSequences: bigint
  /** Charged for requests that failed on their way, by what had run. */
  readonly failedTicks: bigint
  /** The balance is the sum of the ledger. */
  readonly isBalanced: boolean
}

/** What is in the ledger leaves the journal after some minutes, so a long run looks now and then. */
export async function rememberRecords(
  seen: Map<string, SequenceRecord>,
  gateways: readonly Gateway[],
): Promise<void> {
  for (const { dataDirectory } of gateways)
    for (const record of await readRecords(dataDirectory)) seen.set(record.seq_id, record)
}

export async function countMoney(
  url: string,
  records: readonly SequenceRecord[],
  receipts: Receipts,
): Promise<Money> {
  const ledger = await readLedger(url)
  const differences = [
    ...answeredDifferences(records, receipts),
    ...failedDifferences(records, receipts),
    ledger.chargedTicks - sum(records.map(costOf)),
  ]
  const failed = records.filter(({ request_id }) => receipts.failed.has(request_id ?? ""))
  return {
    expectedTicks: sum([...receipts.answered.values()]),
    failedTicks: sum(failed.map(costOf)),
    lostTicks: sum(differences.filter((ticks) => ticks < 0n).map((ticks) => -ticks)),
    doubledTicks: sum(differences.filter((ticks) => ticks > 0n)),
    ...ledger,
  }
}

/** One record for each whole answer, of exactly what the answer said. */
function answeredDifferences(records: readonly SequenceRecord[], { answered }: Receipts): bigint[] {
  const charged = Map.groupBy(records, ({ request_id }) => request_id ?? "")
  return [...answered].map(([id, ticks]) => sum((charged.get(id) ?? []).map(costOf)) - ticks)
}

/** One record at most, priced by its own counts, which are no less than what came through. */
function failedDifferences(records: readonly SequenceRecord[], { failed }: Receipts): bigint[] {
  const charged = Map.groupBy(records, ({ request_id }) => request_id ?? "")
  return [...failed].map(([id, pieces]) => {
    const [record, ...more] = charged.get(id) ?? []
    const ran = record ? pricedBy(record) : 0n
    const unseen = BigInt(Math.max(0, pieces - (record?.output_tokens ?? 0))) * outputTokenTicks
    return (record ? costOf(record) : 0n) - ran - unseen + sum(more.map(costOf))
  })
}

const costOf = ({ cost_ticks }: SequenceRecord): bigint => BigInt(cost_ticks)

const pricedBy = ({ input_tokens, cached_input_tokens, output_tokens }: SequenceRecord): bigint =>
  BigInt(input_tokens + cached_input_tokens) * inputTokenTicks + BigInt(output_tokens) * outputTokenTicks

const sum = (ticks: readonly bigint[]): bigint => ticks.reduce((total, one) => total + one, 0n)

async function readLedger(
  url: string,
): Promise<Pick<Money, "chargedTicks" | "chargedSequences" | "isBalanced">> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const usage = await client.query<{ ticks: string; sequences: string }>(
      "SELECT coalesce(-sum(amount_ticks), 0)::text AS ticks, coalesce(sum(sequences), 0)::text AS sequences FROM ledger WHERE kind = 'usage'",
    )
    const balance = await client.query<{ is_balanced: boolean }>(
      `SELECT bool_and(b.balance_ticks = (SELECT coalesce(sum(l.amount_ticks), 0) FROM ledger l WHERE l.billing_account_id = b.id AND l.mode = 'prepaid')) AS is_balanced
       FROM billing_accounts b`,
    )
    return {
      chargedTicks: BigInt(usage.rows[0]?.ticks ?? 0),
      chargedSequences: BigInt(usage.rows[0]?.sequences ?? 0),
      isBalanced: balance.rows[0]?.is_balanced === true,
    }
  } finally {
    await client.end()
  }
}
