/** The form of an alert rule: what makes it fire, said in a sentence, and who is notified. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import {
  type AlertKind,
  type AlertRule,
  type AlertTarget,
  alertKindSettings,
} from "../../../src/contract/alerts/rules.ts"
import type { Webhook } from "../../../src/contract/alerts/webhooks.ts"
import { api, useWrite } from "../api.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { CheckField, SelectField, TextField } from "../parts/field.tsx"
import { NumberField } from "../parts/number-field.tsx"
import { Notice } from "../parts/page.tsx"
import { modelsQuery, useOrganization, useSession } from "../session.ts"
import { setQuery } from "../sets/set-query.ts"
import { alertOptionsQuery, alertsKey, useTargets } from "./alert-queries.ts"
import {
  type RuleDraft,
  channelsOf,
  draftOf,
  isComplete,
  newDraft,
  thresholdField,
  thresholdOf,
  unitNames,
  windowOptions,
  withKind,
} from "./rule-draft.ts"
import { kindNames, ruleSentence, webhookName } from "./rule-words.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function RuleDialog({
  rule,
  setId = null,
  webhooks,
  onClose,
}: {
  rule: AlertRule | null
  /** A new rule begins with the drift of this question set. */
  setId?: string | null
  webhooks: readonly Webhook[]
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { data: options } = useQuery(alertOptionsQuery(org_id))
  const me = useSession()?.user.email ?? null
  const [draft, setDraft] = useState<RuleDraft>(() => {
    if (rule) return draftOf(rule)
    const email = options?.email.enabled ? me : null
    if (setId === null) return newDraft("error_rate", email)
    return { ...newDraft("drift", email), target: { question_set_id: setId } }
  })
  const { names } = useTargets()
  const managed = rule?.managed_by === "spend_controls"
  const change = (next: Partial<RuleDraft>): void => setDraft({ ...draft, ...next })
  const threshold = thresholdOf(draft)
  const write = useRuleWrite(rule, draft, onClose)
  const sentence = ruleSentence(
    { kind: draft.kind, threshold, window_minutes: draft.windowMinutes, target: draft.target },
    names,
  )
  return (
    <FormDialog
      title={rule ? t("Edit {name}", { name: rule.name }) : t("Create an alert rule")}
      submit={rule ? t("Save") : t("Create rule")}
      write={write}
      onClose={onClose}
      ready={isComplete(draft)}
    >
      {managed ? (
        <Notice tone="info">
          <T
            text="When it fires follows the spend controls in <a>Billing</a>. Here you choose who is notified."
            a={(children) => (
              <Link to="/o/$orgId/billing" params={{ orgId: org_id }} search={{}} className="underline">
                {children}
              </Link>
            )}
          />
        </Notice>
      ) : (
        <>
          {rule ? null : (
            <SelectField
              label={t("What to watch")}
              value={draft.kind}
              options={(options?.kinds ?? [{ kind: draft.kind }]).map(({ kind }) => ({
                value: kind,
                label: kindNames[kind],
              }))}
              onChange={(event) => setDraft(withKind(draft, event.target.value as AlertKind))}
            />
          )}
          <TargetFields draft={draft} onChange={(target) => change({ target })} />
          <Terms draft={draft} onChange={change} />
          {isComplete(draft) ? <Notice tone="plain">{sentence}</Notice> : null}
          <TextField
            label={t("Name")}
            maxLength={200}
            placeholder={kindNames[draft.kind]}
            value={draft.name}
            onChange={(event) => change({ name: event.target.value })}
          />
        </>
      )}
      <Recipients draft={draft} webhooks={webhooks} onChange={change} />
    </FormDialog>
  )
}

function useRuleWrite(rule: AlertRule | null, draft: RuleDraft, onDone: () => void) {
  const { id: org_id } = useOrganization()
  return useWrite(
    async () => {
      const channels = channelsOf(draft)
      if (rule?.managed_by)
        return await api.updateAlertRule({ params: { org_id, rule_id: rule.id }, body: { channels } })
      const threshold = thresholdOf(draft)
      const terms = {
        name: draft.name.trim() || kindNames[draft.kind],
        target: draft.target,
        channels,
        ...(threshold === null ? {} : { threshold }),
        ...(draft.windowMinutes === null ? {} : { window_minutes: draft.windowMinutes }),
      }
      return rule
        ? await api.updateAlertRule({ params: { org_id, rule_id: rule.id }, body: terms })
        : await api.createAlertRule({ params: { org_id }, body: { kind: draft.kind, ...terms } })
    },
    [alertsKey(org_id)],
    onDone,
  )
}

function Terms({
  draft,
  onChange,
}: {
  draft: RuleDraft
  onChange: (change: Partial<RuleDraft>) => void
}): ReactNode {
  const { threshold, windowMinutes } = alertKindSettings[draft.kind]
  const field = thresholdField(draft.kind)
  if (!threshold || !field) return null
  return (
    <div className="grid grid-cols-1 items-start gap-3 sm:grid-cols-2">
      <NumberField
        {...field}
        label={unitNames[threshold.unit]}
        value={draft.threshold}
        onText={(text) => onChange({ threshold: text })}
      />
      {windowMinutes ? (
        <SelectField
          label={t("Within")}
          value={String(draft.windowMinutes)}
          options={windowOptions(draft)}
          onChange={(event) => onChange({ windowMinutes: Number(event.target.value) })}
        />
      ) : null}
    </div>
  )
}

