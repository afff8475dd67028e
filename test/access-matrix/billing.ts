/** Who gets which answer: analytics and billing accounts. */
import { type Places, type Row, administered, open, read } from "./row.ts"

const range = "range_start=1&range_end=2"

/** Analytics also for workload tokens with `api-read`. */
const analyticsRead = { ...read, workloads: "403 200 403 403" }

export const analytics: readonly Row[] = [
  {
    endpoint: "GET /v1/organizations/{org_id}/analytics/overview",
    ...analyticsRead,
    request: ({ org }) => ({
      path: `/v1/organizations/${org}/analytics/overview?${range}&group_by=model&metric=requests`,
    }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/analytics/sequences/{seq_id}",
    ...analyticsRead,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/analytics/sequences/seq_1` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/sequences",
    ...analyticsRead,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/sequences` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/sequences/{seq_id}",
    ...analyticsRead,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/sequences/seq_1` }),
  },
]

const account = "/v1/billing_accounts/{billing_account_id}"

const accountAt = ({ account: id }: Places, rest = ""): string => `/v1/billing_accounts/${id}${rest}`

/** Which of the billing endpoints take workload tokens is the contract's table; those beyond it take none. */
const accountReadByWorkloads = { ...read, workloads: "403 200 403 403" }

const accountChangeByWorkloads = { ...administered("200"), workloads: "403 403 403 200" }

const spendControls = {
  prepaid_low_balance_warning_threshold_cents: null,
  usage_spend_cutoff_threshold_cents: null,
  usage_spend_warning_threshold_cents: null,
}

export const billing: readonly Row[] = [
  { endpoint: `GET ${account}`, ...read, request: (places) => ({ path: accountAt(places) }) },
  {
    endpoint: `POST ${account}/refill`,
    ...administered("200"),
    request: (places) => ({ path: accountAt(places, "/refill"), body: { amount_in_cents: 1000 } }),
  },
  {
    endpoint: `GET ${account}/refills/{refill_id}`,
    ...accountReadByWorkloads,
    request: (places) => ({ path: accountAt(places, "/refills/cp_1") }),
  },
  {
    endpoint: `GET ${account}/spend_controls`,
    ...accountReadByWorkloads,
    request: (places) => ({ path: accountAt(places, "/spend_controls") }),
  },
  {
    endpoint: `PUT ${account}/spend_controls`,
    ...accountChangeByWorkloads,
    request: (places) => ({ path: accountAt(places, "/spend_controls"), body: spendControls }),
  },
  {
    endpoint: `GET ${account}/usage_spend`,
    ...accountReadByWorkloads,
    request: (places) => ({ path: accountAt(places, "/usage_spend") }),
  },
  {
    endpoint: `GET ${account}/refills`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/refills") }),
  },
  {
    endpoint: `GET ${account}/credit_movements`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/credit_movements") }),
  },
  ...["pdf", "html"].map((form) => ({
    endpoint: `GET ${account}/refills/{refill_id}/receipt.${form}`,
    ...read,
    request: (places: Places) => ({ path: accountAt(places, `/refills/cp_1/receipt.${form}`) }),
  })),
  {
    endpoint: `GET ${account}/buyer`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/buyer") }),
  },
  {
    endpoint: `PUT ${account}/buyer`,
    ...administered("200"),
    request: (places) => ({
      path: accountAt(places, "/buyer"),
      body: { name: "Ada Ltd", address_lines: ["1 Mill Lane"], tax_number: null },
    }),
  },
  {
    endpoint: `GET ${account}/auto_refill`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/auto_refill") }),
  },
  {
    endpoint: `PUT ${account}/auto_refill`,
    ...administered("200"),
    request: (places) => ({
      path: accountAt(places, "/auto_refill"),
      body: { enabled: false, threshold_cents: null, recharge_to_cents: null },
    }),
  },
  {
    endpoint: `POST ${account}/payment_method`,
    ...administered("200"),
    request: (places) => ({ path: accountAt(places, "/payment_method") }),
  },
  {
    endpoint: `DELETE ${account}/payment_method`,
    ...administered("204"),
    request: (places) => ({ path: accountAt(places, "/payment_method") }),
  },
  {
    endpoint: `GET ${account}/invoices`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/invoices") }),
  },
  ...["", ".pdf", ".html"].map((form) => ({
    endpoint: `GET ${account}/invoices/{invoice_id}${form}`,
    ...read,
    request: (places: Places) => ({ path: accountAt(places, `/invoices/iv_1${form}`) }),
  })),
  {
    endpoint: "POST /v1/webhooks/stripe",
    ...open("200"),
    request: () => ({ path: "/v1/webhooks/stripe", body: {} }),
  },
]
