/** Type a few letters, press Enter, be there. */
import { useNavigate } from "@tanstack/react-router"
import { type KeyboardEvent, type ReactNode, useState } from "react"
import { Dialog } from "../parts/dialog.tsx"
import { Icon } from "../parts/icon.tsx"
import { useOrganization } from "../session.ts"
import { chooseTheme } from "../theme.ts"
import { type Place, places } from "./places.ts"

const destinations: readonly Place[] = places.flatMap(({ items }): readonly Place[] => items)

export function JumpList({ onClose }: { onClose: () => void }): ReactNode {
  const { id } = useOrganization()
  const navigate = useNavigate()
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const go = (to: Place["to"] | "/docs"): void => {
    onClose()
    void navigate(to === "/docs" ? { to } : { to: to as "/o/$orgId/keys", params: { orgId: id } })
  }
  const dark = document.documentElement.dataset["theme"] === "dark"
  const all = [
    ...destinations.map((place) => ({ ...place, run: () => go(place.to) })),
    { name: "API reference", icon: "book" as const, also: "docs openapi", run: () => go("/docs") },
    {
      name: dark ? "Switch to light" : "Switch to dark",
      icon: dark ? ("sun" as const) : ("moon" as const),
      also: "theme appearance",
      run: () => {
        chooseTheme(dark ? "light" : "dark")
        onClose()
      },
    },
  ]
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = all.filter(({ name, also = "" }) =>
    words.every((word) => `${name} ${also}`.toLowerCase().includes(word)),
  )
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      setAt((at + step + found.length) % Math.max(1, found.length))
    }
    if (event.key === "Enter") {
      event.preventDefault()
      found[at]?.run()
    }
  }
  return (
    <Dialog title="Jump to" onClose={onClose}>
      <input
        autoFocus
        role="combobox"
        aria-label="Page or action"
        aria-expanded="true"
        aria-controls="jump-list"
        aria-activedescendant={found[at] ? `jump-${at}` : undefined}
        className="control"
        placeholder="Type a page or an action"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <ul
        id="jump-list"
        role="listbox"
        aria-label="Pages and actions"
        className="mt-2 max-h-72 overflow-y-auto"
      >
        {found.map(({ name, icon, run }, index) => (
          <li
            key={name}
            id={`jump-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={run}
            onMouseEnter={() => setAt(index)}
            className={`flex cursor-pointer items-center gap-2.5 rounded-md px-2 py-1.5 text-sm ${index === at ? "bg-sunken" : ""}`}
          >
            <Icon name={icon} className="text-soft size-4" />
            {name}
          </li>
        ))}
      </ul>
      {found.length === 0 ? <p className="text-soft px-2 py-3 text-sm">Nothing by that name.</p> : null}
    </Dialog>
  )
}
