/** Billing: the balance, the spend, refills and limits. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useMemo, useState } from "react"
import { isOwner, mayPay } from "../../../src/contract/access.ts"
import { type BillingAccount, type UsageSpend, usageSpendRanges } from "../../../src/contract/billing.ts"
import { api, useWrite } from "../api.ts"
import { StackedBars } from "../charts/bars.tsx"
import { useSeriesColors } from "../analytics/series-colors.ts"
import { ViewLink } from "../analytics/view-link.tsx"
import { type View, writeView } from "../analytics/view.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Segments } from "../parts/field.tsx"
import { Figure } from "../parts/figure.tsx"
import { ago, cents, day, smallDollars } from "../parts/format.ts"
import { Badge, Empty, Loaded, Notice, Page, Panel, type Tone } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { useOpenRequest } from "../shell/open-request.ts"
import { billingQuery } from "./account.ts"
import { BuyerPanel } from "./buyer-panel.tsx"
import { AutoRefillForm, SpendControlsForm } from "./limits.tsx"
import { CreditMovements, Invoices, Purchases } from "./records.tsx"
import { RefillDialog } from "./refill.tsx"
import { TagBudgetsPanel } from "./tag-budgets.tsx"
import { t, tn } from "../i18n/translate.ts"

const states: Record<
  BillingAccount["prepaid_entitlement_state"],
  { readonly tone: Tone; readonly words: string }
> = {
  enabled: { tone: "good", words: t("Active") },
  disabled: { tone: "plain", words: t("Invoiced monthly") },
  payment_required: { tone: "bad", words: t("Out of credit") },
  payment_failed: { tone: "bad", words: t("Payment failed") },
  action_required: { tone: "warn", words: t("Action required") },
  provisioning_failed: { tone: "bad", words: t("Setup failed") },
}

export function BillingPage(): ReactNode {
  const { billing_account_id } = useOrganization()
  const query = useQuery(billingQuery(billing_account_id))
  return (
    <Page
      title={t("Billing")}
      about={t("Months are calendar months in UTC. Organizations that share this account share its balance.")}
    >
      <Loaded query={query} label={t("Loading the billing account")}>
        {(account) => <Account account={account} />}
      </Loaded>
    </Page>
  )
}

function Account({ account }: { account: BillingAccount }): ReactNode {
  const { role } = useOrganization()
  const pays = mayPay(role)
  const cutoff = account.spend_controls?.usage_spend_cutoff
  return (
    <>
      {cutoff?.local_state === "blocked" ? (
        <Notice tone="bad">
          {t(
            "The spend limit of {thresholdCents} a month is reached: requests are refused until next month, or until the limit is raised or removed.",
            { thresholdCents: cents(cutoff.threshold_cents) },
          )}
        </Notice>
      ) : null}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,2fr)]">
        <Balance account={account} owner={pays} />
        <Spend balanceCents={account.billing_mode === "prepaid" ? account.credit_balance_cents : null} />
      </div>
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <div className="flex flex-col gap-4">
          {account.billing_mode === "prepaid" && account.auto_refill ? (
            <AutoRefillForm
              key={String(account.has_default_payment_method)}
              settings={account.auto_refill}
              canPay={account.has_default_payment_method}
              owner={pays}
            />
          ) : null}
          {account.spend_controls ? (
            <SpendControlsForm
              controls={account.spend_controls}
              prepaid={account.billing_mode === "prepaid"}
              owner={pays}
            />
          ) : null}
        </div>
        <BuyerPanel owner={pays} />
      </div>
      <TagBudgetsPanel owner={isOwner(role)} />
      <CreditMovements />
      <Purchases />
      <Invoices />
    </>
  )
}

function Balance({ account, owner }: { account: BillingAccount; owner: boolean }): ReactNode {
  const [refilling, setRefilling] = useState(false)
  const canPay = account.has_default_payment_method
  useOpenRequest(() => owner && canPay && setRefilling(true))
  const refreshes = [["billing", account.id]]
  const params = { billing_account_id: account.id }
  const refresh = useWrite(
    async () => await api.getBillingAccount({ params, query: { include: "all", force_refresh: "true" } }),
    refreshes,
  )
  const addMethod = useWrite(
    async () => await api.createPaymentMethod({ params }),
    refreshes,
    ({ setup_url }) => setup_url && location.assign(setup_url),
  )
  const [removing, setRemoving] = useState(false)
  const error: unknown = refresh.error ?? addMethod.error
  const state = states[account.prepaid_entitlement_state]
  return (
    <Panel
      title={account.billing_mode === "prepaid" ? t("Balance") : t("Account")}
      actions={<Badge tone={state.tone}>{state.words}</Badge>}
    >
      <div className="flex flex-col gap-4">
        {account.billing_mode === "prepaid" ? (
          <p className="number text-3xl font-semibold tracking-tight" aria-label={t("Credit balance")}>
            {cents(account.credit_balance_cents)}
          </p>
        ) : null}
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-sm">
          <dt className="text-soft">{t("Payment method")}</dt>
          <dd>{account.payment_method_description ?? t("None")}</dd>
          <dt className="text-soft">{t("Billing email")}</dt>
          <dd className="wrap-anywhere">{account.billing_email}</dd>
          <dt className="text-soft">{t("Balance checked")}</dt>
          <dd>{account.balance_checked_at ? ago(account.balance_checked_at) : t("Not yet")}</dd>
        </dl>
        {isTestCard(account) ? (
          <p className="text-soft text-xs">
            {t("The local payment provider’s card is a test card: no money moves.")}
          </p>
        ) : null}
        {account.payment_method_required ? (
          <Notice tone="warn">{t("Add a payment method to continue.")}</Notice>
        ) : null}
        <ErrorNotice error={error} />
        {owner ? (
          <div className="flex flex-wrap gap-2">
            {account.billing_mode === "prepaid" && canPay ? (
              <Button kind="loud" icon="plus" className="basis-full" onClick={() => setRefilling(true)}>
                {t("Add credit")}
              </Button>
            ) : null}
            {canPay ? (
              <Button small className="flex-1" onClick={() => setRemoving(true)}>
                {t("Remove payment method")}
              </Button>
            ) : (
              <Button
                kind="loud"
                icon="card"
                className="basis-full"
                busy={addMethod.isPending}
                onClick={() => addMethod.mutate(undefined)}
              >
                {t("Add payment method")}
              </Button>
            )}
            <Button
              small
              icon="turn"
              className="flex-1"
              busy={refresh.isPending}
              onClick={() => refresh.mutate(undefined)}
            >
              {t("Refresh")}
            </Button>
          </div>
        ) : null}
      </div>
      {refilling ? <RefillDialog onClose={() => setRefilling(false)} /> : null}
      {removing ? (
        <ConfirmDialog
          title={t("Remove the payment method?")}
          submit={t("Remove payment method")}
          act={async () => await api.deletePaymentMethod({ params })}
          refreshes={refreshes}
          onClose={() => setRemoving(false)}
        >
          {t(
            "{paymentMethodDescription}: no credit can be bought until another is added. Automatic refill is turned off with it, and stays off.",
            { paymentMethodDescription: account.payment_method_description ?? "" },
          )}
        </ConfirmDialog>
      ) : null}
    </Panel>
  )
}

/** As the local provider describes its only card; an account does not name its provider. */
const isTestCard = ({ payment_method_description }: BillingAccount): boolean =>
  payment_method_description?.startsWith("Test card ") ?? false

