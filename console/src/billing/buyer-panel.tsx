/** Who buys: the name, address and tax number that invoices and receipts are made out to. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { type Buyer, addressLinesMax } from "../../../src/contract/billing.ts"
import { api, useWrite } from "../api.ts"
import { AreaField, TextField } from "../parts/field.tsx"
import { Loaded } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { LimitForm } from "./limits.tsx"
import { t } from "../i18n/translate.ts"

const buyerQuery = (billing_account_id: string) =>
  queryOptions({
    queryKey: ["buyer", billing_account_id],
    queryFn: async () => await api.getBuyer({ params: { billing_account_id } }),
  })

export function BuyerPanel({ owner }: { owner: boolean }): ReactNode {
  const query = useQuery(buyerQuery(useOrganization().billing_account_id))
  return (
    <Loaded query={query} label={t("Loading who buys")}>
      {(buyer) => <BuyerForm buyer={buyer} owner={owner} />}
    </Loaded>
  )
}

function BuyerForm({ buyer, owner }: { buyer: Buyer; owner: boolean }): ReactNode {
  const { billing_account_id } = useOrganization()
  const [name, setName] = useState(buyer.name ?? "")
  const [address, setAddress] = useState(buyer.address_lines.join("\n"))
  const [taxNumber, setTaxNumber] = useState(buyer.tax_number ?? "")
  const lines = address
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  const write = useWrite(
    async () =>
      await api.putBuyer({
        params: { billing_account_id },
        body: { name: name.trim() || null, address_lines: lines, tax_number: taxNumber.trim() || null },
      }),
    [buyerQuery(billing_account_id).queryKey],
  )
  const tooMany = lines.length > addressLinesMax
  return (
    <LimitForm title={t("Invoices are made out to")} owner={owner} write={write}>
      <TextField
        label={t("Name or company")}
        autoComplete="organization"
        maxLength={200}
        disabled={!owner}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <AreaField
        label={t("Address")}
        autoComplete="street-address"
        rows={3}
        disabled={!owner}
        error={tooMany ? t("At most {addressLinesMax} lines fit on an invoice.", { addressLinesMax }) : null}
        value={address}
        onChange={(event) => setAddress(event.target.value)}
      />
      <TextField
        label={t("Tax number")}
        maxLength={64}
        disabled={!owner}
        hint={t("For example a VAT ID. Invoices that were issued stay as they are.")}
        value={taxNumber}
        onChange={(event) => setTaxNumber(event.target.value)}
      />
    </LimitForm>
  )
}
