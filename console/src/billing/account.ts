/** The billing account of an organization, as the Billing page and the banner of every page read it. */
import { queryOptions } from "@tanstack/react-query"
import { api } from "../api.ts"

const refreshMs = 60_000
/** Automatic refills are bought every few seconds. */
const refillMs = 3_000

export const billingQuery = (billing_account_id: string) =>
  queryOptions({
    queryKey: ["billing", billing_account_id],
    refetchInterval: ({ state: { data } }) =>
      data?.prepaid_entitlement_state === "payment_required" && data.auto_refill?.enabled
        ? refillMs
        : refreshMs,
    queryFn: async () =>
      await api.getBillingAccount({ params: { billing_account_id }, query: { include: "all" } }),
  })
