/** Automatic refill, warnings, and the monthly spend limit. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { AutoRefill, SpendControls } from "../../../src/contract/billing.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CheckField, TextField } from "../parts/field.tsx"
import { Form, type FormWrite } from "../parts/form.tsx"
import { Notice, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { toCents, toDollars } from "./dollars.ts"

export function AutoRefillForm({ settings, owner }: { settings: AutoRefill; owner: boolean }): ReactNode {
  const { billing_account_id } = useOrganization()
  const [enabled, setEnabled] = useState(settings.enabled)
  const [threshold, setThreshold] = useState(toDollars(settings.threshold_cents))
  const [target, setTarget] = useState(toDollars(settings.recharge_to_cents))
  const write = useWrite(
    async () =>
      await api.putAutoRefill({
        params: { billing_account_id },
        body: { enabled, threshold_cents: amount(threshold), recharge_to_cents: amount(target) },
      }),
    [["billing", billing_account_id]],
    (saved) => {
      setThreshold(toDollars(saved.threshold_cents))
      setTarget(toDollars(saved.recharge_to_cents))
    },
  )
  return (
    <LimitForm title="Automatic refill" owner={owner} write={write}>
      <CheckField
        label="Buy credit automatically"
        disabled={!owner}
        checked={enabled}
        onChange={(event) => setEnabled(event.target.checked)}
      />
      <div className="grid grid-cols-1 items-end gap-3 sm:grid-cols-2">
        <TextField
          label="When the balance falls to ($)"
          inputMode="decimal"
          disabled={!owner}
          value={threshold}
          onChange={(event) => setThreshold(event.target.value)}
        />
        <TextField
          label="Refill to ($)"
          inputMode="decimal"
          disabled={!owner}
          value={target}
          onChange={(event) => setTarget(event.target.value)}
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
  const [low, setLow] = useState(toDollars(controls.prepaid_low_balance_warning?.threshold_cents))
  const [warning, setWarning] = useState(toDollars(controls.usage_spend_warning?.threshold_cents))
  const [cutoff, setCutoff] = useState(toDollars(controls.usage_spend_cutoff?.threshold_cents))
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
      setLow(toDollars(saved.prepaid_low_balance_warning?.threshold_cents))
      setWarning(toDollars(saved.usage_spend_warning?.threshold_cents))
      setCutoff(toDollars(saved.usage_spend_cutoff?.threshold_cents))
    },
  )
  return (
    <LimitForm title="Spend controls" owner={owner} write={write}>
      <div className="grid grid-cols-1 items-end gap-3 sm:grid-cols-2">
        <TextField
          label="Warn at a monthly spend of ($)"
          inputMode="decimal"
          disabled={!owner}
          value={warning}
          onChange={(event) => setWarning(event.target.value)}
        />
        <TextField
          label="Stop at a monthly spend of ($)"
          inputMode="decimal"
          disabled={!owner}
          value={cutoff}
          onChange={(event) => setCutoff(event.target.value)}
        />
        {prepaid ? (
          <TextField
            label="Warn below a balance of ($)"
            inputMode="decimal"
            disabled={!owner}
            value={low}
            onChange={(event) => setLow(event.target.value)}
          />
        ) : null}
      </div>
      <p className="text-soft text-xs">
        A warning is a rule under{" "}
        <Link to="/o/$orgId/alerts" params={{ orgId: id }} search={{}} className="text-accent underline">
          Alerts
        </Link>
        , where you choose who is notified by webhook or e-mail. When the monthly limit is reached, requests
        are refused until the next month. Leave a field empty to turn it off.
      </p>
    </LimitForm>
  )
}

function LimitForm({
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
  const saved = write.isSuccess ? <Notice tone="good">Saved.</Notice> : null
  const save = (
    <Button type="submit" className="self-start" busy={write.isPending}>
      Save
    </Button>
  )
  return (
    <Panel title={title}>
      <Form
        label={title}
        write={write}
        footer={owner ? save : <Notice tone="info">Only owners can change these settings.</Notice>}
      >
        {children}
        {saved}
      </Form>
    </Panel>
  )
}

function amount(text: string): number | null {
  const value = toCents(text)
  if (Number.isNaN(value)) throw new Error(`"${text}" is not an amount of dollars, such as 25 or 25.50.`)
  return value
}
