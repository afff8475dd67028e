/** Says plainly what the model is that one chats with, and offers to connect a better one. */
import { type ReactNode, useState } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { ConnectDialog } from "../models/connect-dialog.tsx"
import { Button } from "../parts/button.tsx"
import { Notice } from "../parts/page.tsx"
import { t } from "../i18n/translate.ts"

const shippedModel = "smollm2-135m-instruct"

export function ShippedModelNotice({
  model,
  models,
  onConnected,
}: {
  model: string
  models: readonly OrgModel[]
  onConnected: (sku: string) => void
}): ReactNode {
  const [connecting, setConnecting] = useState(false)
  const found = models.find(({ model_sku }) => model_sku === model)
  const isMissing = models.length > 0 && model === ""
  // An alias of the shipped one is as good as that.
  const isShipped = model === shippedModel || found?.virtual?.alias === shippedModel
  if (!isShipped && !isMissing)
    return found?.description ? <p className="text-soft text-xs wrap-anywhere">{found.description}</p> : null
  return (
    <>
      <Notice
        tone="info"
        action={
          <Button small onClick={() => setConnecting(true)}>
            {t("Connect a better model")}
          </Button>
        }
      >
        {isMissing
          ? t(
              "No model here can chat. Connect one: Ollama, llama-server, vLLM, OpenAI, Anthropic and others.",
            )
          : t(
              "{shippedModel} ships with Umpire to try the API without a download. With 135 million weights it writes fluent English and follows simple requests; facts, sums and long answers are often wrong.",
              { shippedModel },
            )}
      </Notice>
      {connecting ? <ConnectDialog onClose={() => setConnecting(false)} onConnected={onConnected} /> : null}
    </>
  )
}
