/** Says on every page that credit runs low or that requests are refused for billing reasons, and leads to Billing. */
import { useQuery } from "@tanstack/react-query"
import { Link, useRouterState } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { BillingAccount } from "../../../src/contract/billing.ts"
import { billingQuery } from "../billing/account.ts"
import { cents } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

/** Where the account names no threshold of its own. */
const lowBalanceCentsDefault = 500

export function BillingBanner(): ReactNode {
  const { id: orgId, billing_account_id } = useOrganization()
  const owner = useIsOwner()
  const { data } = useQuery(billingQuery(billing_account_id))
  const path = useRouterState({ select: (state) => state.location.pathname })
  const trouble = data ? troubleOf(data) : null
  // Billing says it itself, beside what mends it.
  if (!trouble || path.endsWith("/billing")) return null
  return (
    <div
      role="status"
      aria-label={t("Billing")}
      className={`flex flex-wrap items-center justify-center gap-x-2 gap-y-1 px-4 py-2 text-sm ${trouble.refused ? "bg-bad-wash text-bad" : "bg-warn-wash text-warn"}`}
    >
      <Icon name="warn" />
      {trouble.sentence}
      {owner ? null : ` ${t("Ask an owner to add credit.")}`}
      <Link to="/o/$orgId/billing" params={{ orgId }} className="font-medium underline">
        {t("Open Billing")}
      </Link>
    </div>
  )
}

interface Trouble {
  readonly sentence: string
  /** Requests are refused, not only soon. */
  readonly refused: boolean
}

const refused = (sentence: string): Trouble => ({ sentence, refused: true })

function troubleOf(account: BillingAccount): Trouble | null {
  const { spend_controls: controls, credit_balance_cents: balance } = account
  if (controls?.usage_spend_cutoff?.local_state === "blocked")
    return refused(t("The monthly spend limit is reached; requests are refused."))
  switch (account.prepaid_entitlement_state) {
    case "payment_required":
      return refused(t("There is no credit left; requests are refused."))
    case "payment_failed":
      return refused(t("The last payment failed; requests are refused."))
    case "action_required":
      return refused(t("A payment needs your confirmation; requests are refused."))
    case "provisioning_failed":
      return refused(t("Billing is not set up; requests are refused."))
    case "enabled":
    case "disabled":
  }
  if (account.payment_method_required) return refused(t("A payment method is needed; requests are refused."))
  const threshold = controls?.prepaid_low_balance_warning?.threshold_cents ?? lowBalanceCentsDefault
  if (account.billing_mode !== "prepaid" || balance >= threshold) return null
  return { sentence: t("Credit is low: {balance} left.", { balance: cents(balance) }), refused: false }
}
