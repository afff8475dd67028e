/** Copying: one way for every button, and the text to copy by hand where the browser refuses. */
import { type ReactNode, useState } from "react"
import { Button } from "./button.tsx"
import { Dialog } from "./dialog.tsx"
import { t } from "../i18n/translate.ts"

const copiedShownMs = 1_600

export function CopyButton({
  text,
  label = t("Copy"),
  small = true,
  bare = false,
}: {
  text: string
  label?: string
  small?: boolean
  bare?: boolean
}): ReactNode {
  const { copied, copy, byHand } = useCopy(copiedShownMs)
  return (
    <>
      <Button
        small={small}
        kind={bare ? "bare" : "quiet"}
        icon={copied ? "check" : "copy"}
        onClick={() => void copy(text)}
        aria-label={bare ? label : undefined}
        title={label}
      >
        {bare ? undefined : copied ? t("Copied") : label}
      </Button>
      {byHand}
    </>
  )
}

interface Copying {
  /** For a moment after it was copied. */
  readonly copied: boolean
  readonly copy: (text: string) => Promise<void>
  /** Stands beside the button: the text to copy by hand, where it could not be copied. */
  readonly byHand: ReactNode
}

export function useCopy(shownMs: number): Copying {
  const [copied, setCopied] = useState(false)
  const [refused, setRefused] = useState<string | null>(null)
  const copy = async (text: string): Promise<void> => {
    if (!(await copyText(text))) return setRefused(text)
    setCopied(true)
    setTimeout(() => setCopied(false), shownMs)
  }
  const byHand = refused === null ? null : <ByHand text={refused} onClose={() => setRefused(null)} />
  return { copied, copy, byHand }
}

const rowsMax = 8
const charactersPerRow = 44

function ByHand({ text, onClose }: { text: string; onClose: () => void }): ReactNode {
  return (
    <Dialog title={t("Copy by hand")} onClose={onClose}>
      <div className="flex flex-col gap-4 text-sm">
        <p>{t("The browser did not allow this page to copy. Copy the selected text yourself.")}</p>
        <textarea
          readOnly
          aria-label={t("Text to copy")}
          rows={Math.min(rowsMax, text.split("\n").length + Math.ceil(text.length / charactersPerRow))}
          className="control font-mono !text-xs break-all"
          value={text}
          onFocus={(event) => event.target.select()}
        />
        <Button kind="loud" className="self-end" onClick={onClose}>
          {t("Done")}
        </Button>
      </div>
    </Dialog>
  )
}

/** Whether it was copied. The clipboard needs a secure page and a permission; a selection needs neither. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copySelected(text)
  }
}

/** Within the dialog that is open: the page behind it cannot be selected. */
function copySelected(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement("textarea")
  area.value = text
  ;(focused?.closest("dialog") ?? document.body).append(area)
  area.select()
  const isCopied = document.execCommand("copy")
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isCopied
}
