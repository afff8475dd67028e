/** Puts the journal of a gateway into the ledger, each sequence once, in one transaction with everything it moves. */
import type { Ticks } from "../base/money.ts"
import { lockBillingAccount } from "./billing-accounts.ts"
import type { SequenceRecord } from "./journal/record.ts"
import type { JournalPosition } from "./journal/segments.ts"
import { type SpendWarning, checkWarnings } from "./spend.ts"
import type { Sql, Transaction } from "./sql.ts"
import { monthOf, dayOf } from "./months.ts"

export interface UsageBatch {
  readonly gatewayId: string
  readonly from: JournalPosition
  readonly next: JournalPosition
  readonly records: readonly SequenceRecord[]
  readonly now: Date
  readonly newAuditId: () => string
}

export interface AppliedUsage {
  /** False when the ledger is not at `from`: an earlier attempt took effect although its answer was lost. */
  readonly applied: boolean
  /** How far the ledger is now. */
  readonly position: JournalPosition
  readonly warnings: readonly SpendWarning[]
}

/** How far the journal of this gateway is in the ledger. */
export async function findJournalPosition(sql: Sql, gatewayId: string): Promise<JournalPosition> {
  const [row] = await sql.query<PositionRow>(
    "SELECT segment, position FROM journal_positions WHERE gateway_id = $1",
    [gatewayId],
  )
  return row ? toPosition(row) : { segment: 0, offset: 0 }
}

/** What the records of a batch take from each account and month; the gateway's holds shrink by the same. */
export function sumByAccount(records: readonly SequenceRecord[]): AccountSum[] {
  const sums = new Map<string, AccountSum>()
  for (const { billing_account_id: accountId, timestamp, cost_ticks } of records) {
    const costTicks = BigInt(cost_ticks)
    if (accountId === null || costTicks === 0n) continue
    const month = monthOf(timestamp)
    const key = `${accountId} ${month}`
    sums.set(key, { accountId, month, ticks: (sums.get(key)?.ticks ?? 0n) + costTicks })
  }
  return [...sums.values()]
}

export interface AccountSum {
  readonly accountId: string
  /** The first day of the month. */
  readonly month: string
  readonly ticks: Ticks
}

export async function applyUsage(sql: Transaction, batch: UsageBatch): Promise<AppliedUsage> {
  const position = await lockPosition(sql, batch)
  if (position.segment !== batch.from.segment || position.offset !== batch.from.offset)
    return { applied: false, position, warnings: [] }
  const costly = batch.records.filter(
    (record) => record.billing_account_id !== null && record.cost_ticks !== "0",
  )
  const accounts = [...new Set(costly.map(({ billing_account_id }) => billing_account_id ?? ""))].toSorted()
  // In order of their ids, so that gateways that apply at the same time wait for each other instead of locking up.
  for (const id of accounts) await lockBillingAccount(sql, id)
  const charged = await insertCharges(sql, costly, batch.now)
  const fresh = costly.filter(({ seq_id }) => charged.has(seq_id))
  for (const entry of groupEntries(fresh)) await insertEntry(sql, entry, batch.now)
  for (const sum of sumByAccount(fresh)) await moveAccount(sql, sum)
  // Also for sequences that were charged before: the hold was for them, whoever applied them.
  for (const sum of sumByAccount(costly)) await shrinkHold(sql, batch.gatewayId, sum)
  await sql.query(
    "UPDATE journal_positions SET segment = $2, position = $3, updated_at = $4 WHERE gateway_id = $1",
    [batch.gatewayId, batch.next.segment, batch.next.offset, batch.now],
  )
  const warnings: SpendWarning[] = []
  for (const id of accounts) warnings.push(...(await checkWarnings(sql, id, batch.now, batch.newAuditId)))
  return { applied: true, position: batch.next, warnings }
}

interface PositionRow {
  readonly segment: bigint
  readonly position: bigint
}

const toPosition = ({ segment, position }: PositionRow): JournalPosition => ({
  segment: Number(segment),
  offset: Number(position),
})

