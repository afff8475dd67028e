/** API keys: make, change, rotate and end them. A secret is shown once. */
import { type ReactNode, useState } from "react"
import type { ApiKey, ApiKeyWithSecret } from "../../../src/contract/platform/keys.ts"
import { type Permission, permissions } from "../../../src/contract/access.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { CheckField, SelectField, TextField } from "../parts/field.tsx"
import { ago, day, moment } from "../parts/format.ts"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Notice, Page } from "../parts/page.tsx"
import { SecretDialog } from "../parts/secret.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useIsOwner, useOrganization } from "../session.ts"

type Open =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "rotate" | "end"; readonly key: ApiKey }
  | { readonly kind: "secret"; readonly key: ApiKeyWithSecret; readonly rotated: boolean }

const permissionHints: Record<Permission, string> = {
  inference: "Decisions, System One, chat, responses, embeddings.",
  "api-read": "Read the organization, analytics and billing.",
  "api-write": "Ask for access to models.",
  "api-admin": "Change keys, members, billing, routing and identity providers.",
}

export function KeysPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [open, setOpen] = useState<Open | null>(null)
  const close = (): void => setOpen(null)
  const keys = usePages(
    ["keys", org_id],
    async (query) => await api.listApiKeys({ params: { org_id }, query }),
  )
  const create = (
    <Button kind="loud" icon="plus" onClick={() => setOpen({ kind: "create" })}>
      Create key
    </Button>
  )
  return (
    <Page
      title="API keys"
      about="What programs sign their requests with. Give each program its own key, with no more permissions than it needs."
      actions={owner ? create : null}
    >
      {owner ? null : <Notice tone="info">Owners of the organization create and change keys.</Notice>}
      <Loaded query={keys} what="keys">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="key" title="No keys yet" action={owner ? create : undefined}>
                A key lets a program ask questions and read what happened.
              </Empty>
            </div>
          ) : (
            <KeyTable rows={rows} owner={owner} onOpen={setOpen} />
          )
        }
      </Loaded>
      <MoreButton query={keys} />
      {open?.kind === "create" ? (
        <CreateKey onClose={close} onDone={(key) => setOpen({ kind: "secret", key, rotated: false })} />
      ) : null}
      {open?.kind === "edit" ? <EditKey apiKey={open.key} onClose={close} /> : null}
      {open?.kind === "rotate" ? (
        <RotateKey
          apiKey={open.key}
          onClose={close}
          onDone={(key) => setOpen({ kind: "secret", key, rotated: true })}
        />
      ) : null}
      {open?.kind === "end" ? <EndKey apiKey={open.key} onClose={close} /> : null}
      {open?.kind === "secret" ? (
        <SecretDialog
          title={open.rotated ? `New secret of ${open.key.name}` : `Key ${open.key.name} is ready`}
          label="API key"
          secret={open.key.secret}
          onClose={close}
        />
      ) : null}
    </Page>
  )
}

function KeyTable({
  rows,
  owner,
  onOpen,
}: {
  rows: readonly ApiKey[]
  owner: boolean
  onOpen: (open: Open) => void
}): ReactNode {
  return (
    <Table
      label="API keys"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: "Name",
          cell: (key) => (
            <>
              <span className="font-medium">{key.name}</span>
              <span className="text-soft block font-mono text-xs">{key.id}</span>
            </>
          ),
        },
        {
          name: "Permissions",
          cell: (key) => (
            <span className="flex flex-wrap gap-1 max-md:justify-end">
              {key.permissions.map((permission) => (
                <Badge key={permission}>{permission}</Badge>
              ))}
              {key.scope === "user" ? <Badge tone="info">personal</Badge> : null}
            </span>
          ),
        },
        { name: "Created", cell: (key) => <time dateTime={key.created_at}>{day(key.created_at)}</time> },
        { name: "Last used", cell: (key) => (key.last_used_at ? ago(key.last_used_at) : "never") },
        { name: "Ends", cell: (key) => <Ends apiKey={key} /> },
        actionsColumn(owner, (key: ApiKey) => (
          <ActionsMenu of={key.name}>
            <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", key })}>
              Change
            </MenuItem>
            <MenuItem icon="turn" onSelect={() => onOpen({ kind: "rotate", key })}>
              Rotate the secret
            </MenuItem>
            <MenuLine />
            <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "end", key })}>
              End the key
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}

