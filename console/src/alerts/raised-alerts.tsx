/** The alerts that rules raised: when each began and ended, and whether the people were notified. */
import type { ReactNode } from "react"
import type { Alert } from "../../../src/contract/alerts/rules.ts"
import type { DeliveryState, Webhook } from "../../../src/contract/alerts/webhooks.ts"
import { api } from "../api.ts"
import { ago, moment } from "../parts/format.ts"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, type Tone } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import { alertsKey, refreshMs } from "./alert-queries.ts"
import { webhookName } from "./rule-words.ts"
import { t } from "../i18n/translate.ts"

export const deliveryStates: Record<DeliveryState, { readonly tone: Tone; readonly words: string }> = {
  pending: { tone: "info", words: t("Pending") },
  succeeded: { tone: "good", words: t("Delivered") },
  failed: { tone: "bad", words: t("Failed") },
  cancelled: { tone: "plain", words: t("Cancelled") },
}

export function RaisedAlerts({ webhooks }: { webhooks: readonly Webhook[] }): ReactNode {
  const { id: org_id } = useOrganization()
  const alerts = usePages(
    [...alertsKey(org_id), "raised"],
    async (query) => await api.listAlerts({ params: { org_id }, query }),
    { refetchInterval: refreshMs },
  )
  return (
    <section className="flex flex-col gap-3" aria-label={t("Raised alerts")}>
      <h2 className="text-sm font-semibold">{t("Raised alerts")}</h2>
      <Loaded query={alerts} label={t("Loading alerts")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="check" title={t("No alerts yet")}>
                {t("When a rule begins or stops firing, it is listed here for 400 days.")}
              </Empty>
            </div>
          ) : (
            <AlertTable rows={rows} webhooks={webhooks} />
          )
        }
      </Loaded>
      <MoreButton query={alerts} />
    </section>
  )
}

function AlertTable({ rows, webhooks }: { rows: readonly Alert[]; webhooks: readonly Webhook[] }): ReactNode {
  const nameOf = (id: string): string => {
    const webhook = webhooks.find((one) => one.id === id)
    return webhook ? webhookName(webhook) : id
  }
  return (
    <Table
      label={t("Raised alerts")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Alert"),
          cell: ({ rule_name, detail }) => (
            <>
              <span className="font-medium">{rule_name}</span>
              <span className="text-soft block text-xs">{detail}</span>
            </>
          ),
        },
        {
          name: t("Change"),
          cell: ({ state }) =>
            state === "firing" ? (
              <Badge tone="bad">{t("Firing")}</Badge>
            ) : (
              <Badge tone="good">{t("Resolved")}</Badge>
            ),
        },
        {
          name: t("When"),
          cell: ({ at }) => (
            <span className="whitespace-nowrap" title={moment(at)}>
              {ago(at)}
            </span>
          ),
        },
        {
          name: t("Notified"),
          cell: ({ deliveries }) =>
            deliveries.length === 0 ? (
              <span className="text-soft">{t("No one")}</span>
            ) : (
              <ul className="flex flex-col gap-1">
                {deliveries.map(({ id, channel, target, state, error }) => (
                  <li key={id} className="flex items-center gap-2 text-xs max-md:justify-end">
                    <span className="min-w-0 wrap-anywhere">
                      {channel === "webhook" ? nameOf(target) : target}
                    </span>
                    <span title={error ?? undefined}>
                      <Badge tone={deliveryStates[state].tone}>{deliveryStates[state].words}</Badge>
                    </span>
                  </li>
                ))}
              </ul>
            ),
        },
      ]}
    />
  )
}
