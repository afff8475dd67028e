/** What the Guardrails page calls things, and what it reads. */
import { queryOptions } from "@tanstack/react-query"
import type { GuardrailSettings } from "../../../src/contract/guardrails/guardrails.ts"
import { api } from "../api.ts"
import { t } from "../i18n/translate.ts"

export const guardrailsKey = (org_id: string): readonly unknown[] => ["guardrails", org_id]

export const readyMadeQuery = (org_id: string) =>
  queryOptions({
    queryKey: [...guardrailsKey(org_id), "ready-made"],
    staleTime: 3_600_000,
    queryFn: async () => await api.listReadyMadeSets({ params: { org_id } }),
  })

export const stageNames: Readonly<Record<GuardrailSettings["stage"], string>> = {
  input: t("Before the model reads"),
  output: t("After the model writes"),
  both: t("Before and after"),
}

export const actionNames: Readonly<Record<GuardrailSettings["action"], string>> = {
  block: t("Block"),
  flag: t("Flag in the record"),
  redact: t("Redact"),
  route: t("Route to another model"),
}

export const releaseNames: Readonly<Record<GuardrailSettings["release"], string>> = {
  window: t("Send each part once it is checked"),
  end: t("Send nothing before all of it is checked"),
}
