/** Kept content leaves: deleted by time or by the caller's own reference, or exported as JSON lines. */
import { type ReactNode, useState } from "react"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Dialog, FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { Icon } from "../parts/icon.tsx"
import { useOrganization } from "../session.ts"
import { t, tn } from "../i18n/translate.ts"

export function DeleteContents({ onClose }: { onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const [before, setBefore] = useState("")
  const [reference, setReference] = useState("")
  const [deleted, setDeleted] = useState<number | null>(null)
  const write = useWrite(
    async () =>
      await api.deleteContents({
        params: { org_id },
        body: {
          ...(before ? { before: new Date(before).toISOString() } : {}),
          ...(reference.trim() ? { reference: reference.trim() } : {}),
        },
      }),
    [
      ["content", org_id],
      ["sets", org_id],
    ],
    (answer) => setDeleted(answer.deleted),
  )
  if (deleted !== null)
    return (
      <Dialog title={t("Deleted")} onClose={onClose}>
        <p className="text-sm">
          {tn(deleted, "Content of {count} request was deleted.", "Content of {count} requests was deleted.")}
        </p>
        <div className="mt-4 flex justify-end">
          <Button kind="loud" onClick={onClose}>
            {t("Done")}
          </Button>
        </div>
      </Dialog>
    )
  return (
    <FormDialog
      title={t("Delete kept content")}
      submit={t("Delete")}
      danger
      write={write}
      onClose={onClose}
      ready={before !== "" || reference.trim() !== ""}
    >
      <p className="text-soft text-sm">
        {t(
          "Texts and answers are deleted for good, with what waits for review and examples that reviewers made of them. Counts and costs stay. With both fields, requests that match both.",
        )}
      </p>
      <TextField
        label={t("Of requests before")}
        type="datetime-local"
        value={before}
        onChange={(event) => setBefore(event.target.value)}
      />
      <TextField
        label={t("Of requests with the reference")}
        maxLength={128}
        placeholder="customer-4711"
        hint={t("The tag “reference” that the caller sent in x-umpire-tags.")}
        value={reference}
        onChange={(event) => setReference(event.target.value)}
      />
    </FormDialog>
  )
}

export function ExportLink(): ReactNode {
  const { id: org_id } = useOrganization()
  const look =
    "border-strong bg-panel inline-flex h-7 items-center gap-1.5 rounded-md border px-2 text-xs font-medium"
  return (
    <a
      href={`/v1/organizations/${encodeURIComponent(org_id)}/content/export`}
      download={`content-${org_id}.jsonl`}
      className={`${look} hover:bg-sunken`}
    >
      <Icon name="download" /> {t("Export as JSON lines")}
    </a>
  )
}
