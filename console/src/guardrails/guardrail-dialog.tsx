/** The form of a guardrail. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import {
  type Guardrail,
  type GuardrailSettings,
  guardrailDefaults,
  guardrailLimits,
  recognizers,
} from "../../../src/contract/guardrails/guardrails.ts"
import { api, useWrite } from "../api.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { CheckField, SelectField, TextField } from "../parts/field.tsx"
import { useOrganization } from "../session.ts"
import { actionNames, guardrailsKey, readyMadeQuery, releaseNames, stageNames } from "./guardrail-words.ts"
import { t } from "../i18n/translate.ts"

const optionsOf = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([value, label]) => ({ value, label }))
const everything = { value: "", label: t("All") }
const listedMax = 200

export function GuardrailDialog({
  guardrail,
  onClose,
}: {
  guardrail: Guardrail | null
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [draft, setDraft] = useState<GuardrailSettings>(
    guardrail ?? { ...guardrailDefaults, name: "", question_set: "" },
  )
  const set = (changes: Partial<GuardrailSettings>): void => setDraft({ ...draft, ...changes })
  const choices = useChoices(org_id)
  const write = useWrite(async () => {
    const body = settingsOf(draft)
    if (guardrail) await api.updateGuardrail({ params: { org_id, guardrail_id: guardrail.id }, body })
    else {
      const made = choices.readyMade.find(({ name }) => name === body.question_set)
      // A ready-made set becomes one of the organization's own with its first guardrail.
      if (made && !choices.sets.includes(made.name)) {
        const { measured: _, recognizers: __, ...content } = made
        await api.createQuestionSet({ params: { org_id }, body: content })
      }
      await api.createGuardrail({ params: { org_id }, body })
    }
    onClose()
  }, [guardrailsKey(org_id), ["sets", org_id]])
  const measured = choices.readyMade.find(({ name }) => name === draft.question_set)?.measured
  return (
    <FormDialog
      title={guardrail ? t("Edit {name}", { name: guardrail.name }) : t("Create a guardrail")}
      submit={guardrail ? t("Save") : t("Create guardrail")}
      write={write}
      onClose={onClose}
      ready={draft.question_set !== "" && (draft.action !== "route" || draft.route_model !== null)}
    >
      <TextField
        label={t("Name")}
        required
        maxLength={guardrailLimits.nameCharactersMax}
        value={draft.name}
        onChange={(event) => set({ name: event.target.value })}
      />
      <SelectField
        label={t("Question set")}
        hint={measured ?? t("It acts where a yes/no question of the set is answered yes.")}
        value={draft.question_set}
        options={[
          { value: "", label: t("Choose one") },
          ...choices.setNames.map((name) => ({
            value: name,
            label: choices.sets.includes(name) ? name : t("{name} (ready-made)", { name }),
          })),
          ...(draft.question_set.includes("@")
            ? [{ value: draft.question_set, label: draft.question_set }]
            : []),
        ]}
        onChange={(event) => {
          const question_set = event.target.value
          const made = choices.readyMade.find(({ name }) => name === question_set)
          set({ question_set, ...(made ? { recognizers: made.recognizers } : {}) })
        }}
      />
      <CheckField
        label={t("Recognise personal data by its form")}
        hint={t(
          "E-mail addresses, telephone numbers, IBANs, card and identity numbers, IP addresses and keys, by their check digits where they have any. The model is not asked.",
        )}
        checked={draft.recognizers.length > 0}
        onChange={(event) => set({ recognizers: event.target.checked ? [...recognizers] : [] })}
      />
      <SelectField
        label={t("When")}
        value={draft.stage}
        options={optionsOf(stageNames)}
        onChange={(event) => set({ stage: event.target.value as GuardrailSettings["stage"] })}
      />
      <SelectField
        label={t("Then")}
        value={draft.action}
        options={optionsOf(actionNames)}
        onChange={(event) => {
          const action = event.target.value as GuardrailSettings["action"]
          set(action === "route" ? { action, stage: "input" } : { action, route_model: null })
        }}
      />
      {draft.action === "route" ? (
        <SelectField
          label={t("To the model")}
          value={draft.route_model ?? ""}
          options={[{ value: "", label: t("Choose one") }, ...choices.models]}
          onChange={(event) => set({ route_model: event.target.value || null })}
        />
      ) : null}
      <SelectField
        label={t("For the key")}
        value={draft.api_key_id ?? ""}
        options={[everything, ...choices.keys]}
        onChange={(event) => set({ api_key_id: event.target.value || null })}
      />
      <SelectField
        label={t("For the model")}
        value={draft.model ?? ""}
        options={[everything, ...choices.models]}
        onChange={(event) => set({ model: event.target.value || null })}
      />
      <SelectField
        label={t("Streamed answers")}
        value={draft.release}
        options={optionsOf(releaseNames)}
        onChange={(event) => set({ release: event.target.value as GuardrailSettings["release"] })}
      />
      <CheckField
        label={t("Fail the request when the check fails")}
        hint={t("Otherwise the text passes, and the record says so.")}
        checked={draft.on_error === "closed"}
        onChange={(event) => set({ on_error: event.target.checked ? "closed" : "open" })}
      />
      <CheckField
        label={t("Act where the set abstains")}
        checked={draft.on_abstain === "act"}
        onChange={(event) => set({ on_abstain: event.target.checked ? "act" : "pass" })}
      />
    </FormDialog>
  )
}

function settingsOf(draft: GuardrailSettings): GuardrailSettings {
  const { name, question_set, recognizers: found, api_key_id, model, stage, action, route_model } = draft
  const { on_abstain, on_error, release, window_characters, hold_back_characters, enabled } = draft
  return {
    name: name.trim(),
    question_set,
    recognizers: found,
    api_key_id,
    model,
    stage,
    action,
    route_model,
    on_abstain,
    on_error,
    release,
    window_characters,
    hold_back_characters,
    enabled,
  }
}

function useChoices(org_id: string) {
  const { data: sets = [] } = useQuery({
    queryKey: ["sets", org_id, "guardrails"],
    queryFn: async () =>
      (await api.listQuestionSets({ params: { org_id }, query: { limit: listedMax } })).data.map(
        ({ name }) => name,
      ),
  })
  const { data: readyMade = [] } = useQuery(readyMadeQuery(org_id))
  const { data: keys = [] } = useQuery({
    queryKey: ["key-names", org_id, "guardrails"],
    queryFn: async () =>
      (await api.listApiKeys({ params: { org_id }, query: { limit: listedMax } })).data.map(
        ({ id, name }) => ({
          value: id,
          label: name,
        }),
      ),
  })
  const { data: models = [] } = useQuery({
    queryKey: ["models", org_id, "guardrails"],
    queryFn: async () =>
      (await api.listOrganizationModels({ params: { org_id } }))
        .filter(({ model_kind, tools_supported }) => model_kind === "generation" && tools_supported)
        .map(({ model_sku }) => ({ value: model_sku, label: model_sku })),
  })
  const setNames = [...new Set([...sets, ...readyMade.map(({ name }) => name)])]
  return { sets, readyMade, keys, models, setNames }
}
