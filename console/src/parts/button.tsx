/** Buttons: one loud kind for what the page is for, a quiet kind for the rest, and a red one for what cannot be undone. */
import type { ComponentProps, ReactNode } from "react"
import { Icon, type IconName } from "./icon.tsx"

const kinds = {
  loud: "bg-accent text-on-accent hover:bg-accent-strong border-transparent",
  quiet: "bg-panel text-ink border-strong hover:bg-sunken",
  bare: "border-transparent text-soft hover:text-ink hover:bg-sunken",
  bad: "bg-panel text-bad border-strong hover:bg-bad-wash",
} as const

interface ButtonProps extends ComponentProps<"button"> {
  readonly kind?: keyof typeof kinds
  readonly icon?: IconName
  readonly busy?: boolean
  readonly small?: boolean
}

export function Button({
  kind = "quiet",
  icon,
  busy,
  small,
  className = "",
  children,
  ...rest
}: ButtonProps): ReactNode {
  const size = small ? "h-7 px-2 text-xs" : "h-9 px-3 text-sm"
  const square = children === undefined ? (small ? "w-7 !px-0" : "w-9 !px-0") : ""
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled || busy}
      aria-busy={busy || undefined}
      className={`inline-flex items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap transition-colors disabled:opacity-55 ${size} ${square} ${kinds[kind]} ${className}`}
    >
      {busy ? <Spinner /> : icon ? <Icon name={icon} /> : null}
      {children}
    </button>
  )
}

export function Spinner(): ReactNode {
  return (
    <span
      aria-hidden="true"
      className="inline-block size-4 shrink-0 animate-spin rounded-full border-2 border-current border-t-transparent"
    />
  )
}
