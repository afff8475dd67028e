/** How much of the model's context the request takes, by estimate, while it is written. */
import type { ReactNode } from "react"
import { count } from "../parts/format.ts"
import { t } from "../i18n/translate.ts"

export interface ContextUse {
  readonly tokens: number
  readonly tokensMax: number
  readonly model: string
}

export function ContextMeter({ tokens, tokensMax, model }: ContextUse): ReactNode {
  const over = tokens > tokensMax
  const words = t("About {tokens} of {tokensMax} tokens", {
    tokens: count(tokens),
    tokensMax: count(tokensMax),
  })
  return (
    <>
      <span className={`flex items-center gap-1.5 ${over ? "text-bad font-medium" : ""}`}>
        <span
          role="meter"
          aria-label={t("Context used")}
          aria-valuemin={0}
          aria-valuemax={tokensMax}
          aria-valuenow={Math.min(tokens, tokensMax)}
          aria-valuetext={words}
          className="bg-sunken h-1.5 w-10 overflow-hidden rounded-full"
        >
          <span
            className={`block h-full rounded-full ${over ? "bg-bad" : "bg-bar"}`}
            style={{ width: `${Math.min(100, (tokens / tokensMax) * 100)}%` }}
          />
        </span>
        {words}
      </span>
      {over ? (
        <p role="status" className="text-bad basis-full">
          {t(
            "This is more than {model} can read at once and will be refused. Shorten the text, or choose a model with a longer context.",
            { model },
          )}
        </p>
      ) : null}
    </>
  )
}
