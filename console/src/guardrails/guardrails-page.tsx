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
import { t } from "../i18n/translate.ts"

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
      {t("Create guardrail")}
    </Button>
  ) : null
  return (
    <Page
      title={t("Guardrails")}
      about={t(
        "Question sets that check chat and responses before the model reads and after it writes. Each check is recorded and charged as a decision.",
      )}
      actions={query.data?.length ? create : null}
    >
      <ErrorNotice error={enable.error} />
      <Loaded query={query} label={t("Loading guardrails")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="shield" title={t("No guardrails yet")} action={create}>
                {t(
                  "Begin with a ready-made set, such as prompt-injection, or use a question set of your own.",
                )}
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
          title={t("Delete {name}?", { name: open.guardrail.name })}
          submit={t("Delete guardrail")}
          act={async () => await api.deleteGuardrail({ params: { org_id, guardrail_id: open.guardrail.id } })}
          refreshes={[guardrailsKey(org_id)]}
          onClose={() => setOpen(null)}
        >
          {t("Requests are no longer checked by it. Its question set stays.")}
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
      label={t("Guardrails")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Guardrail"),
          cell: ({ name, question_set }) => (
            <>
              <span className="font-medium">{name}</span>
              <span className="text-soft block font-mono text-xs">{question_set}</span>
            </>
          ),
        },
        { name: t("When"), cell: ({ stage }) => stageNames[stage] },
        {
          name: t("Then"),
          cell: ({ action, route_model }) =>
            route_model === null
              ? actionNames[action]
              : t("Route to {routeModel}", { routeModel: route_model }),
        },
        {
          name: t("For"),
          cell: ({ api_key_id, model }) =>
            [api_key_id === null ? null : nameOfKey(api_key_id), model].filter(Boolean).join(", ") ||
            t("All requests"),
        },
        {
          name: t("State"),
          cell: ({ enabled }) => (
            <Badge tone={enabled ? "good" : "plain"}>{enabled ? t("Active") : t("Disabled")}</Badge>
          ),
        },
        actionsColumn(owner, (guardrail: Guardrail) => (
          <ActionsMenu of={guardrail.name}>
            <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", guardrail })}>
              {t("Edit")}
            </MenuItem>
            <MenuItem icon={guardrail.enabled ? "stop" : "play"} onSelect={() => onEnable(guardrail)}>
              {guardrail.enabled ? t("Disable") : t("Enable")}
            </MenuItem>
            <MenuLine />
            <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", guardrail })}>
              {t("Delete")}
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}
