/** API keys: create, edit, rotate and delete them. A secret is shown once. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { ApiKey, ApiKeyWithSecret } from "../../../src/contract/platform/keys.ts"
import { type Permission, permissionsOfRole } from "../../../src/contract/access.ts"
import { api, useWrite } from "../api.ts"
import { KeyContentBadge, KeyContentDialog } from "../content/key-content.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { CheckField, SelectField, TextField } from "../parts/field.tsx"
import { ago, day, moment } from "../parts/format.ts"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Page } from "../parts/page.tsx"
import { RotateDialog } from "../parts/rotate-dialog.tsx"
import { SecretDialog } from "../parts/secret.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useIsOwner, useOrganization, useSession } from "../session.ts"
import {
  type LimitDraft,
  LimitFields,
  budgetLines,
  limitDraftOf,
  limitsOfDraft,
  noLimits,
} from "./key-limit-fields.tsx"
import { useOpenRequest, useShown } from "../shell/open-request.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

type Open =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "content" | "rotate" | "delete"; readonly key: ApiKey }
  | { readonly kind: "secret"; readonly key: ApiKeyWithSecret; readonly rotated: boolean }

const permissionHints: Record<Permission, string> = {
  inference: t("Run decisions, System One, chat, responses and embeddings."),
  "api-read": t("Read the organization: requests, question sets, analytics, alerts, billing."),
  "api-write": t("Change question sets, reviews and alert rules; request access to models."),
  "api-admin": t("Manage keys, members, billing, routing, identity providers, webhooks and kept content."),
}

export function KeysPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const [open, setOpen] = useState<Open | null>(null)
  useOpenRequest(() => setOpen({ kind: "create" }))
  const close = (): void => setOpen(null)
  const keys = usePages(
    ["keys", org_id],
    async (query) => await api.listApiKeys({ params: { org_id }, query }),
  )
  const create = (
    <Button kind="loud" icon="plus" onClick={() => setOpen({ kind: "create" })}>
      {t("Create key")}
    </Button>
  )
  return (
    <Page
      title={t("API keys")}
      about={t(
        "Programs authenticate with a key. Give each program its own, with only the permissions it needs.",
      )}
      actions={keys.data?.length ? create : null}
    >
      <Loaded query={keys} label={t("Loading keys")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="key" title={t("No keys yet")} action={create}>
                {t("A key lets a program send requests and read their results.")}
              </Empty>
            </div>
          ) : (
            <KeyTable rows={rows} onOpen={setOpen} />
          )
        }
      </Loaded>
      <MoreButton query={keys} />
      {open?.kind === "create" ? (
        <CreateKey onClose={close} onDone={(key) => setOpen({ kind: "secret", key, rotated: false })} />
      ) : null}
      {open?.kind === "edit" ? <EditKey apiKey={open.key} onClose={close} /> : null}
      {open?.kind === "content" ? <KeyContentDialog apiKey={open.key} onClose={close} /> : null}
      {open?.kind === "rotate" ? (
        <RotateKey
          apiKey={open.key}
          onClose={close}
          onDone={(key) => setOpen({ kind: "secret", key, rotated: true })}
        />
      ) : null}
      {open?.kind === "delete" ? <DeleteKey apiKey={open.key} onClose={close} /> : null}
      {open?.kind === "secret" ? (
        <SecretDialog
          title={
            open.rotated
              ? t("New secret of “{name}”", { name: open.key.name })
              : t("The key “{name}” is ready", { name: open.key.name })
          }
          label={t("API key")}
          secret={open.key.secret}
          onClose={close}
        >
          <p className="text-soft text-sm">
            <T
              text="Programs read it from the environment variable <code>UMPIRE_API_KEY</code>. In the playground, Code shows a request to try it with."
              code={(children) => <code className="font-mono text-xs">{children}</code>}
            />
          </p>
        </SecretDialog>
      ) : null}
    </Page>
  )
}

function KeyTable({ rows, onOpen }: { rows: readonly ApiKey[]; onOpen: (open: Open) => void }): ReactNode {
  const owner = useIsOwner()
  const me = useSession()?.user.id
  const shown = useShown()
  const nameOf = useMemberNames()
  return (
    <Table
      label={t("API keys")}
      rows={rows}
      rowKey={({ id }) => id}
      isMarked={({ id }) => id === shown}
      columns={[
        {
          name: t("Name"),
          cell: (key) => (
            <>
              <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
                <span className="font-medium">{key.name}</span>
                <KeyContentBadge keyId={key.id} />
              </span>
              <span className="text-soft block font-mono text-xs md:whitespace-nowrap">{key.id}</span>
            </>
          ),
        },
        {
          name: t("Permissions"),
          cell: (key) => (
            <span className="flex flex-wrap gap-1 max-md:justify-end">
              {key.permissions.map((permission) => (
                <Badge key={permission}>{permission}</Badge>
              ))}
            </span>
          ),
        },
        {
          name: t("Owner"),
          cell: (key) => <Line>{key.user_id === null ? t("Organization") : nameOf(key.user_id)}</Line>,
        },
        {
          name: t("Last used"),
          cell: (key) => (
            <>
              <Line>{key.last_used_at ? ago(key.last_used_at) : t("Never")}</Line>
              <span className="text-soft block text-xs">
                <Line>{t("made {createdAt}", { createdAt: day(key.created_at) })}</Line>
              </span>
            </>
          ),
        },
        { name: t("Expires"), cell: (key) => <Expires apiKey={key} /> },
        {
          name: t("Spend"),
          cell: (key) => (
            <>
              <Budgets apiKey={key} />
              <UsageLink apiKey={key} />
            </>
          ),
        },
        actionsColumn(true, (key: ApiKey) =>
          owner || key.user_id === me ? <KeyActions apiKey={key} onOpen={onOpen} /> : null,
        ),
      ]}
    />
  )
}

/** Dates and names stay on one line where there is room. */
function Line({ children }: { children: ReactNode }): ReactNode {
  return <span className="md:whitespace-nowrap">{children}</span>
}

