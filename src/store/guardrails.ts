/** Guardrails of organizations. */
import type { GuardrailSettings, Recognizer } from "../contract/guardrails/guardrails.ts"
import {
  type Page,
  type PageRequest,
  countOf,
  insertNew,
  pageNewest,
  queryRecord,
  queryRecords,
  updateVersioned,
} from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface Guardrail {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly questionSet: string
  readonly recognizers: readonly Recognizer[]
  readonly apiKeyId: string | null
  readonly model: string | null
  readonly stage: GuardrailSettings["stage"]
  readonly action: GuardrailSettings["action"]
  readonly routeModel: string | null
  readonly onAbstain: GuardrailSettings["on_abstain"]
  readonly onError: GuardrailSettings["on_error"]
  readonly release: GuardrailSettings["release"]
  readonly windowCharacters: number
  readonly holdBackCharacters: number
  readonly enabled: boolean
  readonly createdBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: bigint
}

export type GuardrailChanges = Omit<
  Guardrail,
  "id" | "organizationId" | "createdBy" | "createdAt" | "updatedAt" | "version"
>

export function insertGuardrail(sql: Sql, guardrail: Omit<Guardrail, "version">): Promise<Guardrail> {
  return insertNew<Guardrail>(sql, "guardrails", { ...guardrail })
}

export function findGuardrail(sql: Sql, organizationId: string, id: string): Promise<Guardrail | null> {
  const text = "SELECT * FROM guardrails WHERE organization_id = $1 AND id = $2"
  return queryRecord<Guardrail>(sql, text, [organizationId, id])
}

/** Held until the transaction ends, so that two changes follow one another. */
export function lockGuardrail(sql: Sql, organizationId: string, id: string): Promise<Guardrail | null> {
  const text = "SELECT * FROM guardrails WHERE organization_id = $1 AND id = $2 FOR UPDATE"
  return queryRecord<Guardrail>(sql, text, [organizationId, id])
}

export function pageGuardrails(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<Guardrail>> {
  return pageNewest<Guardrail>(
    sql,
    { text: "SELECT * FROM guardrails WHERE organization_id = $1", values: [organizationId] },
    page,
  )
}

/** In the order in which they are asked. */
export function listEnabledGuardrails(sql: Sql, organizationId: string): Promise<Guardrail[]> {
  const text = "SELECT * FROM guardrails WHERE organization_id = $1 AND enabled ORDER BY id"
  return queryRecords<Guardrail>(sql, text, [organizationId])
}

export function countGuardrails(sql: Sql, organizationId: string): Promise<number> {
  return countOf(sql, "guardrails", organizationId)
}

export function updateGuardrail(
  sql: Sql,
  id: string,
  changes: GuardrailChanges,
  updatedAt: Date,
): Promise<Guardrail | null> {
  return updateVersioned<Guardrail>(sql, "guardrails", id, { ...changes, updatedAt })
}

export async function deleteGuardrail(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM guardrails WHERE id = $1", [id])
}
