/** The command palette: type a few letters, press Enter, and be there or have it done. */
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react"
import { Dialog } from "../parts/dialog.tsx"
import { Icon } from "../parts/icon.tsx"
import { findCommands, kindNames } from "./commands.ts"
import { useCommands } from "./use-commands.ts"
import { t } from "../i18n/translate.ts"

export function JumpList({
  onClose,
  onCreateOrganization,
  onShortcuts,
}: {
  onClose: () => void
  onCreateOrganization: () => void
  onShortcuts: () => void
}): ReactNode {
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const list = useRef<HTMLUListElement>(null)
  const found = findCommands(
    useCommands(text, { createOrganization: onCreateOrganization, showShortcuts: onShortcuts }),
    text,
  )
  const run = (index: number): void => {
    const command = found[index]
    if (!command) return
    onClose()
    command.run()
  }
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" })
  }, [at])
  const press = (event: KeyboardEvent): void => {
    const steps: Partial<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: found.length - 1,
    }
    const next = steps[event.key]
    if (next !== undefined) {
      event.preventDefault()
      setAt((next + found.length) % Math.max(1, found.length))
    }
    if (event.key === "Enter") {
      event.preventDefault()
      run(at)
    }
  }
  return (
    <Dialog title={t("Search")} onClose={onClose}>
      <input
        autoFocus
        role="combobox"
        aria-label={t("Search pages, actions, question sets, keys, people and requests")}
        aria-expanded="true"
        aria-controls="jump-list"
        aria-activedescendant={found[at] ? `jump-${at}` : undefined}
        className="control"
        placeholder={t("A page, “create key”, a person, seq_…")}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <ul
        ref={list}
        id="jump-list"
        role="listbox"
        aria-label={t("Results")}
        className="-mx-2 mt-2 h-72 overflow-y-auto"
      >
        {found.map(({ id, name, detail, kind, icon }, index) => (
          <li
            key={id}
            id={`jump-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => run(index)}
            onMouseMove={() => setAt(index)}
            className={`flex cursor-pointer items-center gap-2.5 rounded-md px-2 py-1.5 text-sm ${index === at ? "bg-sunken" : ""}`}
          >
            <Icon name={icon} className="text-soft size-4 shrink-0" />
            <span className="min-w-0 flex-1 truncate">
              {name}
              {detail ? <span className="text-soft ms-2 text-xs">{detail}</span> : null}
            </span>
            <span className="text-soft shrink-0 text-xs">{kindNames[kind]}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 ? (
        <p role="status" className="text-soft -mt-72 h-72 px-0 py-3 text-sm">
          {t("No results for “{value}”.", { value: text.trim() })}
        </p>
      ) : null}
    </Dialog>
  )
}