function KeyActions({ apiKey: key, onOpen }: { apiKey: ApiKey; onOpen: (open: Open) => void }): ReactNode {
  const owner = useIsOwner()
  return (
    <ActionsMenu of={key.name}>
      <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", key })}>
        {t("Edit")}
      </MenuItem>
      {owner ? (
        <MenuItem icon="file" onSelect={() => onOpen({ kind: "content", key })}>
          {t("Kept content")}
        </MenuItem>
      ) : null}
      <MenuItem icon="turn" onSelect={() => onOpen({ kind: "rotate", key })}>
        {t("Rotate secret")}
      </MenuItem>
      <MenuLine />
      <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", key })}>
        {t("Delete")}
      </MenuItem>
    </ActionsMenu>
  )
}

function Budgets({ apiKey }: { apiKey: ApiKey }): ReactNode {
  const lines = budgetLines(apiKey)
  if (lines.length === 0)
    return <span className="text-soft block md:whitespace-nowrap">{t("No budget")}</span>
  return lines.map(({ text, isBlocked }) => (
    <span key={text} className="block md:whitespace-nowrap">
      {text} {isBlocked ? <Badge tone="bad">{t("Blocked")}</Badge> : null}
    </span>
  ))
}

/** The requests of this key, in Analytics. */
function UsageLink({ apiKey: { id, name } }: { apiKey: ApiKey }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Link
      to="/o/$orgId/analytics"
      params={{ orgId }}
      search={{ range: "30d", f: [`api_key_id:${id}`] }}
      className="text-accent text-xs underline-offset-2 hover:underline md:whitespace-nowrap"
    >
      <T
        text="View usage <span>of {name}</span>"
        name={name}
        span={(children) => <span className="sr-only">{children}</span>}
      />
    </Link>
  )
}

/** People who have left, and those beyond the first page, keep their ids. */
function useMemberNames(): (userId: string) => string {
  const { id: org_id } = useOrganization()
  const { data } = useQuery({
    queryKey: ["members", org_id, "all"],
    queryFn: async () => (await api.listMembers({ params: { org_id }, query: { limit: 200 } })).data,
  })
  return (userId) => {
    const member = data?.find(({ user_id }) => user_id === userId)
    return member?.name ?? member?.email ?? userId
  }
}

function Expires({ apiKey }: { apiKey: ApiKey }): ReactNode {
  const { expires_at, previous_secret_expires_at } = apiKey
  const grace =
    previous_secret_expires_at && new Date(previous_secret_expires_at) > new Date()
      ? t("Old secret works until {previousSecretExpiresAt}", {
          previousSecretExpiresAt: moment(previous_secret_expires_at),
        })
      : null
  return (
    <>
      {expires_at === null ? (
        t("Never")
      ) : new Date(expires_at) < new Date() ? (
        <Badge tone="bad">{t("Expired")}</Badge>
      ) : (
        <Line>{day(expires_at)}</Line>
      )}
      {grace ? <span className="text-soft block text-xs">{grace}</span> : null}
    </>
  )
}

