/**
 * A form that writes once: its fields and buttons are disabled while it does, and it says what was refused. A field that
 * says itself wrong stops it.
 */
import { type FormEvent, type ReactNode, useEffect, useRef } from "react"
import { ErrorNotice } from "./error-notice.tsx"

/** What a form sends, and how that goes; `useWrite` makes one. */
export interface FormWrite {
  readonly isPending: boolean
  readonly error: unknown
  mutate(input: undefined): void
}

export function Form({
  write,
  label,
  ready = true,
  footer,
  children,
}: {
  write: FormWrite
  label?: string
  /** False while the form holds something that would be refused. */
  ready?: boolean
  /** The buttons, below what was refused. */
  footer: ReactNode
  children: ReactNode
}): ReactNode {
  const focused = useRef<Element | null>(null)
  const { isPending } = write
  useEffect(() => {
    // A disabled field loses the focus; the form gives it back.
    if (!isPending && focused.current instanceof HTMLElement && document.activeElement === document.body)
      focused.current.focus()
  }, [isPending])
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const wrong = event.currentTarget.querySelector<HTMLElement>(
      "[aria-invalid=true]:enabled:not([data-refused])",
    )
    if (wrong) return show(wrong)
    if (!ready) return
    focused.current = document.activeElement
    write.mutate(undefined)
  }
  return (
    <form onSubmit={submit} aria-label={label} aria-busy={isPending || undefined}>
      <fieldset disabled={isPending} className="flex min-w-0 flex-col gap-4">
        {children}
        <ErrorNotice error={write.error} />
        {footer}
      </fieldset>
    </form>
  )
}

/** Where it stands in a part that is folded away, that is opened. */
function show(field: HTMLElement): void {
  const folded = field.closest("details")
  if (folded) folded.open = true
  field.focus()
}
