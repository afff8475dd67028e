/** The delivery log of a webhook: every event with its attempts, what was sent, and “Send again”. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { Webhook, WebhookDeliveryItem } from "../../../src/contract/alerts/webhooks.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Segments } from "../parts/field.tsx"
import { ago, count, milliseconds, moment } from "../parts/format.ts"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { alertsKey, deliveriesKey } from "./alert-queries.ts"
import { deliveryStates } from "./raised-alerts.tsx"
import { webhookName } from "./rule-words.ts"
import { t } from "../i18n/translate.ts"

const filters = [
  { value: "all", label: t("All") },
  { value: "failed", label: t("Failed") },
  { value: "pending", label: t("Pending") },
] as const
type Filter = (typeof filters)[number]["value"]

/** An attempt ends within seconds. */
const refreshMs = 3000

export function Deliveries({ webhook, onClose }: { webhook: Webhook; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const [filter, setFilter] = useState<Filter>("all")
  const [opened, setOpened] = useState<WebhookDeliveryItem | null>(null)
  const params = { org_id, webhook_id: webhook.id }
  const deliveries = usePages(
    [...deliveriesKey(org_id, webhook.id), filter],
    async (query) =>
      await api.listWebhookDeliveries({
        params,
        query: { ...query, ...(filter === "all" ? {} : { state: filter }) },
      }),
    { refetchInterval: refreshMs },
  )
  const resend = useWrite(
    async ({ id }: WebhookDeliveryItem) =>
      await api.resendWebhookDelivery({ params: { ...params, delivery_id: id } }),
    [alertsKey(org_id)],
  )
  return (
    <Panel
      title={t("Deliveries to {webhookName}", { webhookName: webhookName(webhook) })}
      actions={
        <div className="flex items-center gap-2">
          <Segments label={t("Show")} value={filter} options={filters} onChange={setFilter} />
          <Button small kind="bare" icon="cross" aria-label={t("Close the deliveries")} onClick={onClose} />
        </div>
      }
    >
      <div className="flex flex-col gap-3">
        <ErrorNotice error={resend.error} />
        <Loaded query={deliveries} label={t("Loading deliveries")}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty icon="send" title={filter === "all" ? t("Nothing was sent yet") : t("None of these")}>
                {filter === "all" ? t("Send a test from the webhook’s menu to see how it answers.") : null}
              </Empty>
            ) : (
              <DeliveryTable rows={rows} onResend={resend.mutate} onOpen={setOpened} />
            )
          }
        </Loaded>
        <MoreButton query={deliveries} />
      </div>
      {opened ? <DeliveryDialog webhook={webhook} delivery={opened} onClose={() => setOpened(null)} /> : null}
    </Panel>
  )
}

function DeliveryTable({
  rows,
  onResend,
  onOpen,
}: {
  rows: readonly WebhookDeliveryItem[]
  onResend: (delivery: WebhookDeliveryItem) => void
  onOpen: (delivery: WebhookDeliveryItem) => void
}): ReactNode {
  const owner = useIsOwner()
  return (
    <Table
      label={t("Deliveries")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Event"),
          cell: (one) => (
            <>
              <span className="font-medium">{one.type}</span>
              <span className="text-soft block font-mono text-xs md:whitespace-nowrap">{one.event_id}</span>
            </>
          ),
        },
        { name: t("Result"), cell: (one) => <Result delivery={one} /> },
        {
          name: t("Attempts"),
          align: "right",
          cell: (one) => <span className="number">{count(one.attempts)}</span>,
        },
        {
          name: t("Took"),
          align: "right",
          cell: (one) => (
            <span className="number whitespace-nowrap">
              {one.duration_ms === null ? "" : milliseconds(one.duration_ms)}
            </span>
          ),
        },
        { name: t("When"), cell: (one) => <When delivery={one} /> },
        {
          name: t("Actions"),
          cell: (one) => (
            <span className="flex gap-2 max-md:flex-wrap max-md:justify-end">
              <Button
                small
                aria-label={t("Show {eventId}", { eventId: one.event_id })}
                onClick={() => onOpen(one)}
              >
                {t("Show")}
              </Button>
              {owner ? (
                <Button
                  small
                  icon="turn"
                  aria-label={t("Send again {eventId}", { eventId: one.event_id })}
                  onClick={() => onResend(one)}
                >
                  {t("Send again")}
                </Button>
              ) : null}
            </span>
          ),
        },
      ]}
    />
  )
}

function Result({ delivery: { state, status, error } }: { delivery: WebhookDeliveryItem }): ReactNode {
  const { tone, words } = deliveryStates[state]
  return (
    <>
      <Badge tone={tone}>{status === null ? words : `${words}, ${status}`}</Badge>
      {error ? <span className="text-soft block max-w-xs text-xs">{error}</span> : null}
    </>
  )
}

function When({ delivery }: { delivery: WebhookDeliveryItem }): ReactNode {
  const { last_attempt_at, next_attempt_at, created_at } = delivery
  const at = last_attempt_at ?? created_at
  return (
    <>
      <span className="whitespace-nowrap" title={moment(at)}>
        {ago(at)}
      </span>
      {next_attempt_at ? (
        <span className="text-soft block text-xs" title={moment(next_attempt_at)}>
          {nextAttempt(new Date(next_attempt_at).getTime() - Date.now(), next_attempt_at)}
        </span>
      ) : null}
    </>
  )
}

const minuteMs = 60_000

function nextAttempt(inMs: number, at: string): string {
  if (inMs <= 0) return t("Being sent")
  return inMs < minuteMs ? t("Next attempt within a minute") : t("Next attempt {at}", { at: ago(at) })
}

function DeliveryDialog({
  webhook,
  delivery,
  onClose,
}: {
  webhook: Webhook
  delivery: WebhookDeliveryItem
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const params = { org_id, webhook_id: webhook.id, delivery_id: delivery.id }
  const query = useQuery({
    queryKey: [...deliveriesKey(org_id, webhook.id), "one", delivery.id],
    queryFn: async () => await api.getWebhookDelivery({ params }),
  })
  return (
    <Dialog title={t("What is sent")} onClose={onClose} wide>
      <Loaded query={query} label={t("Loading the delivery")}>
        {({ body, event_id }) => (
          <div className="flex flex-col gap-3">
            <p className="text-soft text-sm">
              {t("The id {eventId} is the same in every attempt, so a receiver can tell a repetition.", {
                eventId: event_id,
              })}
            </p>
            <pre
              aria-label={t("Body")}
              tabIndex={0}
              className="bg-sunken max-h-96 overflow-auto rounded-lg p-3 font-mono text-xs whitespace-pre-wrap wrap-anywhere"
            >
              {indented(body)}
            </pre>
            <div className="flex justify-end">
              <CopyButton text={body} label={t("Copy the body")} />
            </div>
          </div>
        )}
      </Loaded>
    </Dialog>
  )
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
