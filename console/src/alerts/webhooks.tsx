/** Webhooks: created with a secret that is shown once, tested, rotated, paused and deleted. */
import { type ReactNode, useState } from "react"
import { type Webhook, type WebhookWithSecret, webhookEvents } from "../../../src/contract/alerts/webhooks.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ago, moment } from "../parts/format.ts"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Badge, Empty, Loaded } from "../parts/page.tsx"
import { SecretDialog } from "../parts/secret.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { alertsKey } from "./alert-queries.ts"
import { deliveryStates } from "./raised-alerts.tsx"
import { webhookName } from "./rule-words.ts"
import { DeleteWebhook, RotateWebhook, WebhookDialog } from "./webhook-dialogs.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

type Open =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "rotate" | "delete"; readonly webhook: Webhook }
  | { readonly kind: "secret"; readonly webhook: WebhookWithSecret; readonly rotated: boolean }

interface WebhooksQuery {
  readonly data: readonly Webhook[] | undefined
  readonly error: unknown
  readonly isPending: boolean
  refetch(): unknown
}

export function Webhooks({
  query,
  shownId,
  onShow,
}: {
  query: WebhooksQuery
  /** The webhook whose deliveries are listed. */
  shownId: string | null
  onShow: (webhookId: string) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [open, setOpen] = useState<Open | null>(null)
  const sendTest = useWrite(
    async ({ id }: Webhook) => await api.testWebhook({ params: { org_id, webhook_id: id } }),
    [alertsKey(org_id)],
  )
  const enable = useWrite(
    async ({ id, enabled }: Webhook) =>
      await api.updateWebhook({ params: { org_id, webhook_id: id }, body: { enabled: !enabled } }),
    [alertsKey(org_id)],
  )
  const create = owner ? (
    <Button icon="plus" small onClick={() => setOpen({ kind: "create" })}>
      {t("Add webhook")}
    </Button>
  ) : null
  return (
    <section className="flex flex-col gap-3" aria-label={t("Webhooks")}>
      <div className="flex items-center justify-between gap-3">
        <h2 className="text-sm font-semibold">{t("Webhooks")}</h2>
        {query.data?.length ? create : null}
      </div>
      <ErrorNotice error={sendTest.error ?? enable.error} />
      <Loaded query={query} label={t("Loading webhooks")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="send" title={t("No webhooks yet")} action={create}>
                {t(
                  "A webhook is an address of yours that receives alerts as signed JSON. What it does not accept is sent again for a day.",
                )}
              </Empty>
            </div>
          ) : (
            <WebhookTable
              rows={rows}
              shownId={shownId}
              owner={owner}
              onShow={onShow}
              onOpen={setOpen}
              onTest={(webhook) => {
                sendTest.mutate(webhook)
                onShow(webhook.id)
              }}
              onEnable={enable.mutate}
            />
          )
        }
      </Loaded>
      <WebhookDialogs open={open} onOpen={setOpen} />
    </section>
  )
}

function WebhookDialogs({
  open,
  onOpen,
}: {
  open: Open | null
  onOpen: (open: Open | null) => void
}): ReactNode {
  const close = (): void => onOpen(null)
  switch (open?.kind) {
    case undefined:
      return null
    case "create":
      return (
        <WebhookDialog
          webhook={null}
          onClose={close}
          onCreated={(webhook) => onOpen({ kind: "secret", webhook, rotated: false })}
        />
      )
    case "edit":
      return <WebhookDialog webhook={open.webhook} onClose={close} />
    case "rotate":
      return (
        <RotateWebhook
          webhook={open.webhook}
          onClose={close}
          onDone={(webhook) => onOpen({ kind: "secret", webhook, rotated: true })}
        />
      )
    case "delete":
      return <DeleteWebhook webhook={open.webhook} onClose={close} />
    case "secret":
      return (
        <SecretDialog
          title={open.rotated ? t("New signing secret") : t("The webhook is ready")}
          label={t("Signing secret")}
          secret={open.webhook.secret}
          kept={t("Umpire keeps it encrypted to sign with.")}
          onClose={close}
        >
          <p className="text-soft text-sm">
            <T
              text="Check the header <code>umpire-signature</code> of every call with it: v1 is the HMAC-SHA256 of the time t, a dot and the body."
              code={(children) => <code className="font-mono text-xs">{children}</code>}
            />
          </p>
        </SecretDialog>
      )
  }
}

