/** What moved the balance, credit purchases and invoices. */
import type { ReactNode } from "react"
import type { CreditMovement, CreditPurchase, Invoice } from "../../../src/contract/billing.ts"
import { api } from "../api.ts"
import { cents, moment, month, smallDollars } from "../parts/format.ts"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, type Tone } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

const movementWords: Record<CreditMovement["kind"], string> = {
  credit: t("Credit"),
  purchase: t("Purchase"),
  adjustment: t("Adjustment"),
  payment: t("Payment of an invoice"),
}

/** Everything but usage, which the spend shows by day. */
export function CreditMovements(): ReactNode {
  const { billing_account_id } = useOrganization()
  const query = usePages(
    ["refills", billing_account_id, "movements"],
    async (page) => await api.listCreditMovements({ params: { billing_account_id }, query: page }),
  )
  return (
    <section className="flex flex-col gap-3" aria-label={t("Credit movements")}>
      <h2 className="text-sm font-semibold">{t("Credit movements")}</h2>
      <Loaded query={query} label={t("Loading credit movements")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="card" title={t("No credit yet")} />
            </div>
          ) : (
            <Table
              label={t("Credit movements")}
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { name: t("Date"), cell: ({ created_at }) => moment(created_at) },
                { name: t("What"), cell: ({ kind, note }) => note ?? movementWords[kind] },
                {
                  name: t("Amount"),
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
    <section className="flex flex-col gap-3" aria-label={t("Credit purchases")}>
      <h2 className="text-sm font-semibold">{t("Credit purchases")}</h2>
      <Loaded query={query} label={t("Loading purchases")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="card" title={t("No purchases yet")} />
            </div>
          ) : (
            <Table
              label={t("Credit purchases")}
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { name: t("Date"), cell: ({ created_at }) => moment(created_at) },
                {
                  name: t("Bought by"),
                  cell: ({ created_by_user: user }) =>
                    user ? (user.name ?? user.email) : t("Automatic refill"),
                },
                {
                  name: t("Status"),
                  cell: ({ status, error_message }) => (
                    <>
                      <Badge tone={purchaseTones[status]}>{stateNames[status]}</Badge>
                      {error_message ? (
                        <span className="text-soft block text-xs">{error_message}</span>
                      ) : null}
                    </>
                  ),
                },
                {
                  name: t("Amount"),
                  align: "right",
                  cell: ({ amount_in_cents }) => (
                    <span className="number">{cents(amount_in_cents ?? 0)}</span>
                  ),
                },
                {
                  name: t("Receipt"),
                  align: "right",
                  cell: ({ id, status, created_at }) =>
                    status === "succeeded" ? (
                      <Files
                        address={`/v1/billing_accounts/${billing_account_id}/refills/${id}/receipt`}
                        name={t("Receipt of {createdAt}", { createdAt: moment(created_at) })}
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
    <section className="flex flex-col gap-3" aria-label={t("Invoices")}>
      <h2 className="text-sm font-semibold">{t("Invoices")}</h2>
      <Loaded query={query} label={t("Loading invoices")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="file" title={t("No invoices yet")}>
                {t("An invoice is issued at the end of each calendar month.")}
              </Empty>
            </div>
          ) : (
            <Table
              label={t("Invoices")}
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                {
                  name: t("Invoice"),
                  cell: ({ number }) => (
                    <span className="number font-medium">{t("Invoice {number}", { number })}</span>
                  ),
                },
                { name: t("Month"), cell: ({ period_start }) => month(period_start) },
                {
                  name: t("Status"),
                  cell: ({ status }) => <Badge tone={invoiceTones[status]}>{stateNames[status]}</Badge>,
                },
                {
                  name: t("Usage"),
                  align: "right",
                  cell: ({ usage_cents }) => (
                    <span className="number">{smallDollars(usage_cents / 100)}</span>
                  ),
                },
                {
                  name: t("Due"),
                  align: "right",
                  cell: ({ amount_due_cents }) => <span className="number">{cents(amount_due_cents)}</span>,
                },
                {
                  name: t("Files"),
                  align: "right",
                  cell: ({ id, number }) => (
                    <Files
                      address={`/v1/billing_accounts/${billing_account_id}/invoices/${id}`}
                      name={t("Invoice {number}", { number })}
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
      <a className="text-accent underline" href={`${address}.pdf`} aria-label={t("{name} as PDF", { name })}>
        {t("PDF")}
      </a>
      <a
        className="text-accent underline"
        href={`${address}.html`}
        aria-label={t("{name} as a page", { name })}
      >
        {t("Page")}
      </a>
    </span>
  )
}

const stateNames: Record<CreditPurchase["status"] | Invoice["status"], string> = {
  processing: t("Processing"),
  succeeded: t("Succeeded"),
  failed: t("Failed"),
  action_required: t("Action required"),
  timed_out: t("Timed out"),
  open: t("Open"),
  paid: t("Paid"),
  payment_failed: t("Payment failed"),
}
