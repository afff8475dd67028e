/** Budgets and limits of tags: what an organization may spend on requests with `key=value`, and how many may come in a minute. */
import { derivedId } from "../base/ids.ts"
import type { Budget } from "./budgets.ts"
import { queryRecords } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface TagBudget {
  /** Of the tag, whatever its budgets are: what was spent under earlier ones still counts. */
  readonly id: string
  readonly organizationId: string
  readonly tagKey: string
  readonly tagValue: string
  readonly budgets: readonly Budget[]
  /** With a burst; both null for no limit. */
  readonly rateLimitPerMinute: number | null
  readonly rateLimitBurst: number | null
  readonly tokensPerMinute: bigint | null
  readonly updatedAt: Date
}

type Tag = Pick<TagBudget, "organizationId" | "tagKey" | "tagValue">

const prefix = "tbg"

export const isTagBudgetId = (id: string): boolean => id.startsWith(`${prefix}_`)

export const tagBudgetId = ({ organizationId, tagKey, tagValue }: Tag): string =>
  derivedId(prefix, 0, `${organizationId}\n${tagKey}\n${tagValue}`)

export function listTagBudgets(sql: Sql, organizationId: string): Promise<TagBudget[]> {
  return queryRecords<TagBudget>(
    sql,
    "SELECT * FROM tag_budgets WHERE organization_id = $1 ORDER BY tag_key, tag_value",
    [organizationId],
  )
}

/** Replaces the budgets and limits of the tag. */
export async function putTagBudget(sql: Sql, given: Omit<TagBudget, "id">): Promise<void> {
  await sql.query(
    `INSERT INTO tag_budgets (id, organization_id, tag_key, tag_value, budgets, rate_limit_per_minute, rate_limit_burst,
       tokens_per_minute, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (id) DO UPDATE SET budgets = excluded.budgets, updated_at = excluded.updated_at,
       rate_limit_per_minute = excluded.rate_limit_per_minute, rate_limit_burst = excluded.rate_limit_burst,
       tokens_per_minute = excluded.tokens_per_minute`,
    [
      tagBudgetId(given),
      given.organizationId,
      given.tagKey,
      given.tagValue,
      JSON.stringify(given.budgets),
      given.rateLimitPerMinute,
      given.rateLimitBurst,
      given.tokensPerMinute,
      given.updatedAt,
    ],
  )
}

export async function deleteTagBudget(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM tag_budgets WHERE id = $1", [id])
}
