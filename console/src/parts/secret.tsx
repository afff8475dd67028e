/** Shows a secret the only time it can be shown, and says so. */
import type { ReactNode } from "react"
import { Button } from "./button.tsx"
import { CopyButton } from "./copy-button.tsx"
import { type CloseGuard, Dialog } from "./dialog.tsx"
import { withinSentence } from "./format.ts"
import { Notice } from "./page.tsx"
import { t } from "../i18n/translate.ts"

const shownOnce: CloseGuard = {
  when: "always",
  question: t("Close it? It cannot be shown again."),
  stay: t("Keep it open"),
  leave: t("Close anyway"),
}

export function SecretDialog({
  title,
  label,
  secret,
  kept = t("Umpire stores a hash of it, not the secret."),
  children,
  onClose,
}: {
  title: string
  label: string
  secret: string | null
  /** How Umpire keeps it. */
  kept?: string
  children?: ReactNode
  onClose: () => void
}): ReactNode {
  return (
    <Dialog title={title} onClose={onClose} guard={shownOnce}>
      <div className="flex flex-col gap-4">
        <Notice tone="warn">
          {secret
            ? `${t("Copy it now: it is shown only once.")} ${kept}`
            : t(
                "The response with the secret was lost, and it is shown only once. Rotate it, or send a new link, to get another.",
              )}
        </Notice>
        <div className="bg-sunken border-line flex items-center gap-2 rounded-lg border p-2.5">
          <code aria-label={label} className="min-w-0 flex-1 font-mono text-xs break-all select-all">
            {secret ?? t("Not shown again")}
          </code>
          {secret ? (
            <CopyButton text={secret} label={t("Copy {name}", { name: withinSentence(label) })} />
          ) : null}
        </div>
        {children}
        <div className="flex justify-end">
          <Button kind="loud" onClick={onClose}>
            {t("I have copied it")}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
