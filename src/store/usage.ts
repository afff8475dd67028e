/** Puts the journal of a gateway into the ledger, each sequence once, in one transaction with everything it moves. */
import { ChargedSum } from "./events/upkeep.ts"
import type { AccountSum, ChargeWords, UsageDigest } from "./journal/digest.ts"
import { type JournalPosition, journalStart } from "./journal/journal.ts"
import { lockBillingAccount } from "./billing-accounts.ts"
import { enterKeySpend } from "./budgets.ts"
import { column, row, run } from "./rows.ts"
import { isUniqueViolation, type Sql, type Transaction } from "./sql.ts"

interface UsageBatch {
  readonly gatewayId: string
  readonly from: JournalPosition
  readonly next: JournalPosition
  readonly usage: UsageDigest
  readonly now: Date
}

export interface AppliedUsage {
  /** False when the ledger is not at `from`: an earlier attempt took effect although its answer was lost. */
  readonly applied: boolean
  /** How far the ledger is now. */
  readonly position: JournalPosition
}

/** Of a journal. */
export const StoredPosition = row({ segment: column.integer, offset: column.integer })

/** How far the journal of this gateway is in the ledger. */
export async function findJournalPosition(sql: Sql, gatewayId: string): Promise<JournalPosition> {
  const found = await StoredPosition.first(sql)`SELECT segment, position AS offset FROM journal_positions
    WHERE gateway_id = ${gatewayId}`
  return found ?? journalStart
}

export async function applyUsage(sql: Transaction, batch: UsageBatch): Promise<AppliedUsage> {
  const position = await lockPosition(sql, batch)
  if (position.segment !== batch.from.segment || position.offset !== batch.from.offset)
    return { applied: false, position }
  const { sums, charges, entries, budgetSums, keySpends } = batch.usage
  const accounts = [...new Set(sums.map(({ accountId }) => accountId))].toSorted()
  // In order of their ids, so that gateways that apply at the same time do not deadlock.
  for (const id of accounts) await lockBillingAccount(sql, id)
  if (charges.sequences !== "") await charge(sql, charges, batch.now)
  if (accounts.length > 0) await enter(sql, entries, batch.now)
  await enterKeySpend(sql, keySpends)
  // Also for sequences that were charged before: the hold was for them, whichever gateway applied them.
  for (const sum of [...sums, ...budgetSums]) await shrinkHold(sql, batch.gatewayId, sum)
  await run(sql)`UPDATE journal_positions
    SET segment = ${batch.next.segment}, position = ${batch.next.offset}, updated_at = ${batch.now}
    WHERE gateway_id = ${batch.gatewayId}`
  return { applied: true, position: batch.next }
}

async function lockPosition(sql: Sql, { gatewayId, now }: UsageBatch): Promise<JournalPosition> {
  await run(sql)`INSERT INTO journal_positions (gateway_id, segment, position, updated_at)
    VALUES (${gatewayId}, 0, 0, ${now})
    ON CONFLICT (gateway_id) DO NOTHING`
  return await StoredPosition.one(sql)`SELECT segment, position AS offset FROM journal_positions
    WHERE gateway_id = ${gatewayId} FOR UPDATE`
}

/** Fails as a whole when one of them was charged before, see `isChargedBefore`. */
const charge = (sql: Sql, { sequences, accounts, ticks }: ChargeWords, now: Date) =>
  run(sql)`INSERT INTO charges (seq_id, billing_account_id, amount_ticks, charged_at)
    SELECT sequence, account, ticks::bigint, ${now}
    FROM unnest(string_to_array(${sequences}, ' '), string_to_array(${accounts}, ' '),
      string_to_array(${ticks}, ' '))
      AS c(sequence, account, ticks)`

/** Whether usage could not be applied because the ledger has some of its sequences already. */
export const isChargedBefore = (error: unknown): boolean => isUniqueViolation(error, "charges_pkey")

/** Those of the sequences, given as words, that were charged before. */
export async function findCharged(sql: Sql, sequences: string): Promise<ReadonlySet<string>> {
  return new Set(
    await column.text.all(
      sql,
    )`SELECT seq_id FROM charges WHERE seq_id = ANY (string_to_array(${sequences}, ' '))`,
  )
}

const enter = (sql: Sql, entries: string, now: Date) =>
  run(sql)`WITH used AS (
      -- A record of an earlier version does not say what it was admitted under.
      SELECT r.*, coalesce(r.admitted, (SELECT b.mode FROM billing_accounts b WHERE b.id = r.account)) AS mode
      FROM jsonb_to_recordset(${entries}::jsonb) AS r(
        account text, organization text, model text, day date, reference text, sequences bigint,
        input bigint, cached bigint, output bigint, ticks bigint, admitted text)
    ), entered AS (
      INSERT INTO ledger (billing_account_id, at, kind, amount_ticks, reference, organization_id, model, day,
        sequences, input_tokens, cached_input_tokens, output_tokens, mode)
      SELECT account, ${now}, 'usage', -ticks, reference, organization, model, day, sequences, input, cached,
        output, mode
      FROM used
    ), spent AS (
      INSERT INTO month_spend AS m (billing_account_id, month, spent_ticks)
      SELECT account, date_trunc('month', day::timestamp)::date AS month, sum(ticks) FROM used GROUP BY 1, 2
      ON CONFLICT (billing_account_id, month) DO UPDATE SET spent_ticks = m.spent_ticks + excluded.spent_ticks
    )
    UPDATE billing_accounts AS b SET balance_ticks = b.balance_ticks - u.ticks
    FROM (SELECT account, sum(ticks)::bigint AS ticks FROM used WHERE mode = 'prepaid' GROUP BY account) AS u
    WHERE b.id = u.account`

async function shrinkHold(
  sql: Sql,
  gatewayId: string,
  { accountId, month, ticks }: AccountSum,
): Promise<void> {
  // An operator may have released the hold before the gateway came back.
  await run(sql)`UPDATE leases SET held_ticks = GREATEST(held_ticks - ${ticks}, 0)
    WHERE billing_account_id = ${accountId} AND month = ${month} AND gateway_id = ${gatewayId}`
}

const dayMs = 86_400_000

/**
 * What the ledger charged in whole UTC days from `startMs` to before `endMs`, in the shape of what the events say, so that the two
 * can be compared.
 */
export const sumUsage = (sql: Sql, startMs: number, endMs: number) =>
  ChargedSum.all(sql)`SELECT organization_id, billing_account_id, day - DATE '1970-01-01' AS day,
      model,
      sum(sequences) AS sequences, sum(input_tokens) AS input_tokens,
      sum(cached_input_tokens) AS cached_input_tokens, sum(output_tokens) AS output_tokens,
      (-sum(amount_ticks))::text AS ticks
    FROM ledger
    WHERE kind = 'usage' AND day >= DATE '1970-01-01' + ${Math.floor(startMs / dayMs)}::int
      AND day < DATE '1970-01-01' + ${Math.ceil(endMs / dayMs)}::int
    GROUP BY organization_id, billing_account_id, day, model`
