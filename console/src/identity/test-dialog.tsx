/** Tests a token or a certificate against a provider and shows each step of the decision; nothing is issued. */
import { type ReactNode, useState } from "react"
import type { ProviderTestResult, WorkloadIdentityProvider } from "../../../src/contract/identity.ts"
import { api, useWrite } from "../api.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { AreaField } from "../parts/field.tsx"
import { Badge, Notice } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

const stepNames: Record<ProviderTestResult["steps"][number]["step"], string> = {
  provider: t("The provider"),
  assertion: t("The token or certificate"),
  attribute_condition: t("The condition"),
  attribute_transformations: t("The attributes"),
  authorization_rules: t("The rules"),
}
const outcomeTones = { passed: "good", refused: "bad", not_reached: "plain" } as const
const outcomeNames = { passed: t("passed"), refused: t("refused"), not_reached: t("not reached") }

export function TestDialog({
  provider,
  onClose,
}: {
  provider: WorkloadIdentityProvider
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [text, setText] = useState("")
  const oidc = provider.config.type === "oidc"
  const write = useWrite(
    async () =>
      await api.testWorkloadIdentityProvider({
        params: { org_id, provider_id: provider.id },
        body: oidc ? { subject_token: text.trim() } : { certificate_chain: text },
      }),
    [],
  )
  return (
    <FormDialog
      title={t("Test {name}", { name: provider.name })}
      submit={t("Test")}
      wide
      write={write}
      onClose={onClose}
    >
      <AreaField
        label={oidc ? t("Token (JWT)") : t("Certificate chain (PEM), the workload's own first")}
        required
        rows={5}
        className="font-mono text-xs"
        hint={t("It is checked and not stored; no access token is issued.")}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {write.data ? <Outcome result={write.data} /> : null}
    </FormDialog>
  )
}

function Outcome({ result }: { result: ProviderTestResult }): ReactNode {
  return (
    <div className="flex flex-col gap-3" role="status" aria-label={t("Outcome")}>
      <Notice tone={result.accepted ? "good" : "bad"}>
        {result.accepted
          ? t("Accepted, with {permissions}.", { permissions: result.permissions.join(", ") })
          : t("Refused.")}
      </Notice>
      <ol className="flex flex-col gap-1.5 text-sm">
        {result.steps.map(({ step, outcome, message }) => (
          <li key={step} className="flex flex-wrap items-baseline gap-2">
            <Badge tone={outcomeTones[outcome]}>{outcomeNames[outcome]}</Badge>
            <span className="font-medium">{stepNames[step]}</span>
            <span className="text-soft min-w-0 flex-1 text-xs wrap-anywhere">{message}</span>
          </li>
        ))}
      </ol>
      {result.assertion ? <Json title={t("Claims")} value={result.assertion} /> : null}
      {result.attributes ? <Json title={t("Attributes")} value={result.attributes} /> : null}
    </div>
  )
}

function Json({ title, value }: { title: string; value: unknown }): ReactNode {
  return (
    <div>
      <p className="label mb-1">{title}</p>
      <pre
        className="bg-sunken max-h-48 overflow-auto rounded-md p-2 font-mono text-xs"
        tabIndex={0}
        aria-label={title}
      >
        {JSON.stringify(value, null, 2)}
      </pre>
    </div>
  )
}
