/** Dialogs on the browser's own element, which keeps the focus inside and covers the page; closing one may ask first. */
import { type ReactNode, useEffect, useId, useRef, useState } from "react"
import { useWrite } from "../api.ts"
import { Button } from "./button.tsx"
import { Form, type FormWrite } from "./form.tsx"
import { t } from "../i18n/translate.ts"

/** When a dialog asks before Escape or its cross closes it, and with which words. */
export interface CloseGuard {
  /** "changed": once something in it was typed or chosen. */
  readonly when: "always" | "changed"
  readonly question: string
  readonly stay: string
  readonly leave: string
}

const unsaved: CloseGuard = {
  when: "changed",
  question: t("Close without saving? What you entered is lost."),
  stay: t("Keep editing"),
  leave: t("Discard"),
}

export function Dialog({
  title,
  onClose,
  children,
  wide = false,
  closable = true,
  guard,
}: {
  title: string
  onClose: () => void
  children: ReactNode
  wide?: boolean
  closable?: boolean
  guard?: CloseGuard
}): ReactNode {
  const ref = useRef<HTMLDialogElement>(null)
  const changed = useRef(false)
  const [asking, setAsking] = useState(false)
  const id = useId()
  useEffect(() => {
    const element = ref.current
    if (element && !element.open) element.showModal()
    // The browser would begin at the button that closes.
    element?.querySelector<HTMLElement>("input:not([type=radio]), input:checked, textarea, select")?.focus()
    return () => element?.close()
  }, [])
  const leave = (): void => {
    if (!closable) return
    if (asking) return setAsking(false)
    if (guard && (guard.when === "always" || changed.current)) return setAsking(true)
    onClose()
  }
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onInput={() => {
        changed.current = true
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return
        // Browsers close a dialog on a second Escape whatever its cancel event says; without the key they do not.
        event.preventDefault()
        leave()
      }}
      onCancel={(event) => {
        // Of a file picker inside it, the event is that field's own.
        if (event.target !== ref.current) return
        event.preventDefault()
        leave()
      }}
      className={`bg-panel border-line shadow-lift text-ink max-h-[calc(100dvh-2rem)] w-[calc(100vw-2rem)] overflow-y-auto rounded-xl border p-0 ${wide ? "max-w-3xl" : "max-w-md"}`}
    >
      <div className="flex items-start justify-between gap-4 px-5 pt-4">
        <h2 id={id} className="text-base font-semibold">
          {title}
        </h2>
        {closable ? <Button kind="bare" small icon="cross" aria-label={t("Close")} onClick={leave} /> : null}
      </div>
      <div className="px-5 pt-3 pb-5">{children}</div>
      {asking && guard ? (
        <CloseQuestion guard={guard} onStay={() => setAsking(false)} onLeave={onClose} />
      ) : null}
    </dialog>
  )
}

function CloseQuestion({
  guard,
  onStay,
  onLeave,
}: {
  guard: CloseGuard
  onStay: () => void
  onLeave: () => void
}): ReactNode {
  return (
    <div
      role="alertdialog"
      aria-label={guard.question}
      className="bg-warn-wash border-line sticky bottom-0 flex flex-wrap items-center justify-end gap-2 border-t px-5 py-3"
    >
      <p className="text-warn flex-1 basis-48 text-sm">{guard.question}</p>
      <Button autoFocus onClick={onStay}>
        {guard.stay}
      </Button>
      <Button kind="bad" onClick={onLeave}>
        {guard.leave}
      </Button>
    </div>
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
    <Dialog title={title} onClose={onClose} wide={wide} guard={unsaved}>
      <Form
        write={write}
        ready={ready}
        footer={
          <div className="bg-panel sticky bottom-0 -mx-5 -mt-2 -mb-5 flex justify-end gap-2 rounded-b-xl px-5 pt-2 pb-5">
            <Button onClick={onClose}>{t("Cancel")}</Button>
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
