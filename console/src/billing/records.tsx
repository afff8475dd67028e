/** What moved the balance, credit purchases and invoices. */
import type { ReactNode } from "react"
import type { CreditMovement, CreditPurchase, Invoice } from "../../../src/contract/billing.ts"
import { api } from "../api.ts"
import { cents, moment, month, smallDollars } from "../parts/format.ts"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, type Tone } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"

const movementWords: Record<CreditMovement["kind"], string> = {
  credit: "Credit",
  purchase: "Purchase",
  adjustment: "Adjustment",
  payment: "Payment of an invoice",
}

/** Everything but usage, which the spend shows by day. */
export function CreditMovements(): ReactNode {
  const { billing_account_id } = useOrganization()
  const query = usePages(
    ["refills", billing_account_id, "movements"],
    async (page) => await api.listCreditMovements({ params: { billing_account_id }, query: page }),
  )
  return (
    <section className="flex flex-col gap-3" aria-label="Credit movements">
      <h2 className="text-sm font-semibold">Credit movements</h2>
      <Loaded query={query} what="credit movements">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="card" title="No credit yet" />
            </div>
          ) : (
            <Table
              label="Credit movements"
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { name: "Date", cell: ({ created_at }) => moment(created_at) },
                { name: "What", cell: ({ kind, note }) => note ?? movementWords[kind] },
                {
                  name: "Amount",
                  align: "right",
                  cell: ({ amount_cents }) => <span className="number">{cents(amount_cents)}</span>,
                },
              ]}
            />
          )
        }
      </Loaded>
      <MoreButton query={query} />
    </section>
  )
}

const purchaseTones: Record<CreditPurchase["status"], Tone> = {
  processing: "info",
  succeeded: "good",
  failed: "bad",
  action_required: "warn",
  timed_out: "bad",
}

export function Purchases(): ReactNode {
  const { billing_account_id } = useOrganization()
  const query = usePages(
    ["refills", billing_account_id],
    async (page) => await api.listRefills({ params: { billing_account_id }, query: page }),
  )
  return (
    <section className="flex flex-col gap-3" aria-label="Credit purchases">
      <h2 className="text-sm font-semibold">Credit purchases</h2>
      <Loaded query={query} what="purchases">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="card" title="No purchases yet" />
            </div>
          ) : (
            <Table
              label="Credit purchases"
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { name: "Date", cell: ({ created_at }) => moment(created_at) },
                {
                  name: "Bought by",
                  cell: ({ created_by_user: user }) =>
                    user ? (user.name ?? user.email) : "Automatic refill",
                },
                {
                  name: "Status",
                  cell: ({ status, error_message }) => (
                    <>
                      <Badge tone={purchaseTones[status]}>{stateWords(status)}</Badge>
                      {error_message ? (
                        <span className="text-soft block text-xs">{error_message}</span>
                      ) : null}
                    </>
                  ),
                },
                {
                  name: "Amount",
                  align: "right",
                  cell: ({ amount_in_cents }) => (
                    <span className="number">{cents(amount_in_cents ?? 0)}</span>
                  ),
                },
                {
                  name: "Receipt",
                  align: "right",
                  cell: ({ id, status, created_at }) =>
                    status === "succeeded" ? (
                      <Files
                        address={`/v1/billing_accounts/${billing_account_id}/refills/${id}/receipt`}
                        name={`Receipt of ${moment(created_at)}`}
                      />
                    ) : null,
                },
              ]}
            />
          )
        }
      </Loaded>
      <MoreButton query={query} />
    </section>
  )
}

const invoiceTones: Record<Invoice["status"], Tone> = { paid: "good", open: "warn", payment_failed: "bad" }

export function Invoices(): ReactNode {
  const { billing_account_id } = useOrganization()
  const query = usePages(
    ["invoices", billing_account_id],
    async (page) => await api.listInvoices({ params: { billing_account_id }, query: page }),
  )
  return (
    <section className="flex flex-col gap-3" aria-label="Invoices">
      <h2 className="text-sm font-semibold">Invoices</h2>
      <Loaded query={query} what="invoices">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="file" title="No invoices yet">
                An invoice is issued at the end of each calendar month.
              </Empty>
            </div>
          ) : (
            <Table
              label="Invoices"
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                {
                  name: "Invoice",
                  cell: ({ number }) => <span className="number font-medium">Invoice {number}</span>,
                },
                { name: "Month", cell: ({ period_start }) => month(period_start) },
                {
                  name: "Status",
                  cell: ({ status }) => <Badge tone={invoiceTones[status]}>{stateWords(status)}</Badge>,
                },
                {
                  name: "Usage",
                  align: "right",
                  cell: ({ usage_cents }) => (
                    <span className="number">{smallDollars(usage_cents / 100)}</span>
                  ),
                },
                {
                  name: "Due",
                  align: "right",
                  cell: ({ amount_due_cents }) => <span className="number">{cents(amount_due_cents)}</span>,
                },
                {
                  name: "Files",
                  align: "right",
                  cell: ({ id, number }) => (
                    <Files
                      address={`/v1/billing_accounts/${billing_account_id}/invoices/${id}`}
                      name={`Invoice ${number}`}
                    />
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      <MoreButton query={query} />
    </section>
  )
}

function Files({ address, name }: { address: string; name: string }): ReactNode {
  return (
    <span className="flex justify-end gap-3">
      <a className="text-accent underline" href={`${address}.pdf`} aria-label={`${name} as PDF`}>
        PDF
      </a>
      <a className="text-accent underline" href={`${address}.html`} aria-label={`${name} as a page`}>
        Page
      </a>
    </span>
  )
}

/** "action_required" is "Action required". */
function stateWords(status: string): string {
  const words = status.replaceAll("_", " ")
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
