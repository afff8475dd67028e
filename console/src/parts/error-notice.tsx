/** A failed request as a notice; nothing where nothing failed. */
import type { ReactNode } from "react"
import { ErrorText } from "./error-text.tsx"
import { Notice } from "./page.tsx"

export function ErrorNotice({ error }: { error: unknown }): ReactNode {
  if (!error) return null
  return (
    <Notice tone="bad">
      <ErrorText error={error} />
    </Notice>
  )
}
