/** Dialogs on the browser's own element, which keeps the focus inside, closes on Escape and covers the page. */
import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react"
import { sentenceOf } from "../api.ts"
import { Button } from "./button.tsx"
import { Notice } from "./page.tsx"

export function Dialog({
  title,
  onClose,
  children,
  wide = false,
  closable = true,
}: {
  title: string
  onClose: () => void
  children: ReactNode
  wide?: boolean
  closable?: boolean
}): ReactNode {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const element = ref.current
    if (element && !element.open) element.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        if (closable) onClose()
      }}
      className={`bg-panel border-line shadow-lift text-ink max-h-[calc(100dvh-2rem)] w-[calc(100vw-2rem)] overflow-y-auto rounded-xl border p-0 ${wide ? "max-w-3xl" : "max-w-md"}`}
    >
      <div className="flex items-start justify-between gap-4 px-5 pt-4">
        <h2 id={id} className="text-base font-semibold">
          {title}
        </h2>
        {closable ? <Button kind="bare" small icon="cross" aria-label="Close" onClick={onClose} /> : null}
      </div>
      <div className="px-5 pt-3 pb-5">{children}</div>
    </dialog>
  )
}

/** A dialog that is a form: what it asks for, what went wrong, and the two ways out. */
export function FormDialog({
  title,
  submit,
  onSubmit,
  onClose,
  busy,
  error,
  danger = false,
  wide = false,
  children,
}: {
  title: string
  submit: string
  onSubmit: () => void
  onClose: () => void
  busy: boolean
  error: unknown
  danger?: boolean
  wide?: boolean
  children: ReactNode
}): ReactNode {
  const send = (event: FormEvent): void => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form onSubmit={send} className="flex flex-col gap-4">
        {children}
        {error ? <Notice tone="bad">{sentenceOf(error)}</Notice> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? "bad" : "loud"} busy={busy}>
            {submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
