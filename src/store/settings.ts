/** What the installation keeps about itself: its id, its secrets. */
import { text } from "./rows.ts"
import type { Sql } from "./sql.ts"

export function findSetting(sql: Sql, key: string): Promise<string | null> {
  return text.first(sql, "SELECT value FROM settings WHERE key = $1", [key])
}

/** Returns what is kept; the first caller's `value` when nothing was, whichever of several gateways that is. */
export async function ensureSetting(sql: Sql, key: string, value: string, updatedAt: Date): Promise<string> {
  await sql.query(
    "INSERT INTO settings (key, value, updated_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    [key, value, updatedAt],
  )
  return (await findSetting(sql, key)) ?? value
}
