/** The evidence: pasted, dropped as a file, or taken from an example. */
import { type DragEvent, type ReactNode, useRef, useState } from "react"
import { Button } from "../parts/button.tsx"
import { count } from "../parts/format.ts"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { Notice } from "../parts/page.tsx"
import { examples } from "./examples.ts"
import type { Draft } from "./draft.ts"

/** What the contract accepts as combined input. */
const evidenceBytesMax = 4 * 1024 * 1024

export function EvidencePane({
  evidence,
  onChange,
  onExample,
}: {
  evidence: string
  onChange: (evidence: string) => void
  onExample: (example: Pick<Draft, "evidence" | "questions">) => void
}): ReactNode {
  const [over, setOver] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const picker = useRef<HTMLInputElement>(null)
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return
    const found = await readText(file)
    setError("error" in found ? found.error : null)
    if ("text" in found) onChange(found.text)
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
      aria-label="Evidence"
      className={`panel flex min-h-72 flex-col ${over ? "outline-accent outline-2" : ""}`}
      onDragOver={dragged}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <header className="flex items-center justify-between gap-2 px-3 pt-2.5">
        <h2 className="text-sm font-semibold">Evidence</h2>
        <div className="flex gap-1">
          <input
            ref={picker}
            type="file"
            className="hidden"
            aria-label="Evidence file"
            onChange={(event) => void take(event.target.files?.[0])}
          />
          <Button kind="bare" small icon="file" onClick={() => picker.current?.click()}>
            File
          </Button>
          <Menu
            trigger={
              <Button kind="bare" small icon="book">
                Examples
              </Button>
            }
          >
            {examples.map(({ name, about, make }) => (
              <MenuItem key={name} onSelect={() => onExample(make())}>
                {name}
                <span className="text-soft block text-xs">{about}</span>
              </MenuItem>
            ))}
          </Menu>
        </div>
      </header>
      <textarea
        aria-label="Evidence text"
        value={evidence}
        onChange={(event) => onChange(event.target.value)}
        placeholder="Paste the text to judge, or drop a file here."
        className="min-h-52 flex-1 resize-none bg-transparent px-3 py-2 leading-relaxed outline-none"
      />
      {error ? (
        <div className="px-3 pb-2">
          <Notice tone="bad">{error}</Notice>
        </div>
      ) : null}
      <footer className="text-soft number flex justify-between px-3 pb-2.5 text-xs">
        <span>{count(evidence.length)} characters</span>
        {evidence ? (
          <button type="button" className="hover:text-ink underline" onClick={() => onChange("")}>
            Clear
          </button>
        ) : null}
      </footer>
    </section>
  )
}

async function readText(file: File): Promise<{ text: string } | { error: string }> {
  if (file.size > evidenceBytesMax)
    return { error: `${file.name} is larger than 4 MiB, the most that evidence can be.` }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()) }
  } catch {
    return { error: `${file.name} is not text. Umpire judges text: convert the file first.` }
  }
}
