/** The second step of a sign-in: the code of an authenticator app, asked for once the first step was right. */
import type { ReactNode } from "react"
import { ClientError } from "../api.ts"
import { TextField } from "../parts/field.tsx"
import { t } from "../i18n/translate.ts"

/** False where the first step was right and a code is needed too. */
export async function isSignedIn(signing: Promise<unknown>): Promise<boolean> {
  try {
    await signing
    return true
  } catch (error) {
    if (error instanceof ClientError && error.code === "second_factor_required") return false
    throw error
  }
}

export function CodeField({
  value,
  onText,
  hint = t(
    "Six digits of the app, or a recovery code. Lost both? Your operator removes the second step with umpire users reset.",
  ),
}: {
  value: string
  onText: (text: string) => void
  hint?: string
}): ReactNode {
  return (
    <TextField
      label={t("Code of your authenticator app")}
      autoComplete="one-time-code"
      autoCapitalize="none"
      spellCheck={false}
      required
      autoFocus
      minLength={6}
      maxLength={32}
      hint={hint}
      value={value}
      onChange={(event) => onText(event.target.value)}
    />
  )
}
