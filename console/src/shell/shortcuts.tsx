/** The keys that work, by the page on which they do; opened by `?`. */
import { type ReactNode, useEffect } from "react"
import { Dialog } from "../parts/dialog.tsx"
import { t } from "../i18n/translate.ts"

export const isMac = navigator.platform.startsWith("Mac")
const control = isMac ? "⌘" : "Ctrl"

const shortcuts = [
  {
    place: t("Everywhere"),
    keys: [
      [`${control} K`, t("Search pages, actions, keys, people and requests")],
      ["?", t("Show these shortcuts")],
      ["Esc", t("Close what is open")],
    ],
  },
  {
    place: t("Playground"),
    keys: [
      [`${control} Enter`, t("Decide")],
      ["Enter", t("Add an option below")],
      ["↑ ↓", t("Move the question or option whose handle has the focus")],
    ],
  },
  {
    place: t("Requests"),
    keys: [
      ["j k", t("Choose the next or the previous row")],
      ["Enter", t("Open the record")],
      ["Esc", t("Go back to the list")],
    ],
  },
  {
    place: t("Review"),
    keys: [
      ["y n", t("The right answer is yes, or no")],
      [t("1 to 9"), t("The right answer is that option")],
      ["?", t("Not sure")],
      ["s", t("Skip")],
      ["u", t("Undo the last decision")],
    ],
  },
] as const

export function Shortcuts({ onClose }: { onClose: () => void }): ReactNode {
  return (
    <Dialog title={t("Keyboard shortcuts")} onClose={onClose}>
      <div className="flex flex-col gap-4">
        {shortcuts.map(({ place, keys }) => (
          <section key={place} aria-label={place}>
            <h3 className="label mb-1.5">{place}</h3>
            <dl className="grid grid-cols-[6.5rem_1fr] gap-x-3 gap-y-1.5 text-sm">
              {keys.map(([key, meaning]) => (
                <div key={key} className="col-span-2 grid grid-cols-subgrid items-baseline">
                  <dt>
                    <kbd className="border-strong bg-sunken rounded border px-1.5 py-0.5 font-mono text-xs">
                      {key}
                    </kbd>
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}

/** Keys of the whole console; a page that has a meaning of its own for one prevents its default. */
export function useConsoleKeys({
  search,
  shortcuts: show,
}: {
  search: () => void
  shortcuts: () => void
}): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented) return
      const withControl = event.metaKey || event.ctrlKey
      if (withControl && event.key.toLowerCase() === "k") {
        event.preventDefault()
        search()
      }
      if (event.key === "?" && !withControl && !event.altKey && !isWriting(event.target)) {
        event.preventDefault()
        show()
      }
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  })
}

/** Where a letter is text, or belongs to a menu or dialog that is open. */
export const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input, textarea, select, dialog, [role=menu]") !== null
