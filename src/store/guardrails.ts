/** Guardrails of organizations. */
import type { GuardrailSettings, Recognizer } from "../contract/guardrails/guardrails.ts"
import { resourceTable } from "./resources.ts"
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

export const guardrails = resourceTable<Guardrail, "version">({ table: "guardrails" })

/** In the order in which they are asked. */
export const listEnabledGuardrails = (sql: Sql, organizationId: string): Promise<Guardrail[]> =>
  guardrails.list(sql, organizationId, "t.enabled")
