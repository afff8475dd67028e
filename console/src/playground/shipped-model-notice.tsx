/** Says plainly what the shipped model is where one chats with it, and how to add a better one. */
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Notice } from "../parts/page.tsx"

const shippedModel = "smollm2-135m-instruct"
const command = "umpire models pull hf:bartowski/Qwen_Qwen3-4B-GGUF:Q4_K_M"

export function ShippedModelNotice({ model }: { model: string }): ReactNode {
  const [adding, setAdding] = useState(false)
  if (model !== shippedModel) return null
  return (
    <>
      <Notice
        tone="info"
        action={
          <Button small onClick={() => setAdding(true)}>
            Add a chat model
          </Button>
        }
      >
        {shippedModel} (135 million parameters, Apache-2.0) ships with Umpire to try the API without a
        download. It writes fluently and is often wrong.
      </Notice>
      {adding ? <AddModel onClose={() => setAdding(false)} /> : null}
    </>
  )
}

function AddModel({ onClose }: { onClose: () => void }): ReactNode {
  return (
    <Dialog title="Add a chat model" onClose={onClose}>
      <div className="flex flex-col gap-4 text-sm">
        <p>Run this on the machine of the server. It downloads a 4-billion-parameter model of 2.5 GB.</p>
        <div className="bg-sunken border-line flex items-center gap-2 rounded-lg border p-2.5">
          <code aria-label="Command" className="min-w-0 flex-1 font-mono text-xs break-all select-all">
            {command}
          </code>
          <CopyButton text={command} label="Copy command" />
        </div>
        <p className="text-soft">
          Any GGUF model works. Models that run elsewhere (vLLM, SGLang, llama-server, Ollama, OpenAI) are
          named under <code className="font-mono">models</code> in the configuration file. Restart the server
          afterwards.
        </p>
        <Button kind="loud" className="self-end" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}
