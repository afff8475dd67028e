/** Buys credit and follows the purchase to its end. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect, useState } from "react"
import { type CreditPurchase, refillCentsMax, refillCentsMin } from "../../../src/contract/billing.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Dialog, FormDialog } from "../parts/dialog.tsx"
import { cents } from "../parts/format.ts"
import { NumberField } from "../parts/number-field.tsx"
import { Loading, Notice } from "../parts/page.tsx"
import { readNumber } from "../parts/typed-number.ts"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

const bounds = { min: refillCentsMin, max: refillCentsMax, required: true }
const pollMs = 1_500

export function RefillDialog({ onClose }: { onClose: () => void }): ReactNode {
  const { billing_account_id } = useOrganization()
  const [amount, setAmount] = useState("50.00")
  const [purchase, setPurchase] = useState<CreditPurchase | null>(null)
  const wanted = readNumber(amount, "amount", bounds).value
  const write = useWrite(
    async () =>
      await api.createRefill({ params: { billing_account_id }, body: { amount_in_cents: wanted ?? 0 } }),
    [
      ["billing", billing_account_id],
      ["refills", billing_account_id],
    ],
    setPurchase,
  )
  if (purchase) return <Outcome purchase={purchase} onClose={onClose} />
  return (
    <FormDialog
      title={t("Add credit")}
      submit={wanted === null ? t("Add credit") : t("Pay {wanted}", { wanted: cents(wanted) })}
      write={write}
      onClose={onClose}
    >
      <NumberField
        kind="amount"
        bounds={bounds}
        label={t("Amount in dollars")}
        autoFocus
        value={amount}
        onText={setAmount}
        hint={t("Charged to the payment method of this account.")}
      />
    </FormDialog>
  )
}

function Outcome({ purchase, onClose }: { purchase: CreditPurchase; onClose: () => void }): ReactNode {
  const { billing_account_id } = useOrganization()
  const queries = useQueryClient()
  const { data } = useQuery({
    queryKey: ["refill", purchase.id],
    initialData: purchase,
    queryFn: async () => await api.getRefill({ params: { billing_account_id, refill_id: purchase.id } }),
    refetchInterval: ({ state }) => (state.data?.status === "processing" ? pollMs : false),
  })
  const { status } = data
  useEffect(() => {
    if (status === "processing") return
    for (const name of ["billing", "refills"])
      void queries.invalidateQueries({ queryKey: [name, billing_account_id] })
  }, [status, queries, billing_account_id])
  return (
    <Dialog title={t("Add credit")} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <PurchaseSentence purchase={data} />
        <Button className="self-end" onClick={onClose}>
          {t("Done")}
        </Button>
      </div>
    </Dialog>
  )
}

function PurchaseSentence({
  purchase: { status, amount_in_cents, error_message },
}: {
  purchase: CreditPurchase
}): ReactNode {
  switch (status) {
    case "processing":
      return <Loading label={t("Loading the payment")} />
    case "succeeded":
      return (
        <Notice tone="good">
          {t("{amountInCents} of credit added.", { amountInCents: cents(amount_in_cents ?? 0) })}
        </Notice>
      )
    case "action_required":
      return <Notice tone="warn">{error_message ?? t("Your bank asks you to confirm the payment.")}</Notice>
    case "failed":
      return <Notice tone="bad">{error_message ?? t("The payment was refused. Nothing was charged.")}</Notice>
    case "timed_out":
      return <Notice tone="bad">{error_message ?? t("The payment provider did not answer in time.")}</Notice>
  }
}
