/** Automatic refill, warnings, and the monthly spend limit. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { type AutoRefill, type SpendControls, thresholdCentsMax } from "../../../src/contract/billing.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CheckField } from "../parts/field.tsx"
import { Form, type FormWrite } from "../parts/form.tsx"
import { NumberField } from "../parts/number-field.tsx"
import { Notice, Panel } from "../parts/page.tsx"
import { numberOf, numberText } from "../parts/typed-number.ts"
import { useOrganization } from "../session.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

/** In cents. */
const thresholdBounds = { min: 1, max: thresholdCentsMax }

export function AutoRefillForm({
  settings,
  canPay,
  owner,
}: {
  settings: AutoRefill
  /** Whether there is a payment method to charge. */
  canPay: boolean
  owner: boolean
}): ReactNode {
  const { billing_account_id } = useOrganization()
  const [enabled, setEnabled] = useState(settings.enabled)
  const [threshold, setThreshold] = useState(amountText(settings.threshold_cents))
  const [target, setTarget] = useState(amountText(settings.recharge_to_cents))
  const write = useWrite(
    async () =>
      await api.putAutoRefill({
        params: { billing_account_id },
        body: { enabled, threshold_cents: amount(threshold), recharge_to_cents: amount(target) },
      }),
    [["billing", billing_account_id]],
    (saved) => {
      setThreshold(amountText(saved.threshold_cents))
      setTarget(amountText(saved.recharge_to_cents))
    },
  )
  return (
    <LimitForm title={t("Automatic refill")} owner={owner} write={write}>
      <CheckField
        label={t("Buy credit automatically")}
        hint={canPay ? null : t("Add a payment method first.")}
        disabled={!owner || !canPay}
        checked={enabled}
        onChange={(event) => setEnabled(event.target.checked)}
      />
      <div className="grid grid-cols-1 items-end gap-3 sm:grid-cols-2">
        <NumberField
          kind="amount"
          bounds={thresholdBounds}
          label={t("When the balance falls to ($)")}
          disabled={!owner}
          value={threshold}
          onText={setThreshold}
        />
        <NumberField
          kind="amount"
          bounds={thresholdBounds}
          label={t("Refill to ($)")}
          disabled={!owner}
          value={target}
          onText={setTarget}
        />
      </div>
    </LimitForm>
  )
}

export function SpendControlsForm({
  controls,
  prepaid,
  owner,
}: {
  controls: SpendControls
  prepaid: boolean
  owner: boolean
}): ReactNode {
  const { billing_account_id, id } = useOrganization()
  const [low, setLow] = useState(amountText(controls.prepaid_low_balance_warning?.threshold_cents))
  const [warning, setWarning] = useState(amountText(controls.usage_spend_warning?.threshold_cents))
  const [cutoff, setCutoff] = useState(amountText(controls.usage_spend_cutoff?.threshold_cents))
  const write = useWrite(
    async () =>
      await api.putSpendControls({
        params: { billing_account_id },
        body: {
          prepaid_low_balance_warning_threshold_cents: amount(low),
          usage_spend_warning_threshold_cents: amount(warning),
          usage_spend_cutoff_threshold_cents: amount(cutoff),
        },
      }),
    [
      ["billing", billing_account_id],
      ["models", id],
    ],
    (saved) => {
      setLow(amountText(saved.prepaid_low_balance_warning?.threshold_cents))
      setWarning(amountText(saved.usage_spend_warning?.threshold_cents))
      setCutoff(amountText(saved.usage_spend_cutoff?.threshold_cents))
    },
  )
  return (
    <LimitForm title={t("Spend controls")} owner={owner} write={write}>
      <div className="grid grid-cols-1 items-end gap-3 sm:grid-cols-2">
        <NumberField
          kind="amount"
          bounds={thresholdBounds}
          label={t("Warn at a monthly spend of ($)")}
          disabled={!owner}
          value={warning}
          onText={setWarning}
        />
        <NumberField
          kind="amount"
          bounds={thresholdBounds}
          label={t("Stop at a monthly spend of ($)")}
          disabled={!owner}
          value={cutoff}
          onText={setCutoff}
        />
        {prepaid ? (
          <NumberField
            kind="amount"
            bounds={thresholdBounds}
            label={t("Warn below a balance of ($)")}
            disabled={!owner}
            value={low}
            onText={setLow}
          />
        ) : null}
      </div>
      <p className="text-soft text-xs">
        <T
          text="A warning is a rule under <a>Alerts</a>, where you choose who is notified by webhook or e-mail. When the monthly limit is reached, requests are refused until the next month. Leave a field empty to turn it off."
          a={(children) => (
            <Link to="/o/$orgId/alerts" params={{ orgId: id }} search={{}} className="text-accent underline">
              {children}
            </Link>
          )}
        />
      </p>
    </LimitForm>
  )
}

export function LimitForm({
  title,
  owner,
  write,
  children,
}: {
  title: string
  owner: boolean
  write: FormWrite & { readonly isSuccess: boolean }
  children: ReactNode
}): ReactNode {
  const saved = write.isSuccess ? <Notice tone="good">{t("Saved.")}</Notice> : null
  const save = (
    <Button type="submit" className="self-start" busy={write.isPending}>
      {t("Save")}
    </Button>
  )
  return (
    <Panel title={title}>
      <Form
        label={title}
        write={write}
        footer={
          owner ? (
            save
          ) : (
            <Notice tone="info">
              {t("Only owners, and members with the role Billing, can change these settings.")}
            </Notice>
          )
        }
      >
        {children}
        {saved}
      </Form>
    </Panel>
  )
}

const amountText = (cents: number | null | undefined): string => numberText(cents, "amount")
const amount = (text: string): number | null => numberOf(text, "amount", thresholdBounds)
