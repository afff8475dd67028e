/** Takes a file that is dropped or chosen. */
import { type ReactNode, useRef, useState } from "react"
import { Button } from "./button.tsx"
import { Icon } from "./icon.tsx"
import { t } from "../i18n/translate.ts"

const mebibyte = 1024 * 1024

export function FileDrop({
  name,
  prompt,
  label,
  bytesMax,
  disabled,
  onFile,
  onError,
  children,
}: {
  /** Of the file that was taken; null before. */
  name: string | null
  prompt: string
  label: string
  bytesMax: number
  /** While one is being worked on, another must wait. */
  disabled: boolean
  onFile: (name: string, bytes: Uint8Array) => void
  onError: (sentence: string) => void
  /** More buttons. */
  children?: ReactNode
}): ReactNode {
  const [over, setOver] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const read = async (file: File | undefined): Promise<void> => {
    if (!file || disabled) return
    if (file.size > bytesMax)
      return onError(
        t("{name} is larger than {bytesMax} MiB.", { name: file.name, bytesMax: bytesMax / mebibyte }),
      )
    onFile(file.name, new Uint8Array(await file.arrayBuffer()))
  }
  return (
    <div
      className={`border-strong flex flex-wrap items-center justify-center gap-3 rounded-xl border border-dashed px-4 py-6 text-sm ${over ? "bg-accent-wash" : "bg-panel"}`}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        void read(event.dataTransfer.files[0])
      }}
    >
      <Icon name="file" className="text-soft size-5" />
      <span>{name ?? prompt}</span>
      <input
        ref={picker}
        type="file"
        // Workbooks can be chosen to be told how they are saved as CSV.
        accept=".csv,.tsv,.jsonl,.ndjson,.txt,.xlsx"
        aria-label={label}
        className="hidden"
        disabled={disabled}
        onChange={(event) => {
          void read(event.target.files?.[0])
          // The same file chosen again, after it was mended, is a change too.
          event.target.value = ""
        }}
      />
      <Button disabled={disabled} onClick={() => picker.current?.click()}>
        {name ? t("Choose another file") : t("Choose a file")}
      </Button>
      {children}
    </div>
  )
}
