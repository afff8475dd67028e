/** The versions of a set: what each was made for, which is published, and how two differ. */
import { type ReactNode, useState } from "react"
import type { QuestionSet, QuestionSetVersionItem } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { ago, moment } from "../parts/format.ts"
import { ActionsMenu, MenuItem } from "../parts/menu.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Loaded } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { Comparison } from "./comparison.tsx"
import { Publish } from "./publish.tsx"
import { type SetAddress, setsKey, versionsKey } from "./set-query.ts"

type Open =
  | { readonly kind: "publish" | "label"; readonly version: number }
  | { readonly kind: "unlabel"; readonly label: string }

export function VersionsTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const [open, setOpen] = useState<Open | null>(null)
  const close = (): void => setOpen(null)
  const versions = usePages(
    versionsKey(at),
    async (query) => await api.listQuestionSetVersions({ params: at, query }),
  )
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={versions} what="versions">
        {(rows) => <VersionTable rows={rows} onOpen={setOpen} />}
      </Loaded>
      <MoreButton query={versions} />
      {set.latest_version > 1 ? <Comparison set={set} at={at} versions={versions.data ?? []} /> : null}
      {open?.kind === "publish" ? <Publish set={set} at={at} version={open.version} onClose={close} /> : null}
      {open?.kind === "label" ? <AddLabel at={at} version={open.version} onClose={close} /> : null}
      {open?.kind === "unlabel" ? (
        <ConfirmDialog
          title={`Remove the label ${open.label}?`}
          submit="Remove label"
          act={async () => await api.deleteQuestionSetLabel({ params: { ...at, label: open.label } })}
          refreshes={[setsKey(at.org_id)]}
          onClose={close}
        >
          {open.label === "production"
            ? `Requests for “set:${set.name}” are then answered by the latest version.`
            : `Requests for “set:${set.name}@${open.label}” fail from then on. The version stays.`}
        </ConfirmDialog>
      ) : null}
    </div>
  )
}

function VersionTable({
  rows,
  onOpen,
}: {
  rows: readonly QuestionSetVersionItem[]
  onOpen: (open: Open) => void
}): ReactNode {
  return (
    <Table
      label="Versions"
      rows={rows}
      rowKey={({ version }) => String(version)}
      columns={[
        {
          name: "Version",
          cell: ({ version }) => <span className="font-medium whitespace-nowrap">Version {version}</span>,
        },
        {
          name: "Labels",
          cell: ({ labels }) => (
            <span className="inline-flex flex-wrap gap-1 max-md:justify-end">
              {labels.map((label) => (
                <Badge key={label} tone={label === "production" ? "good" : "plain"}>
                  {label}
                </Badge>
              ))}
            </span>
          ),
        },
        { name: "Note", cell: ({ note }) => note || <span className="text-soft">–</span> },
        {
          name: "Created",
          cell: ({ created_at }) => (
            <span className="whitespace-nowrap" title={moment(created_at)}>
              {ago(created_at)}
            </span>
          ),
        },
        actionsColumn(true, ({ version, labels }: QuestionSetVersionItem) => (
          <ActionsMenu of={`version ${version}`}>
            {labels.includes("production") ? null : (
              <MenuItem icon="check" onSelect={() => onOpen({ kind: "publish", version })}>
                Publish to production
              </MenuItem>
            )}
            <MenuItem icon="plus" onSelect={() => onOpen({ kind: "label", version })}>
              Add label
            </MenuItem>
            {labels
              .filter((label) => label !== "latest")
              .map((label) => (
                <MenuItem key={label} icon="trash" danger onSelect={() => onOpen({ kind: "unlabel", label })}>
                  Remove label {label}
                </MenuItem>
              ))}
          </ActionsMenu>
        )),
      ]}
    />
  )
}

function AddLabel({
  at,
  version,
  onClose,
}: {
  at: SetAddress
  version: number
  onClose: () => void
}): ReactNode {
  const [label, setLabel] = useState("")
  const write = useWrite(
    async () => await api.putQuestionSetLabel({ params: { ...at, label }, body: { version } }),
    [setsKey(at.org_id)],
    onClose,
  )
  return (
    <FormDialog title={`Label version ${version}`} submit="Add label" write={write} onClose={onClose}>
      <TextField
        label="Label"
        required
        autoFocus
        spellCheck={false}
        pattern="[a-z][a-z0-9._\-]{0,63}"
        title="Small letters, digits, dot, dash and underscore, beginning with a letter"
        placeholder="stable"
        hint="A label that points at another version moves here."
        value={label}
        onChange={(event) => setLabel(event.target.value)}
      />
    </FormDialog>
  )
}
