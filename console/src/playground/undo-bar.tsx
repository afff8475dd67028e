/** Says what replaced the draft, with a way back; it stands over the page, so that nothing moves. */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import type { Replaced } from "./use-draft.ts"
import { t } from "../i18n/translate.ts"

export function UndoBar({
  replaced,
  onUndo,
  onDismiss,
}: {
  replaced: Replaced | null
  onUndo: () => void
  onDismiss: () => void
}): ReactNode {
  return (
    <div role="status">
      {replaced ? (
        <>
          {/* What it covers at the end of the page can be scrolled from under it. */}
          <div className="h-14" />
          <div className="pointer-events-none fixed inset-x-0 bottom-4 z-40 flex justify-center px-4">
            <div className="bg-panel border-strong shadow-lift pointer-events-auto flex max-w-full items-center gap-2 rounded-lg border py-1.5 pe-1.5 ps-4 text-sm">
              <span className="min-w-0 wrap-anywhere">{replaced.what}</span>
              <Button small icon="turn" onClick={onUndo}>
                {t("Undo")}
              </Button>
              <Button small kind="bare" icon="cross" aria-label={t("Dismiss")} onClick={onDismiss} />
            </div>
          </div>
        </>
      ) : null}
    </div>
  )
}
