/** The form of a provider: who is trusted, what is asked of a token, and what it may do. */
import { type ReactNode, useState } from "react"
import { type Permission, permissions } from "../../../src/contract/access.ts"
import type { NewProvider, WorkloadIdentityProvider } from "../../../src/contract/identity.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/dialog.tsx"
import { AreaField, CheckField, Segments, TextField } from "../parts/field.tsx"
import { useOrganization } from "../session.ts"
import { CelField } from "./cel-field.tsx"
import { type ProviderDraft, draftOf, emptyDraft, rowId, toProvider } from "./provider-draft.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function ProviderDialog({
  provider,
  onClose,
}: {
  provider: WorkloadIdentityProvider | null
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [draft, setDraft] = useState<ProviderDraft>(() => (provider ? draftOf(provider) : emptyDraft()))
  const [confirmed, setConfirmed] = useState({ anyone: false, issuer: "" })
  const confirmation = confirmed.anyone
    ? { public_issuer_confirmation: { anyone_may_exchange: true as const, issuer_uri: confirmed.issuer } }
    : {}
  const write = useWrite(
    async () => {
      const body: NewProvider = { ...toProvider(draft), ...confirmation }
      return provider
        ? await api.updateWorkloadIdentityProvider({ params: { org_id, provider_id: provider.id }, body })
        : await api.createWorkloadIdentityProvider({ params: { org_id }, body })
    },
    [["identity", org_id]],
    onClose,
  )
  const change = (next: Partial<ProviderDraft>): void => setDraft({ ...draft, ...next })
  return (
    <FormDialog
      title={provider ? t("Edit {name}", { name: provider.name }) : t("Add a provider")}
      submit={provider ? t("Save") : t("Add provider")}
      wide
      write={write}
      onClose={onClose}
    >
      <TextField
        label={t("Name")}
        required
        maxLength={100}
        value={draft.name}
        onChange={(event) => change({ name: event.target.value })}
      />
      <Segments
        label={t("Kind of provider")}
        value={draft.type}
        options={[
          { value: "oidc", label: t("OIDC tokens") },
          { value: "x509", label: t("X.509 certificates") },
        ]}
        onChange={(type) => change({ type })}
      />
      {draft.type === "oidc" ? (
        <OidcFields draft={draft} onChange={change} />
      ) : (
        <X509Fields draft={draft} onChange={change} />
      )}
      <CelField
        label={t("Attribute condition (CEL, optional)")}
        name="attribute_condition"
        placeholder='assertion.repository_owner == "acme"'
        value={draft.condition}
        refused={fieldErrors(write.error)}
        onChange={(condition) => change({ condition })}
      />
      <Transformations draft={draft} refused={fieldErrors(write.error)} onChange={change} />
      <Rules draft={draft} refused={fieldErrors(write.error)} onChange={change} />
      {asksToConfirm(write.error) || confirmed.anyone ? (
        <Confirmation issuer={draft.issuer.trim()} confirmed={confirmed} onChange={setConfirmed} />
      ) : null}
    </FormDialog>
  )
}

/** The server refuses rules that let in anyone's tokens of a public issuer, unless that is confirmed. */
const asksToConfirm = (error: unknown): boolean =>
  error instanceof ClientError && error.message.includes("public_issuer_confirmation")

interface Confirmed {
  readonly anyone: boolean
  readonly issuer: string
}

function Confirmation({
  issuer,
  confirmed,
  onChange,
}: {
  issuer: string
  confirmed: Confirmed
  onChange: (confirmed: Confirmed) => void
}): ReactNode {
  return (
    <fieldset className="border-line flex flex-col gap-3 rounded-lg border p-3">
      <legend className="label px-1">{t("This issuer is public")}</legend>
      <p className="text-soft text-sm">
        {t(
          "{issuer} signs tokens for anyone. Restrict the subject, repository or project in the condition, or confirm that strangers may come in.",
          { issuer },
        )}
      </p>
      <CheckField
        label={t("Anyone with a token of this issuer may exchange it")}
        checked={confirmed.anyone}
        onChange={(event) => onChange({ ...confirmed, anyone: event.target.checked })}
      />
      {confirmed.anyone ? (
        <TextField
          label={t("Type the issuer again to confirm")}
          required
          placeholder={issuer}
          value={confirmed.issuer}
          onChange={(event) => onChange({ ...confirmed, issuer: event.target.value })}
        />
      ) : null}
    </fieldset>
  )
}

/** What the server found wrong, by the path of the field. */
function fieldErrors(error: unknown): ReadonlyMap<string, string> {
  if (!(error instanceof ClientError)) return new Map()
  const details = (error.body as { error?: { details?: unknown } } | null)?.error?.details
  if (!Array.isArray(details)) return new Map()
  return new Map(
    details.flatMap(({ path, message }: { path?: unknown; message?: unknown }) =>
      typeof path === "string" && typeof message === "string" ? [[path, message] as const] : [],
    ),
  )
}

interface PartProps {
  readonly draft: ProviderDraft
  readonly onChange: (change: Partial<ProviderDraft>) => void
}

