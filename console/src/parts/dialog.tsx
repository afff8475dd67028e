/** Dialogs on the browser's own element, which keeps the focus inside, closes on Escape and covers the page. */
import { type ReactNode, useEffect, useId, useRef } from "react"
import { useWrite } from "../api.ts"
import { Button } from "./button.tsx"
import { Form, type FormWrite } from "./form.tsx"

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
    // The browser would begin at the button that closes.
    element?.querySelector<HTMLElement>("input, textarea, select")?.focus()
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
  write,
  onClose,
  ready = true,
  danger = false,
  wide = false,
  children,
}: {
  title: string
  submit: string
  write: FormWrite
  onClose: () => void
  /** False while the form holds something that would be refused. */
  ready?: boolean
  danger?: boolean
  wide?: boolean
  children: ReactNode
}): ReactNode {
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <Form
        write={write}
        ready={ready}
        footer={
          <div className="flex justify-end gap-2">
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind={danger ? "bad" : "loud"} busy={write.isPending}>
              {submit}
            </Button>
          </div>
        }
      >
        {children}
      </Form>
    </Dialog>
  )
}

/** Asks once more before something that cannot be taken back. */
export function ConfirmDialog({
  title,
  submit,
  act,
  refreshes,
  onClose,
  children,
}: {
  title: string
  submit: string
  act: () => Promise<unknown>
  /** The lists that it changes. */
  refreshes: readonly (readonly unknown[])[]
  onClose: () => void
  children: ReactNode
}): ReactNode {
  const write = useWrite(act, refreshes, onClose)
  return (
    <FormDialog title={title} submit={submit} danger write={write} onClose={onClose}>
      <p className="text-soft text-sm">{children}</p>
    </FormDialog>
  )
}