async function lockPosition(sql: Sql, { gatewayId, now }: UsageBatch): Promise<JournalPosition> {
  await sql.query(
    `INSERT INTO journal_positions (gateway_id, segment, position, updated_at) VALUES ($1, 0, 0, $2)
     ON CONFLICT (gateway_id) DO NOTHING`,
    [gatewayId, now],
  )
  const [row] = await sql.query<PositionRow>(
    "SELECT segment, position FROM journal_positions WHERE gateway_id = $1 FOR UPDATE",
    [gatewayId],
  )
  return row ? toPosition(row) : { segment: 0, offset: 0 }
}

/** Answers the sequences that were not charged before. */
async function insertCharges(
  sql: Sql,
  records: readonly SequenceRecord[],
  now: Date,
): Promise<ReadonlySet<string>> {
  if (records.length === 0) return new Set()
  const rows = records.map(({ seq_id, billing_account_id, cost_ticks }) => ({
    seq_id,
    account: billing_account_id,
    ticks: cost_ticks,
  }))
  const inserted = await sql.query<{ seq_id: string }>(
    `INSERT INTO charges (seq_id, billing_account_id, amount_ticks, charged_at)
     SELECT seq_id, account, ticks, $2 FROM jsonb_to_recordset($1::jsonb) AS r(seq_id text, account text, ticks bigint)
     ON CONFLICT (seq_id) DO NOTHING RETURNING seq_id`,
    [JSON.stringify(rows), now],
  )
  return new Set(inserted.map(({ seq_id }) => seq_id))
}

interface UsageEntry {
  readonly accountId: string
  readonly organizationId: string
  readonly day: string
  readonly model: string
  /** The first of its sequences: no two entries can share it. */
  readonly reference: string
  sequences: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  ticks: Ticks
}

function groupEntries(records: readonly SequenceRecord[]): UsageEntry[] {
  const groups = new Map<string, UsageEntry>()
  for (const record of records) {
    const accountId = record.billing_account_id ?? ""
    const { organization_id: organizationId, model, seq_id: reference } = record
    const day = dayOf(record.timestamp)
    // Only the model, which comes last, can hold a space.
    const key = `${accountId} ${organizationId} ${day} ${model}`
    const known = groups.get(key)
    const entry = known ?? { accountId, organizationId, day, model, reference, ...nothing }
    if (!known) groups.set(key, entry)
    entry.sequences++
    entry.inputTokens += record.input_tokens
    entry.cachedInputTokens += record.cached_input_tokens
    entry.outputTokens += record.output_tokens
    entry.ticks += BigInt(record.cost_ticks)
  }
  return [...groups.values()]
}

const nothing = { sequences: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, ticks: 0n }

async function insertEntry(sql: Sql, entry: UsageEntry, now: Date): Promise<void> {
  await sql.query(
    `INSERT INTO ledger (billing_account_id, at, kind, amount_ticks, reference, organization_id, model, day,
       sequences, input_tokens, cached_input_tokens, output_tokens)
     VALUES ($1, $2, 'usage', $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      entry.accountId,
      now,
      -entry.ticks,
      entry.reference,
      entry.organizationId,
      entry.model,
      entry.day,
      entry.sequences,
      entry.inputTokens,
      entry.cachedInputTokens,
      entry.outputTokens,
    ],
  )
}

async function moveAccount(sql: Sql, { accountId, month, ticks }: AccountSum): Promise<void> {
  await sql.query("UPDATE billing_accounts SET balance_ticks = balance_ticks - $2 WHERE id = $1", [
    accountId,
    ticks,
  ])
  await sql.query(
    `INSERT INTO month_spend AS m (billing_account_id, month, spent_ticks) VALUES ($1, $2, $3)
     ON CONFLICT (billing_account_id, month) DO UPDATE SET spent_ticks = m.spent_ticks + excluded.spent_ticks`,
    [accountId, month, ticks],
  )
}

async function shrinkHold(
  sql: Sql,
  gatewayId: string,
  { accountId, month, ticks }: AccountSum,
): Promise<void> {
  // An operator may have released the hold before the gateway came back.
  await sql.query(
    `UPDATE leases SET held_ticks = GREATEST(held_ticks - $4, 0)
     WHERE billing_account_id = $1 AND month = $2 AND gateway_id = $3`,
    [accountId, month, gatewayId, ticks],
  )
}