function TargetFields({
  draft: { kind, target },
  onChange,
}: {
  draft: RuleDraft
  onChange: (target: AlertTarget) => void
}): ReactNode {
  const { required, optional } = alertKindSettings[kind]
  const has = (field: keyof AlertTarget): boolean => required.includes(field) || optional.includes(field)
  const put = (field: keyof AlertTarget, value: string): void => {
    const { [field]: _, ...rest } = target
    onChange(value === "" ? rest : { ...rest, [field]: value })
  }
  if (required.length + optional.length === 0) return null
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
      {has("question_set_id") ? (
        <SetFields
          target={target}
          onSet={(id) => onChange(id ? { question_set_id: id } : {})}
          onQuestion={(name) => put("question", name)}
        />
      ) : null}
      {has("model") ? <ModelField value={target.model} onChange={(model) => put("model", model)} /> : null}
      {has("api_key_id") ? (
        <KeyField value={target.api_key_id} onChange={(id) => put("api_key_id", id)} />
      ) : null}
    </div>
  )
}

function SetFields({
  target: { question_set_id = "", question = "" },
  onSet,
  onQuestion,
}: {
  target: AlertTarget
  onSet: (id: string) => void
  onQuestion: (name: string) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { sets } = useTargets()
  const { data: set } = useQuery({
    ...setQuery(org_id, question_set_id),
    enabled: question_set_id !== "",
  })
  const questions = set?.questions.map(({ name }) => name) ?? (question ? [question] : [])
  return (
    <>
      <SelectField
        label={t("Question set")}
        required
        value={question_set_id}
        options={[
          {
            value: "",
            label: sets.length === 0 ? t("No question sets yet") : t("Choose a set"),
            disabled: true,
          },
          ...sets.map(({ id, name }) => ({ value: id, label: name })),
        ]}
        onChange={(event) => onSet(event.target.value)}
      />
      <SelectField
        label={t("Question")}
        value={question}
        options={[
          { value: "", label: t("Any of them") },
          ...questions.map((name) => ({ value: name, label: name })),
        ]}
        onChange={(event) => onQuestion(event.target.value)}
      />
    </>
  )
}

function ModelField({
  value = "",
  onChange,
}: {
  value: string | undefined
  onChange: (model: string) => void
}): ReactNode {
  const { id } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(id))
  const skus = new Set([...models.map(({ model_sku }) => model_sku), ...(value ? [value] : [])])
  return (
    <SelectField
      label={t("Model")}
      value={value}
      options={[
        { value: "", label: t("All models") },
        ...[...skus].map((sku) => ({ value: sku, label: sku })),
      ]}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function KeyField({
  value = "",
  onChange,
}: {
  value: string | undefined
  onChange: (id: string) => void
}): ReactNode {
  const { keys } = useTargets()
  const missing = value && !keys.some(({ id }) => id === value) ? [{ value, label: value }] : []
  return (
    <SelectField
      label={t("API key")}
      value={value}
      options={[
        { value: "", label: t("All keys") },
        ...keys.map(({ id, name }) => ({ value: id, label: name })),
        ...missing,
      ]}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function Recipients({
  draft,
  webhooks,
  onChange,
}: {
  draft: RuleDraft
  webhooks: readonly Webhook[]
  onChange: (change: Partial<RuleDraft>) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { data: options } = useQuery(alertOptionsQuery(org_id))
  const { webhookIds, emails } = draft
  return (
    <fieldset className="flex flex-col gap-3">
      <legend className="label mb-1.5">{t("Notify")}</legend>
      {webhooks.map(({ id, url, description }) => (
        <CheckField
          key={id}
          label={webhookName({ url, description })}
          hint={url}
          checked={webhookIds.includes(id)}
          onChange={(event) =>
            onChange({
              webhookIds: event.target.checked ? [...webhookIds, id] : webhookIds.filter((one) => one !== id),
            })
          }
        />
      ))}
      {options?.email.enabled || emails !== "" ? (
        <TextField
          label={t("E-mail addresses")}
          placeholder="ada@example.com, oncall@example.com"
          hint={
            options?.email.recipients === "members"
              ? t("Separated by commas. Only members of this organization can be notified.")
              : t("Separated by commas.")
          }
          value={emails}
          onChange={(event) => onChange({ emails: event.target.value })}
        />
      ) : null}
      {options && !options.email.enabled ? (
        <p className="text-soft text-xs">
          {t("E-mail is off: the operator has not configured a mail server (email.smtp_host).")}
        </p>
      ) : null}
      {channelsOf(draft).length === 0 ? (
        <p className="text-soft text-xs">
          {t("Without a webhook or address the alert is only listed on this page.")}
        </p>
      ) : null}
    </fieldset>
  )
}