type Range = (typeof usageSpendRanges)[number]
const rangeNames: Record<Range, string> = { "30d": t("30 days"), "90d": t("90 days"), ytd: t("This year") }
const burnDays = 7

function Spend({ balanceCents }: { balanceCents: number | null }): ReactNode {
  const { billing_account_id } = useOrganization()
  const [range, setRange] = useState<Range>("30d")
  const query = useQuery({
    queryKey: ["spend", billing_account_id, range],
    queryFn: async () => await api.getUsageSpend({ params: { billing_account_id }, query: { range } }),
    placeholderData: (before) => before,
  })
  return (
    <Panel
      title={t("Spend")}
      actions={
        <Segments
          label={t("Range")}
          value={range}
          options={usageSpendRanges.map((value) => ({ value, label: rangeNames[value] }))}
          onChange={setRange}
        />
      }
    >
      <Loaded query={query} label={t("Loading the spend")}>
        {(spend) => <SpendChart spend={spend} balanceCents={balanceCents} />}
      </Loaded>
    </Panel>
  )
}

function SpendChart({
  spend,
  balanceCents,
}: {
  spend: UsageSpend
  /** Null for an account that pays afterwards. */
  balanceCents: number | null
}): ReactNode {
  const { id: orgId } = useOrganization()
  const models = useMemo(() => spend.models.map(({ model }) => model), [spend])
  const colors = useSeriesColors("model", models)
  const total = spend.models.reduce((sum, { total_cents }) => sum + total_cents, 0)
  const recent = spend.buckets.slice(-burnDays)
  const burn = recent.reduce((sum, { total_cents }) => sum + total_cents, 0) / Math.max(1, recent.length)
  return (
    <div className="flex flex-col gap-4">
      <dl className="number flex flex-wrap gap-x-8 gap-y-2">
        <Figure name={t("Total in this range")} value={smallDollars(total / 100)} />
        <Figure name={t("Per day, last {burnDays} days", { burnDays })} value={smallDollars(burn / 100)} />
        {balanceCents !== null && burn > 0 ? (
          <Figure name={t("Credit lasts")} value={lasting(balanceCents / burn)} />
        ) : null}
      </dl>
      {models.length === 0 ? (
        <Empty icon="chart" title={t("No spend in this range")}>
          {t("Each request is charged to the balance at the price of its model.")}
        </Empty>
      ) : (
        <StackedBars
          title={t("Spend by day")}
          names={models}
          colors={colors}
          format={(value) => smallDollars(value / 100)}
          bars={spend.buckets.map(({ date, model_totals_cents }) => ({
            label: day(date),
            values: models.map((model) => model_totals_cents[model] ?? 0),
            link: { to: "/o/$orgId/analytics", params: { orgId }, search: writeView(viewOfDay(date)) },
          }))}
        />
      )}
      {models.length === 0 ? null : (
        <ul className="flex flex-wrap gap-x-5 gap-y-1 text-xs" aria-label={t("Spend by model")}>
          {spend.models.map(({ model, total_cents }) => (
            <li key={model} className="number flex items-center gap-1.5">
              <span className="size-2.5 rounded-sm" style={{ background: colors(model) }} />
              <ViewLink
                view={monthView}
                change={{ filters: [`model:${model}`] }}
                title={t("Requests of {model}", { model })}
                className="hover:underline"
              >
                {model}
              </ViewLink>{" "}
              <span className="text-soft">{smallDollars(total_cents / 100)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

const monthView: View = { range: "30d", metric: "requests", by: "model", filters: [] }
const dayMs = 86_400_000

/** The requests of one day of the bill, which is a day in UTC. */
function viewOfDay(date: string): View {
  const startMs = Date.parse(date)
  return { ...monthView, range: { startMs, endMs: startMs + dayMs } }
}

const daysShownMax = 999

function lasting(days: number): string {
  if (days < 1) return t("less than a day")
  return days > daysShownMax ? t("for years") : tn(Math.floor(days), "{count} day", "{count} days")
}
