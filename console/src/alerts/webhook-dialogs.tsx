/** The forms of a webhook. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import {
  type Webhook,
  type WebhookEvent,
  type WebhookFormat,
  type WebhookWithSecret,
  webhookEvents,
  webhookFormats,
} from "../../../src/contract/alerts/webhooks.ts"
import { api, useWrite } from "../api.ts"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { CheckField, SelectField, TextField } from "../parts/field.tsx"
import { RotateDialog } from "../parts/rotate-dialog.tsx"
import { useOrganization } from "../session.ts"
import { alertOptionsQuery, alertsKey } from "./alert-queries.ts"
import { webhookName } from "./rule-words.ts"
import { t } from "../i18n/translate.ts"

const eventNames: Record<WebhookEvent, string> = {
  "alert.firing": t("A rule begins to fire"),
  "alert.resolved": t("A rule stops firing"),
}

const formatNames: Record<WebhookFormat, string> = {
  umpire: t("Signed JSON, for a program of yours"),
  slack: t("Message in Slack"),
  teams: t("Message in Microsoft Teams"),
}

const formatHints: Record<WebhookFormat, string> = {
  umpire: t("The event, signed with a secret."),
  slack: t("The URL is that of an incoming webhook of Slack. Who knows it can post there."),
  teams: t(
    "The URL is that of a Teams workflow that posts what a webhook receives. Who knows it can post there.",
  ),
}

/** What chats give out says which of them it is. */
function formatOfUrl(url: string): WebhookFormat | null {
  const host = URL.parse(url)?.hostname ?? ""
  if (host === "hooks.slack.com") return "slack"
  return /\.(?:webhook\.office\.com|logic\.azure\.com|powerplatform\.com)$/.test(host) ? "teams" : null
}

export function WebhookDialog({
  webhook,
  onClose,
  onCreated,
}: {
  webhook: Webhook | null
  onClose: () => void
  onCreated?: (webhook: WebhookWithSecret) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { data: options } = useQuery(alertOptionsQuery(org_id))
  const [url, setUrl] = useState(webhook?.url ?? "")
  const [description, setDescription] = useState(webhook?.description ?? "")
  const [events, setEvents] = useState<readonly WebhookEvent[]>(webhook?.events ?? webhookEvents)
  const [format, setFormat] = useState<WebhookFormat>(webhook?.format ?? "umpire")
  const body = { url: url.trim(), description: description.trim(), events: [...events], format }
  const write = useWrite(async () => {
    if (!webhook) return onCreated?.(await api.createWebhook({ params: { org_id }, body }))
    await api.updateWebhook({ params: { org_id, webhook_id: webhook.id }, body })
    onClose()
  }, [alertsKey(org_id)])
  return (
    <FormDialog
      title={webhook ? t("Edit {webhookName}", { webhookName: webhookName(webhook) }) : t("Add a webhook")}
      submit={webhook ? t("Save") : t("Add webhook")}
      write={write}
      onClose={onClose}
      ready={events.length > 0}
    >
      <TextField
        label={t("URL")}
        type="url"
        required
        placeholder="https://example.com/umpire"
        hint={
          options?.webhooks.allow_private
            ? t("Also http and private addresses: the operator allows them.")
            : t("https only, and no private addresses.")
        }
        value={url}
        onChange={(event) => {
          setUrl(event.target.value)
          setFormat(formatOfUrl(event.target.value.trim()) ?? format)
        }}
      />
      <SelectField
        label={t("What it gets")}
        value={format}
        options={webhookFormats.map((value) => ({ value, label: formatNames[value] }))}
        hint={formatHints[format]}
        onChange={(event) => setFormat(event.target.value as WebhookFormat)}
      />
      <TextField
        label={t("Description (optional)")}
        maxLength={200}
        placeholder={t("On-call channel")}
        value={description}
        onChange={(event) => setDescription(event.target.value)}
      />
      <fieldset className="flex flex-col gap-2">
        <legend className="label mb-1.5">{t("Call it when")}</legend>
        {webhookEvents.map((one) => (
          <CheckField
            key={one}
            label={eventNames[one]}
            hint={one}
            checked={events.includes(one)}
            onChange={(event) =>
              setEvents(
                webhookEvents.filter((known) =>
                  known === one ? event.target.checked : events.includes(known),
                ),
              )
            }
          />
        ))}
      </fieldset>
    </FormDialog>
  )
}

export function RotateWebhook({
  webhook,
  onClose,
  onDone,
}: {
  webhook: Webhook
  onClose: () => void
  onDone: (webhook: WebhookWithSecret) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const params = { org_id, webhook_id: webhook.id }
  return (
    <RotateDialog
      title={t("Rotate the secret of {webhookName}", { webhookName: webhookName(webhook) })}
      about={t(
        "Calls are signed with a new secret. While the old one signs too, a receiver that knows either of them accepts the call.",
      )}
      now={t("Signs nothing from now on")}
      on={(lasts) => t("Signs too for {lasts}", { lasts })}
      rotate={async (grace_seconds) => await api.rotateWebhook({ params, body: { grace_seconds } })}
      refreshes={[alertsKey(org_id)]}
      onClose={onClose}
      onDone={onDone}
    />
  )
}

export function DeleteWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  return (
    <ConfirmDialog
      title={t("Delete {webhookName}?", { webhookName: webhookName(webhook) })}
      submit={t("Delete webhook")}
      act={async () => await api.deleteWebhook({ params: { org_id, webhook_id: webhook.id } })}
      refreshes={[alertsKey(org_id)]}
      onClose={onClose}
    >
      {t("What waits to be sent to it is dropped, its log is deleted, and rules no longer name it.")}
    </ConfirmDialog>
  )
}
