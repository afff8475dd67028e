/** A menu that opens from a button: Radix brings the keyboard, this brings the looks. */
import * as Radix from "@radix-ui/react-dropdown-menu"
import { type ReactNode, useCallback, useState } from "react"
import { Button } from "./button.tsx"
import { Icon, type IconName } from "./icon.tsx"
import { t } from "../i18n/translate.ts"

export function Menu({
  trigger,
  children,
  align = "end",
  onClosed,
}: {
  trigger: ReactNode
  children: ReactNode
  align?: "start" | "end"
  /** Called when it has closed and is about to focus its button, which the event can prevent. */
  onClosed?: (event: Event) => void
}): ReactNode {
  const [container, setContainer] = useState<HTMLElement | null>(null)
  // An open dialog lies above the rest of the page: a menu of one must be inside it to be seen.
  const place = useCallback((element: HTMLElement | null) => {
    if (element) setContainer(element.closest("dialog"))
  }, [])
  return (
    // Not modal: the modal kind writes an inline style sheet, which the Content-Security-Policy refuses.
    <Radix.Root modal={false}>
      <Radix.Trigger asChild ref={place}>
        {trigger}
      </Radix.Trigger>
      <Radix.Portal container={container}>
        <Radix.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          {...(onClosed ? { onCloseAutoFocus: onClosed } : {})}
          className="bg-panel border-line shadow-lift z-50 max-h-[70vh] min-w-48 overflow-y-auto rounded-lg border p-1"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

/** The menu at the end of a row or in the corner of a card. */
export function ActionsMenu({ of, children }: { of: string; children: ReactNode }): ReactNode {
  return (
    <Menu trigger={<Button kind="bare" small icon="dots" aria-label={t("Actions for {of}", { of })} />}>
      {children}
    </Menu>
  )
}

export function MenuItem({
  icon,
  children,
  onSelect,
  danger = false,
  checked,
}: {
  icon?: IconName
  children: ReactNode
  onSelect: () => void
  danger?: boolean
  checked?: boolean
}): ReactNode {
  return (
    <Radix.Item
      onSelect={onSelect}
      className={`data-highlighted:bg-sunken flex cursor-pointer items-center gap-2 rounded-md px-2 py-1.5 text-sm outline-none ${danger ? "text-bad" : ""}`}
    >
      {icon ? <Icon name={icon} /> : null}
      <span className="flex-1">{children}</span>
      {checked ? <Icon name="check" /> : null}
    </Radix.Item>
  )
}

export function MenuHeading({ children }: { children: ReactNode }): ReactNode {
  return <Radix.Label className="text-soft px-2 py-1.5 text-xs">{children}</Radix.Label>
}

export function MenuLine(): ReactNode {
  return <Radix.Separator className="bg-line -mx-1 my-1 h-px" />
}
