/** Views to come back to: a few that everybody needs, and the user's own. */
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { Menu, MenuHeading, MenuItem, MenuLine } from "../parts/menu.tsx"
import { useBrowserStorage } from "../session.ts"
import { type LogView, emptyView } from "./log-view.ts"
import { deleteView, isSameView, saveView, savedViews, viewNameCharactersMax } from "./saved-views.ts"
import { t } from "../i18n/translate.ts"

const givenViews = [
  { name: t("All requests"), view: emptyView },
  { name: t("Errors"), view: { ...emptyView, filters: { result: "error" } } },
  { name: t("Slower than 1 s"), view: { ...emptyView, filters: { latency_ms_min: "1000" } } },
  { name: t("Abstained"), view: { ...emptyView, filters: { verdict: "abstained" } } },
] as const

export function ViewsMenu({ view, onShow }: { view: LogView; onShow: (view: LogView) => void }): ReactNode {
  const storage = useBrowserStorage()
  const [saved, setSaved] = useState(() => savedViews(storage))
  const [saving, setSaving] = useState(false)
  const current = [...saved, ...givenViews].find((one) => isSameView(one.view, view))
  const isOwn = saved.some(({ name }) => name === current?.name)
  const refresh = (): void => setSaved(savedViews(storage))
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button icon="bookmark">
            <span className="max-w-40 truncate">{current?.name ?? t("Views")}</span>
          </Button>
        }
      >
        {givenViews.map((one) => (
          <MenuItem key={one.name} checked={one.name === current?.name} onSelect={() => onShow(one.view)}>
            {one.name}
          </MenuItem>
        ))}
        <MenuLine />
        <MenuHeading>{saved.length > 0 ? t("Saved views") : t("No saved views yet")}</MenuHeading>
        {saved.map((one) => (
          <MenuItem key={one.name} checked={one.name === current?.name} onSelect={() => onShow(one.view)}>
            {one.name}
          </MenuItem>
        ))}
        <MenuLine />
        {isOwn && current ? (
          <MenuItem
            icon="trash"
            danger
            onSelect={() => {
              deleteView(storage, current.name)
              refresh()
            }}
          >
            {t("Delete “{name}”", { name: current.name })}
          </MenuItem>
        ) : (
          <MenuItem icon="plus" onSelect={() => setSaving(true)}>
            {t("Save this view")}
          </MenuItem>
        )}
      </Menu>
      {saving ? (
        <SaveView
          taken={saved.map(({ name }) => name)}
          onSave={(name) => {
            saveView(storage, name, view)
            refresh()
          }}
          onClose={() => setSaving(false)}
        />
      ) : null}
    </>
  )
}

function SaveView({
  taken,
  onSave,
  onClose,
}: {
  taken: readonly string[]
  onSave: (name: string) => void
  onClose: () => void
}): ReactNode {
  const [name, setName] = useState("")
  const given = name.trim()
  return (
    <FormDialog
      title={t("Save this view")}
      submit={t("Save view")}
      ready={given !== ""}
      write={{
        isPending: false,
        error: null,
        mutate: () => {
          onSave(given)
          onClose()
        },
      }}
      onClose={onClose}
    >
      <TextField
        label={t("Name")}
        required
        maxLength={viewNameCharactersMax}
        placeholder={t("Errors of the nightly job")}
        value={name}
        hint={
          taken.includes(given)
            ? t("A view with this name is replaced.")
            : t("Range and filters, for you, in this browser. To share a view, send its address.")
        }
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  )
}