function Ends({ apiKey }: { apiKey: ApiKey }): ReactNode {
  const { expires_at, previous_secret_expires_at } = apiKey
  const grace =
    previous_secret_expires_at && new Date(previous_secret_expires_at) > new Date()
      ? `old secret until ${moment(previous_secret_expires_at)}`
      : null
  return (
    <>
      {expires_at === null ? (
        "never"
      ) : new Date(expires_at) < new Date() ? (
        <Badge tone="bad">expired</Badge>
      ) : (
        day(expires_at)
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
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="label mb-1.5">Permissions</legend>
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
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
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
  const [name, setName] = useState("")
  const [chosen, setChosen] = useState<Permission[]>(["inference"])
  const [scope, setScope] = useState<"organization" | "user">("organization")
  const [days, setDays] = useState("")
  const write = useWrite(
    async () =>
      await api.createApiKey({
        params: { org_id },
        body: {
          name,
          permissions: chosen,
          scope,
          ...(days ? { expires_at: new Date(Date.now() + Number(days) * dayMs).toISOString() } : {}),
        },
      }),
    [["keys", org_id]],
    onDone,
  )
  return (
    <FormDialog title="Create a key" submit="Create key" write={write} onClose={onClose}>
      <TextField
        label="Name"
        required
        autoFocus
        maxLength={200}
        placeholder="production moderation"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <PermissionFields chosen={chosen} onChange={setChosen} />
      <div className="grid grid-cols-2 gap-3">
        <SelectField
          label="Belongs to"
          value={scope}
          options={[
            { value: "organization", label: "Organization" },
            { value: "user", label: "Me" },
          ]}
          onChange={(event) => setScope(event.target.value as "organization" | "user")}
        />
        <SelectField
          label="Ends"
          value={days}
          options={lifetimes}
          onChange={(event) => setDays(event.target.value)}
        />
      </div>
    </FormDialog>
  )
}

function EditKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const [name, setName] = useState(apiKey.name)
  const [chosen, setChosen] = useState<Permission[]>(apiKey.permissions)
  const write = useWrite(
    async () =>
      await api.updateApiKey({ params: { org_id, key_id: apiKey.id }, body: { name, permissions: chosen } }),
    [["keys", org_id]],
    onClose,
  )
  return (
    <FormDialog title={`Change ${apiKey.name}`} submit="Save" write={write} onClose={onClose}>
      <TextField
        label="Name"
        required
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <PermissionFields chosen={chosen} onChange={setChosen} />
    </FormDialog>
  )
}

const graces = [
  { value: "0", label: "Stops at once" },
  { value: "3600", label: "Works for another hour" },
  { value: "86400", label: "Works for another day" },
  { value: "604800", label: "Works for another week" },
]

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
  const [grace, setGrace] = useState("86400")
  const write = useWrite(
    async () =>
      await api.rotateApiKey({
        params: { org_id, key_id: apiKey.id },
        body: { grace_seconds: Number(grace) },
      }),
    [["keys", org_id]],
    onDone,
  )
  return (
    <FormDialog title={`Rotate ${apiKey.name}`} submit="Rotate" write={write} onClose={onClose}>
      <p className="text-soft text-sm">The key gets a new secret. Its name, permissions and id stay.</p>
      <SelectField
        label="The old secret"
        value={grace}
        options={graces}
        onChange={(event) => setGrace(event.target.value)}
      />
    </FormDialog>
  )
}

function EndKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  return (
    <ConfirmDialog
      title={`End ${apiKey.name}?`}
      submit="End the key"
      act={async () => await api.deleteApiKey({ params: { org_id, key_id: apiKey.id } })}
      refreshes={[["keys", org_id]]}
      onClose={onClose}
    >
      Programs that use it are refused from now on. This cannot be undone.
    </ConfirmDialog>
  )
}