function PermissionFields({
  chosen,
  onChange,
}: {
  chosen: readonly Permission[]
  onChange: (chosen: Permission[]) => void
}): ReactNode {
  const permissions = permissionsOfRole(useOrganization().role)
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="label mb-1.5">{t("Permissions")}</legend>
      {permissions.map((permission) => (
        <CheckField
          key={permission}
          label={permission}
          hint={permissionHints[permission]}
          checked={chosen.includes(permission)}
          onChange={(event) =>
            onChange(
              permissions.filter((one) => (one === permission ? event.target.checked : chosen.includes(one))),
            )
          }
        />
      ))}
    </fieldset>
  )
}

const lifetimes = [
  { value: "", label: t("Never") },
  { value: "7", label: t("In 7 days") },
  { value: "30", label: t("In 30 days") },
  { value: "90", label: t("In 90 days") },
  { value: "365", label: t("In a year") },
]
const dayMs = 86_400_000

function CreateKey({
  onClose,
  onDone,
}: {
  onClose: () => void
  onDone: (key: ApiKeyWithSecret) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [name, setName] = useState("")
  const [chosen, setChosen] = useState<Permission[]>(["inference"])
  const [scope, setScope] = useState<"organization" | "user">(owner ? "organization" : "user")
  const [days, setDays] = useState("")
  const [limits, setLimits] = useState<LimitDraft>(noLimits)
  const write = useWrite(
    async () =>
      await api.createApiKey({
        params: { org_id },
        body: {
          name,
          permissions: chosen,
          scope,
          ...limitsOfDraft(limits),
          ...(days ? { expires_at: new Date(Date.now() + Number(days) * dayMs).toISOString() } : {}),
        },
      }),
    [
      ["keys", org_id],
      ["resources", org_id],
    ],
    onDone,
  )
  return (
    <FormDialog title={t("Create a key")} submit={t("Create key")} write={write} onClose={onClose}>
      <TextField
        label={t("Name")}
        required
        autoFocus
        maxLength={200}
        placeholder={t("production moderation")}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <PermissionFields chosen={chosen} onChange={setChosen} />
      <div className="grid grid-cols-2 gap-3">
        <SelectField
          label={t("Owner")}
          value={scope}
          disabled={!owner}
          hint={scope === "user" ? t("It has your role and ends when you leave.") : null}
          options={[
            { value: "organization", label: t("Organization") },
            { value: "user", label: t("Me") },
          ]}
          onChange={(event) => setScope(event.target.value as "organization" | "user")}
        />
        <SelectField
          label={t("Expires")}
          value={days}
          options={lifetimes}
          onChange={(event) => setDays(event.target.value)}
        />
      </div>
      <LimitFields draft={limits} onChange={setLimits} />
    </FormDialog>
  )
}

function EditKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const [name, setName] = useState(apiKey.name)
  const owner = useIsOwner()
  const [chosen, setChosen] = useState<Permission[]>(apiKey.permissions)
  const [limits, setLimits] = useState<LimitDraft>(limitDraftOf(apiKey))
  const write = useWrite(
    async () =>
      await api.updateApiKey({
        params: { org_id, key_id: apiKey.id },
        // Members cannot change the limits of their keys.
        body: { name, permissions: chosen, ...(owner ? limitsOfDraft(limits) : {}) },
      }),
    [["keys", org_id]],
    onClose,
  )
  return (
    <FormDialog
      title={t("Edit {name}", { name: apiKey.name })}
      submit={t("Save")}
      write={write}
      onClose={onClose}
    >
      <TextField
        label={t("Name")}
        required
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <PermissionFields chosen={chosen} onChange={setChosen} />
      {owner ? <LimitFields draft={limits} onChange={setLimits} /> : null}
    </FormDialog>
  )
}

function RotateKey({
  apiKey,
  onClose,
  onDone,
}: {
  apiKey: ApiKey
  onClose: () => void
  onDone: (key: ApiKeyWithSecret) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const params = { org_id, key_id: apiKey.id }
  return (
    <RotateDialog
      title={t("Rotate {name}", { name: apiKey.name })}
      about={t("The key gets a new secret. Its id, name and permissions stay the same.")}
      now={t("Stops working now")}
      on={(lasts) => t("Works for {lasts}", { lasts })}
      rotate={async (grace_seconds) => await api.rotateApiKey({ params, body: { grace_seconds } })}
      refreshes={[["keys", org_id]]}
      onClose={onClose}
      onDone={onDone}
    />
  )
}

function DeleteKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  return (
    <ConfirmDialog
      title={t("Delete {name}?", { name: apiKey.name })}
      submit={t("Delete key")}
      act={async () => await api.deleteApiKey({ params: { org_id, key_id: apiKey.id } })}
      refreshes={[["keys", org_id]]}
      onClose={onClose}
    >
      {t("Programs that use this key are refused at once. This cannot be undone.")}
    </ConfirmDialog>
  )
}
