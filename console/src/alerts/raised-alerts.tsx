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

export const deliveryStates: Record<DeliveryState, { readonly tone: Tone; readonly words: string }> = {
  pending: { tone: "info", words: "Pending" },
  succeeded: { tone: "good", words: "Delivered" },
  failed: { tone: "bad", words: "Failed" },
  cancelled: { tone: "plain", words: "Cancelled" },
}

export function RaisedAlerts({ webhooks }: { webhooks: readonly Webhook[] }): ReactNode {
  const { id: org_id } = useOrganization()
  const alerts = usePages(
    [...alertsKey(org_id), "raised"],
    async (query) => await api.listAlerts({ params: { org_id }, query }),
    { refetchInterval: refreshMs },
  )
  return (
    <section className="flex flex-col gap-3" aria-label="Raised alerts">
      <h2 className="text-sm font-semibold">Raised alerts</h2>
      <Loaded query={alerts} what="alerts">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="check" title="No alerts yet">
                When a rule begins or stops firing, it is listed here for 400 days.
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
      label="Raised alerts"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: "Alert",
          cell: ({ rule_name, detail }) => (
            <>
              <span className="font-medium">{rule_name}</span>
              <span className="text-soft block text-xs">{detail}</span>
            </>
          ),
        },
        {
          name: "Change",
          cell: ({ state }) =>
            state === "firing" ? <Badge tone="bad">Firing</Badge> : <Badge tone="good">Resolved</Badge>,
        },
        {
          name: "When",
          cell: ({ at }) => (
            <span className="whitespace-nowrap" title={moment(at)}>
              {ago(at)}
            </span>
          ),
        },
        {
          name: "Notified",
          cell: ({ deliveries }) =>
            deliveries.length === 0 ? (
              <span className="text-soft">No one</span>
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
