/** What can be done with a batch or an evaluation: another name, and its deletion. */
import { type ReactNode, useState } from "react"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { ActionsMenu, MenuItem } from "../parts/menu.tsx"
import { useOrganization } from "../session.ts"
import { deleteFile, organizationHeader } from "./batch-files.ts"
import { batchesKey, isEnded, isEvaluation, useBatchName } from "./batch-query.ts"
import { t } from "../i18n/translate.ts"

const nameCharactersMax = 200

export function BatchActions({
  batch,
  onDeleted,
}: {
  batch: BatchObject
  onDeleted?: () => void
}): ReactNode {
  const [open, setOpen] = useState<"name" | "delete" | null>(null)
  const name = useBatchName(batch) ?? batch.id
  const close = (): void => setOpen(null)
  return (
    <>
      <ActionsMenu of={name}>
        <MenuItem icon="gear" onSelect={() => setOpen("name")}>
          {t("Rename")}
        </MenuItem>
        {isEnded(batch) ? (
          <MenuItem icon="trash" danger onSelect={() => setOpen("delete")}>
            {t("Delete")}
          </MenuItem>
        ) : null}
      </ActionsMenu>
      {open === "name" ? <Rename batch={batch} name={name} onClose={close} /> : null}
      {open === "delete" ? <Delete batch={batch} name={name} onClose={close} onDeleted={onDeleted} /> : null}
    </>
  )
}

function Rename({
  batch,
  name,
  onClose,
}: {
  batch: BatchObject
  name: string
  onClose: () => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const [given, setGiven] = useState(name)
  const write = useWrite(
    async () =>
      await api.updateBatch({
        params: { batch_id: batch.id },
        headers: organizationHeader(orgId),
        body: { metadata: { ...batch.metadata, name: given.trim() } },
      }),
    [batchesKey(orgId)],
    onClose,
  )
  return (
    <FormDialog title={t("Rename {name}", { name })} submit={t("Save")} write={write} onClose={onClose}>
      <TextField
        label={t("Name")}
        required
        maxLength={nameCharactersMax}
        value={given}
        onChange={(event) => setGiven(event.target.value)}
      />
    </FormDialog>
  )
}

function Delete({
  batch,
  name,
  onClose,
  onDeleted,
}: {
  batch: BatchObject
  name: string
  onClose: () => void
  onDeleted: (() => void) | undefined
}): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <ConfirmDialog
      title={t("Delete {name}?", { name })}
      submit={t("Delete")}
      act={async () => {
        await deleteBatch(orgId, batch)
        onDeleted?.()
      }}
      refreshes={[batchesKey(orgId)]}
      onClose={onClose}
    >
      {isEvaluation(batch)
        ? t("Its rows, answers and figures are deleted. The records of its requests stay under Requests.")
        : t("Its answers and errors are deleted. The records of its requests stay under Requests.")}
    </ConfirmDialog>
  )
}

/** What the console uploaded for it goes too; the input of a program may be another batch's as well. */
async function deleteBatch(orgId: string, { id, input_file_id, metadata }: BatchObject): Promise<void> {
  await api.deleteBatch({ params: { batch_id: id }, headers: organizationHeader(orgId) })
  const sheet = metadata?.["sheet_file_id"]
  for (const file of sheet === undefined ? [] : [sheet, input_file_id])
    await deleteFile(orgId, file).catch((error: unknown) => {
      if (!(error instanceof ClientError && error.status === 404)) throw error
    })
}