function OidcFields({ draft, onChange }: PartProps): ReactNode {
  return (
    <>
      <TextField
        label={t("Issuer")}
        type="url"
        required
        placeholder="https://token.actions.githubusercontent.com"
        hint={t("Must match the token's iss claim exactly.")}
        value={draft.issuer}
        onChange={(event) => onChange({ issuer: event.target.value })}
      />
      <TextField
        label={t("Allowed audiences")}
        required
        placeholder="https://umpire.example.com"
        hint={t("Separated by commas.")}
        value={draft.audiences}
        onChange={(event) => onChange({ audiences: event.target.value })}
      />
      <AreaField
        label={t("Key set (JWKS, optional)")}
        rows={2}
        className="font-mono text-xs"
        hint={t("Leave empty to fetch the keys from the issuer.")}
        value={draft.jwks}
        onChange={(event) => onChange({ jwks: event.target.value })}
      />
    </>
  )
}

function X509Fields({ draft, onChange }: PartProps): ReactNode {
  return (
    <>
      <AreaField
        label={t("Trusted certificate authorities (PEM)")}
        required
        rows={4}
        className="font-mono text-xs"
        placeholder="-----BEGIN CERTIFICATE-----"
        value={draft.anchors}
        onChange={(event) => onChange({ anchors: event.target.value })}
      />
      <AreaField
        label={t("Intermediate authorities (PEM, optional)")}
        rows={2}
        className="font-mono text-xs"
        value={draft.intermediates}
        onChange={(event) => onChange({ intermediates: event.target.value })}
      />
    </>
  )
}

type CheckedProps = PartProps & { readonly refused: ReadonlyMap<string, string> }

function Transformations({ draft, refused, onChange }: CheckedProps): ReactNode {
  const { transformations } = draft
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="label mb-1.5">{t("Attribute mapping")}</legend>
      {transformations.map((one, index) => (
        <div key={one.id} className="grid grid-cols-[8rem_1fr_auto] items-end gap-2 max-sm:grid-cols-1">
          <TextField
            label={t("Attribute")}
            placeholder="team"
            value={one.name}
            onChange={(event) =>
              onChange({ transformations: transformations.with(index, { ...one, name: event.target.value }) })
            }
          />
          <CelField
            label={t("Expression (CEL)")}
            name={`attribute_transformations.${one.name}`}
            placeholder="assertion.sub"
            value={one.expression}
            refused={refused}
            onChange={(expression) =>
              onChange({ transformations: transformations.with(index, { ...one, expression }) })
            }
          />
          <Button
            kind="bare"
            icon="cross"
            aria-label={t("Remove attribute {index}", { index: index + 1 })}
            onClick={() => onChange({ transformations: transformations.toSpliced(index, 1) })}
          />
        </div>
      ))}
      <Button
        kind="bare"
        small
        icon="plus"
        className="self-start"
        onClick={() =>
          onChange({
            transformations: [...transformations, { id: rowId(), name: "", expression: "" }],
          })
        }
      >
        {t("Add attribute")}
      </Button>
    </fieldset>
  )
}

function Rules({ draft, refused, onChange }: CheckedProps): ReactNode {
  const { rules } = draft
  const put = (index: number, rule: (typeof rules)[number]): void =>
    onChange({ rules: rules.with(index, rule) })
  return (
    <fieldset className="flex flex-col gap-3">
      <legend className="label mb-1.5">{t("Authorization rules: the first match applies")}</legend>
      {rules.map((rule, index) => {
        const last = index === rules.length - 1
        return (
          <div key={rule.id} className="border-line flex flex-col gap-2 rounded-lg border p-3">
            {last ? (
              <p className="text-sm">
                <T
                  text="Everyone else <code>true</code>"
                  code={(children) => (
                    <code className="bg-sunken rounded px-1 font-mono text-xs">{children}</code>
                  )}
                />
              </p>
            ) : (
              <CelField
                label={t("When (CEL), rule {index}", { index: index + 1 })}
                name={`authorization_rules.${index}.condition`}
                placeholder='attribute.team == "search"'
                value={rule.condition}
                refused={refused}
                onChange={(condition) => put(index, { ...rule, condition })}
              />
            )}
            <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs">
              {permissions.map((permission) => (
                <label key={permission} className="flex items-center gap-1.5">
                  <input
                    type="checkbox"
                    className="accent-accent"
                    checked={rule.permissions.includes(permission)}
                    onChange={() =>
                      put(index, { ...rule, permissions: toggle(rule.permissions, permission) })
                    }
                  />
                  {permission}
                </label>
              ))}
              {rule.permissions.length === 0 ? (
                <span className="text-soft">{t("No permissions")}</span>
              ) : null}
              {last ? null : (
                <Button
                  kind="bare"
                  small
                  icon="trash"
                  className="ms-auto"
                  aria-label={t("Remove rule {index}", { index: index + 1 })}
                  onClick={() => onChange({ rules: rules.toSpliced(index, 1) })}
                />
              )}
            </div>
          </div>
        )
      })}
      <Button
        kind="bare"
        small
        icon="plus"
        className="self-start"
        onClick={() =>
          onChange({
            rules: rules.toSpliced(rules.length - 1, 0, {
              id: rowId(),
              condition: "",
              permissions: ["inference"],
            }),
          })
        }
      >
        {t("Add rule")}
      </Button>
    </fieldset>
  )
}

function toggle(held: readonly Permission[], permission: Permission): Permission[] {
  return permissions.filter((one) => (one === permission ? !held.includes(one) : held.includes(one)))
}
