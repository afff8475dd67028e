/** Guardrails: question sets that check what models read and write. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { Guardrail } from "../../../src/contract/guardrails/guardrails.ts"
import { useKeyNames } from "../analytics/key-names.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Badge, Empty, Loaded, Page } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { GuardrailDialog } from "./guardrail-dialog.tsx"
import { actionNames, guardrailsKey, stageNames } from "./guardrail-words.ts"

type Open =
  | { readonly kind: "edit"; readonly guardrail: Guardrail | null }
  | { readonly kind: "delete"; readonly guardrail: Guardrail }

export function GuardrailsPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [open, setOpen] = useState<Open | null>(null)
  const query = useQuery({
    queryKey: guardrailsKey(org_id),
    queryFn: async () => (await api.listGuardrails({ params: { org_id } })).data,
  })
  const enable = useWrite(
    async ({ id, enabled }: Guardrail) =>
      await api.updateGuardrail({ params: { org_id, guardrail_id: id }, body: { enabled: !enabled } }),
    [guardrailsKey(org_id)],
  )
  const create = owner ? (
    <Button kind="loud" icon="plus" onClick={() => setOpen({ kind: "edit", guardrail: null })}>
      Create guardrail
    </Button>
  ) : null
  return (
    <Page
      title="Guardrails"
      about="Question sets that check chat and responses before the model reads and after it writes. Each check is recorded and charged as a decision."
      actions={query.data?.length ? create : null}
    >
      <ErrorNotice error={enable.error} />
      <Loaded query={query} what="guardrails">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="shield" title="No guardrails yet" action={create}>
                Begin with a ready-made set, such as prompt-injection, or use a question set of your own.
              </Empty>
            </div>
          ) : (
            <GuardrailTable rows={rows} owner={owner} onOpen={setOpen} onEnable={enable.mutate} />
          )
        }
      </Loaded>
      {open?.kind === "edit" ? (
        <GuardrailDialog guardrail={open.guardrail} onClose={() => setOpen(null)} />
      ) : null}
      {open?.kind === "delete" ? (
        <ConfirmDialog
          title={`Delete ${open.guardrail.name}?`}
          submit="Delete guardrail"
          act={async () => await api.deleteGuardrail({ params: { org_id, guardrail_id: open.guardrail.id } })}
          refreshes={[guardrailsKey(org_id)]}
          onClose={() => setOpen(null)}
        >
          Requests are no longer checked by it. Its question set stays.
        </ConfirmDialog>
      ) : null}
    </Page>
  )
}

function GuardrailTable({
  rows,
  owner,
  onOpen,
  onEnable,
}: {
  rows: readonly Guardrail[]
  owner: boolean
  onOpen: (open: Open) => void
  onEnable: (guardrail: Guardrail) => void
}): ReactNode {
  const nameOfKey = useKeyNames("api_key_id")
  return (
    <Table
      label="Guardrails"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: "Guardrail",
          cell: ({ name, question_set }) => (
            <>
              <span className="font-medium">{name}</span>
              <span className="text-soft block font-mono text-xs">{question_set}</span>
            </>
          ),
        },
        { name: "When", cell: ({ stage }) => stageNames[stage] },
        {
          name: "Then",
          cell: ({ action, route_model }) =>
            route_model === null ? actionNames[action] : `Route to ${route_model}`,
        },
        {
          name: "For",
          cell: ({ api_key_id, model }) =>
            [api_key_id === null ? null : nameOfKey(api_key_id), model].filter(Boolean).join(", ") ||
            "All requests",
        },
        {
          name: "State",
          cell: ({ enabled }) => (
            <Badge tone={enabled ? "good" : "plain"}>{enabled ? "Active" : "Disabled"}</Badge>
          ),
        },
        actionsColumn(owner, (guardrail: Guardrail) => (
          <ActionsMenu of={guardrail.name}>
            <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", guardrail })}>
              Edit
            </MenuItem>
            <MenuItem icon={guardrail.enabled ? "stop" : "play"} onSelect={() => onEnable(guardrail)}>
              {guardrail.enabled ? "Disable" : "Enable"}
            </MenuItem>
            <MenuLine />
            <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", guardrail })}>
              Delete
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}
