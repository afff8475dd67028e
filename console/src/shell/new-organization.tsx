/** Creates an organization: in a dialog of the console, or on a page of its own for a user who has none. */
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { organizationsQuery } from "../session.ts"
import { Doorway } from "./doorway.tsx"
import { t } from "../i18n/translate.ts"

const explanation = t(
  "It has its own members, keys, settings and billing account. You become its primary owner.",
)

function useCreate(onDone: () => void) {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [name, setName] = useState("")
  const write = useWrite(
    async () => {
      const created = await api.createOrganization({ body: { name } })
      // Its pages need it in the list before they open.
      await queries.refetchQueries({ queryKey: organizationsQuery.queryKey })
      return created
    },
    [],
    ({ id: orgId }) => {
      onDone()
      void navigate({ to: "/o/$orgId/playground", params: { orgId } })
    },
  )
  const field = (
    <TextField
      label={t("Name of the organization")}
      required
      autoFocus
      maxLength={200}
      placeholder={t("Acme Outdoor")}
      value={name}
      onChange={(event) => setName(event.target.value)}
    />
  )
  return { write, field }
}

export function CreateOrganizationDialog({ onClose }: { onClose: () => void }): ReactNode {
  const { write, field } = useCreate(onClose)
  return (
    <FormDialog
      title={t("Create an organization")}
      submit={t("Create organization")}
      write={write}
      onClose={onClose}
    >
      <p className="text-soft text-sm">{explanation}</p>
      {field}
    </FormDialog>
  )
}

export function NewOrganization(): ReactNode {
  const { write, field } = useCreate(() => undefined)
  return (
    <Doorway title={t("Create an organization")}>
      <p className="text-soft text-sm">
        {t(
          "You are not a member of any organization. Ask an owner to invite you, or create one. {explanation}",
          { explanation },
        )}
      </p>
      <Form
        write={write}
        footer={
          <Button type="submit" kind="loud" busy={write.isPending}>
            {t("Create organization")}
          </Button>
        }
      >
        {field}
      </Form>
    </Doorway>
  )
}
