/** The evidence: pasted, dropped as a file, or taken from an example. */
import { type DragEvent, type ReactNode, useRef, useState } from "react"
import { LIMITS } from "../../../src/contract/decisions.ts"
import { Button } from "../parts/button.tsx"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { Notice } from "../parts/page.tsx"
import { ContextMeter, type ContextUse } from "./context-meter.tsx"
import { type Example, examples } from "./examples.ts"
import { t, tn } from "../i18n/translate.ts"

export function EvidencePane({
  evidence,
  context,
  onChange,
  onReplace,
  onExample,
}: {
  evidence: string
  /** What the request takes of the model's context; null while no model is known. */
  context: ContextUse | null
  onChange: (evidence: string) => void
  /** As a whole, by a file or by nothing. */
  onReplace: (evidence: string, what: string) => void
  onExample: (example: Example) => void
}): ReactNode {
  const [over, setOver] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const picker = useRef<HTMLInputElement>(null)
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return
    const found = await readText(file)
    setError("error" in found ? found.error : null)
    if ("text" in found) onReplace(found.text, t("{name} replaced the text.", { name: file.name }))
  }
  const drop = (event: DragEvent): void => {
    event.preventDefault()
    setOver(false)
    void take(event.dataTransfer.files[0])
  }
  const dragged = (event: DragEvent): void => {
    if (!event.dataTransfer.types.includes("Files")) return
    event.preventDefault()
    setOver(true)
  }
  return (
    <section
      aria-label={t("Text")}
      className={`panel flex min-h-64 flex-col ${over ? "outline-accent outline-2" : ""}`}
      onDragOver={dragged}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <header className="flex items-center justify-between gap-2 px-3 pt-2.5">
        <h2 className="text-sm font-semibold">{t("Text")}</h2>
        <div className="flex gap-1">
          <input
            ref={picker}
            type="file"
            className="hidden"
            aria-label={t("Text file")}
            onChange={(event) => void take(event.target.files?.[0])}
          />
          <Button kind="bare" small icon="file" onClick={() => picker.current?.click()}>
            {t("File")}
          </Button>
          <Menu
            trigger={
              <Button kind="bare" small icon="book">
                {t("Examples")}
              </Button>
            }
          >
            {examples.map((example) => (
              <MenuItem key={example.name} onSelect={() => onExample(example)}>
                {example.name}
                <span className="text-soft block text-xs">{example.about}</span>
              </MenuItem>
            ))}
          </Menu>
        </div>
      </header>
      <textarea
        aria-label={t("Text to judge")}
        dir="auto"
        value={evidence}
        onChange={(event) => onChange(event.target.value)}
        placeholder={t("Paste the text to judge, or drop a file here.")}
        className="mx-1 my-0.5 min-h-40 flex-1 resize-none rounded-md bg-transparent px-2 py-1.5 leading-relaxed outline-offset-0"
      />
      {error ? (
        <div className="px-3 pb-2">
          <Notice tone="bad">{error}</Notice>
        </div>
      ) : null}
      <footer className="text-soft number flex flex-wrap items-center gap-x-3 gap-y-1 px-3 pb-2.5 text-xs">
        <span className="max-sm:hidden">
          {tn(evidence.length, "{count} character", "{count} characters")}
        </span>
        {context ? <ContextMeter {...context} /> : null}
        <button
          type="button"
          className="hover:text-ink ms-auto underline disabled:invisible"
          disabled={evidence === ""}
          onClick={() => onReplace("", t("The text was cleared."))}
        >
          {t("Clear")}
        </button>
      </footer>
    </section>
  )
}

async function readText(file: File): Promise<{ text: string } | { error: string }> {
  if (file.size > LIMITS.evidenceBytesMax)
    return { error: t("{name} is larger than 4 MiB, the most that a text can be.", { name: file.name }) }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()) }
  } catch {
    return {
      error: t("{name} is not text. Umpire judges text: convert the file first.", { name: file.name }),
    }
  }
}
