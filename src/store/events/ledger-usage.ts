/** What the ledger charged, in the shape of what the events say, so that the two can be compared. */
import type { Sql } from "../sql.ts"
import type { ChargedSum } from "./upkeep.ts"

const dayMs = 86_400_000

interface UsageRow {
  readonly organization_id: string
  readonly billing_account_id: string
  readonly day: number
  readonly model: string
  readonly sequences: bigint
  readonly input_tokens: bigint
  readonly cached_input_tokens: bigint
  readonly output_tokens: bigint
  readonly ticks: string
}

/** Whole UTC days from `startMs` to before `endMs`. */
export async function sumUsage(sql: Sql, startMs: number, endMs: number): Promise<ChargedSum[]> {
  const rows = await sql.query<UsageRow>(
    `SELECT organization_id, billing_account_id, day - DATE '1970-01-01' AS day, model,
       sum(sequences)::bigint AS sequences, sum(input_tokens)::bigint AS input_tokens,
       sum(cached_input_tokens)::bigint AS cached_input_tokens, sum(output_tokens)::bigint AS output_tokens,
       (-sum(amount_ticks))::text AS ticks
     FROM ledger
     WHERE kind = 'usage' AND day >= DATE '1970-01-01' + $1::int AND day < DATE '1970-01-01' + $2::int
     GROUP BY organization_id, billing_account_id, day, model`,
    [Math.floor(startMs / dayMs), Math.ceil(endMs / dayMs)],
  )
  return rows.map((row) => ({
    ...row,
    sequences: Number(row.sequences),
    input_tokens: Number(row.input_tokens),
    cached_input_tokens: Number(row.cached_input_tokens),
    output_tokens: Number(row.output_tokens),
  }))
}
