/** Who does periodic work: a row per task, taken by one gateway at a time. */
import { text } from "./rows.ts"
import type { Sql } from "./sql.ts"
import type { Lease } from "./work-queue.ts"

/** Those of the tasks that are due, and that no other gateway does. */
export function listDueTasks(sql: Sql, names: readonly string[], now: Date): Promise<string[]> {
  return text.all(
    sql,
    `SELECT name FROM unnest($1::text[]) AS task(name) LEFT JOIN periodic_tasks t USING (name)
     WHERE t.due_at IS NULL OR (t.due_at <= $2 AND (t.held_until IS NULL OR t.held_until <= $2))`,
    [names, now],
  )
}

/** Returns false when the task is not due or another gateway does it. */
export async function takeTask(sql: Sql, name: string, { now, until }: Lease): Promise<boolean> {
  const rows = await sql.query(
    `INSERT INTO periodic_tasks AS t (name, due_at, held_until) VALUES ($1, $2, $3)
     ON CONFLICT (name) DO UPDATE SET held_until = excluded.held_until
     WHERE t.due_at <= $2 AND (t.held_until IS NULL OR t.held_until <= $2) RETURNING name`,
    [name, now, until],
  )
  return rows.length > 0
}

export async function finishTask(sql: Sql, name: string, dueAt: Date): Promise<void> {
  await sql.query("UPDATE periodic_tasks SET due_at = $2, held_until = NULL WHERE name = $1", [name, dueAt])
}
