/** What an account spent this month, and whether its cutoff stops it. */
import { fromCents } from "../base/money.ts"
import { type RowOf, bigint, boolean, row } from "./rows.ts"
import type { Sql } from "./sql.ts"

const MonthSpend = row({
  spentTicks: bigint,
  /** What the cutoff leaves did not cover the cheapest request when the latest one was refused. */
  refused: boolean,
})
type MonthSpend = RowOf<typeof MonthSpend>

export async function findMonthSpend(sql: Sql, billingAccountId: string, month: string): Promise<MonthSpend> {
  const found = await MonthSpend.first(
    sql,
    "SELECT spent_ticks, refused FROM month_spend WHERE billing_account_id = $1 AND month = $2",
    [billingAccountId, month],
  )
  return found ?? { spentTicks: 0n, refused: false }
}

/** Whether the cutoff stops the account now (design, Money: Spend month). */
export function isCutOff(cutoffCents: bigint | null, { spentTicks, refused }: MonthSpend): boolean {
  return cutoffCents !== null && (refused || spentTicks >= fromCents(Number(cutoffCents)))
}

/** Notes whether the cutoff leaves less than the cheapest request costs. */
export async function noteCutoff(
  sql: Sql,
  billingAccountId: string,
  month: string,
  refused: boolean,
): Promise<void> {
  await sql.query(
    `INSERT INTO month_spend AS m (billing_account_id, month, refused) VALUES ($1, $2, $3)
     ON CONFLICT (billing_account_id, month) DO UPDATE SET refused = excluded.refused WHERE m.refused <> excluded.refused`,
    [billingAccountId, month, refused],
  )
}
