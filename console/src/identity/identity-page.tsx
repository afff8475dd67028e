/** Workload identity: trusted providers whose workloads need no API key. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { WorkloadIdentityProvider } from "../../../src/contract/identity.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ago } from "../parts/format.ts"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Badge, Empty, Loaded, Page } from "../parts/page.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { useOpenRequest } from "../shell/open-request.ts"
import { ProviderDialog } from "./provider-dialog.tsx"
import { TestDialog } from "./test-dialog.tsx"
import { t, tn } from "../i18n/translate.ts"

type Open =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "test" | "delete"; readonly provider: WorkloadIdentityProvider }

export function IdentityPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [open, setOpen] = useState<Open | null>(null)
  useOpenRequest(() => owner && setOpen({ kind: "create" }))
  const close = (): void => setOpen(null)
  const providers = useQuery({
    queryKey: ["identity", org_id],
    queryFn: async () => await api.listWorkloadIdentityProviders({ params: { org_id } }),
  })
  const create = owner ? (
    <Button kind="loud" icon="plus" onClick={() => setOpen({ kind: "create" })}>
      {t("Add provider")}
    </Button>
  ) : null
  return (
    <Page
      title={t("Workload identity")}
      about={t(
        "CI jobs, clusters and cloud machines exchange their signed token or certificate for a short-lived access token. There is no key to store or leak.",
      )}
      actions={providers.data?.length ? create : null}
    >
      <Loaded query={providers} label={t("Loading providers")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="badge" title={t("No providers yet")} action={create}>
                {t("Trust an OIDC issuer, such as your CI or cluster, or a certificate authority.")}
              </Empty>
            </div>
          ) : (
            <ul className="grid grid-cols-1 gap-3 lg:grid-cols-2">
              {rows.map((provider) => (
                <li key={provider.id}>
                  <ProviderCard provider={provider} owner={owner} onOpen={setOpen} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {open?.kind === "create" ? <ProviderDialog provider={null} onClose={close} /> : null}
      {open?.kind === "edit" ? <ProviderDialog provider={open.provider} onClose={close} /> : null}
      {open?.kind === "test" ? <TestDialog provider={open.provider} onClose={close} /> : null}
      {open?.kind === "delete" ? <DeleteDialog provider={open.provider} onClose={close} /> : null}
    </Page>
  )
}

function ProviderCard({
  provider,
  owner,
  onOpen,
}: {
  provider: WorkloadIdentityProvider
  owner: boolean
  onOpen: (open: Open) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { config } = provider
  const toggle = useWrite(
    async () =>
      await api.updateWorkloadIdentityProvider({
        params: { org_id, provider_id: provider.id },
        body: { active: !provider.active },
      }),
    [["identity", org_id]],
  )
  return (
    <article className="panel flex h-full flex-col gap-3 p-4" aria-label={provider.name}>
      <header className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <h2 className="font-semibold wrap-anywhere">{provider.name}</h2>
          <p className="text-soft flex items-center gap-1 font-mono text-xs">
            {provider.id}{" "}
            <CopyButton text={provider.id} label={t("Copy the id of {name}", { name: provider.name })} bare />
          </p>
        </div>
        <span className="flex items-center gap-1">
          <Badge tone={provider.active ? "good" : "plain"}>
            {provider.active ? t("Active") : t("Paused")}
          </Badge>
          {owner ? (
            <ActionsMenu of={provider.name}>
              <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", provider })}>
                {t("Edit")}
              </MenuItem>
              <MenuItem icon="target" onSelect={() => onOpen({ kind: "test", provider })}>
                {t("Test a token")}
              </MenuItem>
              <MenuItem icon={provider.active ? "stop" : "play"} onSelect={() => toggle.mutate(undefined)}>
                {provider.active ? t("Pause") : t("Activate")}
              </MenuItem>
              <MenuLine />
              <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", provider })}>
                {t("Delete")}
              </MenuItem>
            </ActionsMenu>
          ) : null}
        </span>
      </header>
      <ErrorNotice error={toggle.error} />
      <dl className="flex flex-col gap-2 text-xs">
        <Fact name={config.type === "oidc" ? t("OIDC issuer") : "X.509"}>
          <span className="text-sm wrap-anywhere">
            {config.type === "oidc"
              ? config.issuer_uri
              : tn(config.trust_anchors.length, "{count} trust anchor", "{count} trust anchors")}
          </span>
        </Fact>
        {provider.attribute_condition ? (
          <Fact name={t("Condition")}>
            <Expression text={provider.attribute_condition} />
          </Fact>
        ) : null}
        <Fact name={t("Permissions")}>
          <Rules rules={provider.authorization_rules} />
        </Fact>
      </dl>
      <p className="text-soft mt-auto text-xs">
        {t("Revision {policyRevision}, updated {updatedAt}", {
          policyRevision: provider.policy_revision,
          updatedAt: ago(provider.updated_at),
        })}
      </p>
    </article>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <div>
      <dt className="label mb-0.5">{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Expression({ text }: { text: string }): ReactNode {
  return <code className="bg-sunken rounded px-1.5 py-0.5 font-mono wrap-anywhere">{text}</code>
}

/** The first rule that matches decides; the last one always does. */
function Rules({ rules }: { rules: WorkloadIdentityProvider["authorization_rules"] }): ReactNode {
  return (
    <ol className="flex flex-col gap-1" aria-label={t("Rules")}>
      {rules.map(({ condition, permissions }, index) => (
        <li key={index} className="flex flex-wrap items-center gap-1.5">
          {index === rules.length - 1 ? (
            <span className="text-soft">{rules.length === 1 ? t("Everyone") : t("Everyone else")}</span>
          ) : (
            <Expression text={condition} />
          )}
          {permissions.length === 0 ? <span className="text-soft">{t("no permissions")}</span> : null}
          {permissions.map((permission) => (
            <Badge key={permission}>{permission}</Badge>
          ))}
        </li>
      ))}
    </ol>
  )
}

function DeleteDialog({
  provider,
  onClose,
}: {
  provider: WorkloadIdentityProvider
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const params = { org_id, provider_id: provider.id }
  return (
    <ConfirmDialog
      title={t("Delete {name}?", { name: provider.name })}
      submit={t("Delete")}
      act={async () => await api.deleteWorkloadIdentityProvider({ params })}
      refreshes={[["identity", org_id]]}
      onClose={onClose}
    >
      {t("Access tokens issued through it stop working within 30 seconds.")}
    </ConfirmDialog>
  )
}
