/** Guardrails of organizations. */
import { guardrailActions, guardrailStages, recognizers } from "../contract/guardrails/guardrails.ts"
import { resourceColumns, resourceTable } from "./resources.ts"
import { type RowOf, bigint, boolean, integer, oneOf, table, text } from "./rows.ts"
import type { Sql } from "./sql.ts"

const Guardrail = table("guardrails", {
  ...resourceColumns,
  name: text,
  questionSet: text,
  recognizers: oneOf(...recognizers).list(),
  apiKeyId: text.nullable(),
  model: text.nullable(),
  stage: oneOf(...guardrailStages),
  action: oneOf(...guardrailActions),
  routeModel: text.nullable(),
  onAbstain: oneOf("pass", "act"),
  onError: oneOf("open", "closed"),
  release: oneOf("window", "end"),
  windowCharacters: integer,
  holdBackCharacters: integer,
  enabled: boolean,
  createdBy: text.nullable(),
  version: bigint.withDefault(),
})
export type Guardrail = RowOf<typeof Guardrail>

export const guardrails = resourceTable({ table: Guardrail, listed: Guardrail })

/** In the order in which they are asked. */
export const listEnabledGuardrails = (sql: Sql, organizationId: string): Promise<Guardrail[]> =>
  guardrails.list(sql, organizationId, "t.enabled")
