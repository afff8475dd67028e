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
import { t } from "../i18n/translate.ts"

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
      <Loaded query={versions} label={t("Loading versions")}>
        {(rows) => <VersionTable rows={rows} onOpen={setOpen} />}
      </Loaded>
      <MoreButton query={versions} />
      {set.latest_version > 1 ? <Comparison set={set} at={at} versions={versions.data ?? []} /> : null}
      {open?.kind === "publish" ? <Publish set={set} at={at} version={open.version} onClose={close} /> : null}
      {open?.kind === "label" ? <AddLabel at={at} version={open.version} onClose={close} /> : null}
      {open?.kind === "unlabel" ? (
        <ConfirmDialog
          title={t("Remove the label {label}?", { label: open.label })}
          submit={t("Remove label")}
          act={async () => await api.deleteQuestionSetLabel({ params: { ...at, label: open.label } })}
          refreshes={[setsKey(at.org_id)]}
          onClose={close}
        >
          {open.label === "production"
            ? t("Requests for “set:{name}” are then answered by the latest version.", { name: set.name })
            : t("Requests for “set:{name}@{label}” fail from then on. The version stays.", {
                name: set.name,
                label: open.label,
              })}
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
      label={t("Versions")}
      rows={rows}
      rowKey={({ version }) => String(version)}
      columns={[
        {
          name: t("Version"),
          cell: ({ version }) => (
            <span className="font-medium whitespace-nowrap">{t("Version {version}", { version })}</span>
          ),
        },
        {
          name: t("Labels"),
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
        { name: t("Note"), cell: ({ note }) => note || <span className="text-soft">–</span> },
        {
          name: t("Created"),
          cell: ({ created_at }) => (
            <span className="whitespace-nowrap" title={moment(created_at)}>
              {ago(created_at)}
            </span>
          ),
        },
        actionsColumn(true, ({ version, labels }: QuestionSetVersionItem) => (
          <ActionsMenu of={t("version {version}", { version })}>
            {labels.includes("production") ? null : (
              <MenuItem icon="check" onSelect={() => onOpen({ kind: "publish", version })}>
                {t("Publish to production")}
              </MenuItem>
            )}
            <MenuItem icon="plus" onSelect={() => onOpen({ kind: "label", version })}>
              {t("Add label")}
            </MenuItem>
            {labels
              .filter((label) => label !== "latest")
              .map((label) => (
                <MenuItem key={label} icon="trash" danger onSelect={() => onOpen({ kind: "unlabel", label })}>
                  {t("Remove label {label}", { label })}
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
    <FormDialog
      title={t("Label version {version}", { version })}
      submit={t("Add label")}
      write={write}
      onClose={onClose}
    >
      <TextField
        label={t("Label")}
        required
        autoFocus
        spellCheck={false}
        pattern="[a-z][a-z0-9._\-]{0,63}"
        title={t("Small letters, digits, dot, dash and underscore, beginning with a letter")}
        placeholder="stable"
        hint={t("A label that points at another version moves here.")}
        value={label}
        onChange={(event) => setLabel(event.target.value)}
      />
    </FormDialog>
  )
}
