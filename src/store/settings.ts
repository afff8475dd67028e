/** What the installation keeps about itself: its id, its secrets. */
import { column, run } from "./rows.ts"
import type { Sql } from "./sql.ts"

export const findSetting = (sql: Sql, key: string) =>
  column.text.first(sql)`SELECT value FROM settings WHERE key = ${key}`

/** Returns what is kept; the first caller's `value` when nothing was, whichever of several gateways that is. */
export async function ensureSetting(sql: Sql, key: string, value: string, updatedAt: Date): Promise<string> {
  await run(sql)`INSERT INTO settings (key, value, updated_at) VALUES (${key}, ${value}, ${updatedAt})
    ON CONFLICT DO NOTHING`
  return (await findSetting(sql, key)) ?? value
}