function WebhookTable({
  rows,
  shownId,
  owner,
  onShow,
  onOpen,
  onTest,
  onEnable,
}: {
  rows: readonly Webhook[]
  shownId: string | null
  owner: boolean
  onShow: (webhookId: string) => void
  onOpen: (open: Open) => void
  onTest: (webhook: Webhook) => void
  onEnable: (webhook: Webhook) => void
}): ReactNode {
  return (
    <Table
      label={t("Webhooks")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Webhook"),
          cell: (webhook) => (
            <>
              <span className="font-medium">{webhookName(webhook)}</span>
              <span className="text-soft block max-w-xl font-mono text-xs wrap-anywhere">{webhook.url}</span>
            </>
          ),
        },
        { name: t("State"), cell: (webhook) => <WebhookState webhook={webhook} /> },
        { name: t("Last delivery"), cell: (webhook) => <LastDelivery webhook={webhook} /> },
        {
          name: t("Log"),
          cell: (webhook) => (
            <Button
              small
              aria-pressed={webhook.id === shownId}
              aria-label={t("Deliveries to {webhookName}", { webhookName: webhookName(webhook) })}
              onClick={() => onShow(webhook.id)}
            >
              {t("Deliveries")}
            </Button>
          ),
        },
        actionsColumn(owner, (webhook: Webhook) => (
          <ActionsMenu of={webhookName(webhook)}>
            <MenuItem icon="send" onSelect={() => onTest(webhook)}>
              {t("Send a test")}
            </MenuItem>
            <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", webhook })}>
              {t("Edit")}
            </MenuItem>
            <MenuItem icon="turn" onSelect={() => onOpen({ kind: "rotate", webhook })}>
              {t("Rotate secret")}
            </MenuItem>
            <MenuItem icon={webhook.enabled ? "stop" : "play"} onSelect={() => onEnable(webhook)}>
              {webhook.enabled ? t("Disable") : t("Enable")}
            </MenuItem>
            <MenuLine />
            <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", webhook })}>
              {t("Delete")}
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}

function WebhookState({ webhook }: { webhook: Webhook }): ReactNode {
  const { enabled, disabled_reason, events, previous_secret_expires_at: grace } = webhook
  const notes = [
    webhook.format === "umpire"
      ? null
      : webhook.format === "slack"
        ? t("As Slack messages")
        : t("As Teams messages"),
    disabled_reason === "gone" ? t("The receiver answered 410 Gone.") : null,
    events.length < webhookEvents.length ? t("Only {events}", { events: events.join(", ") }) : null,
    grace && new Date(grace) > new Date()
      ? t("The old secret signs too until {grace}", { grace: moment(grace) })
      : null,
  ].filter((note) => note !== null)
  return (
    <>
      {enabled ? <Badge tone="good">{t("Enabled")}</Badge> : <Badge>{t("Disabled")}</Badge>}
      {notes.map((note) => (
        <span key={note} className="text-soft block text-xs">
          {note}
        </span>
      ))}
    </>
  )
}

function LastDelivery({ webhook: { last_delivery: last } }: { webhook: Webhook }): ReactNode {
  if (!last) return <span className="text-soft">{t("None yet")}</span>
  const { tone, words } = deliveryStates[last.state]
  return (
    <>
      <Badge tone={tone}>{last.status === null ? words : `${words}, ${last.status}`}</Badge>
      <span className="text-soft block text-xs whitespace-nowrap" title={moment(last.at)}>
        {ago(last.at)}
      </span>
    </>
  )
}
