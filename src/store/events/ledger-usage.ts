/** What the ledger charged, in the shape of what the events say, so that the two can be compared. */
import type { Sql } from "../sql.ts"
import { ChargedSum } from "./upkeep.ts"

const dayMs = 86_400_000

/** Whole UTC days from `startMs` to before `endMs`. */
export function sumUsage(sql: Sql, startMs: number, endMs: number): Promise<ChargedSum[]> {
  return ChargedSum.all(
    sql,
    `SELECT organization_id, billing_account_id, day - DATE '1970-01-01' AS day, model,
       sum(sequences) AS sequences, sum(input_tokens) AS input_tokens,
       sum(cached_input_tokens) AS cached_input_tokens, sum(output_tokens) AS output_tokens,
       (-sum(amount_ticks))::text AS ticks
     FROM ledger
     WHERE kind = 'usage' AND day >= DATE '1970-01-01' + $1::int AND day < DATE '1970-01-01' + $2::int
     GROUP BY organization_id, billing_account_id, day, model`,
    [Math.floor(startMs / dayMs), Math.ceil(endMs / dayMs)],
  )
}
