/** A session that ends under an open page: sign in again where you are, and nothing typed is lost. */
import { useQueryClient } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { api } from "../api.ts"
import { sessionOpened, useConnection } from "../connection.ts"
import { Dialog } from "../parts/dialog.tsx"
import { useSession } from "../session.ts"
import { SignInForm } from "./sign-in-form.tsx"
import { t } from "../i18n/translate.ts"

export function SessionEnded(): ReactNode {
  const { session } = useConnection()
  const known = useSession()
  const queries = useQueryClient()
  if (session !== "ended") return null
  const resume = async (): Promise<void> => {
    const { user } = await api.getSession()
    // Someone else must not see what this user had open.
    if (user.id !== known?.user.id) return location.assign("/")
    sessionOpened()
    await queries.invalidateQueries()
  }
  return (
    <Dialog title={t("Your session has ended")} closable={false} onClose={() => undefined}>
      <p className="text-soft mb-4 text-sm">{t("Sign in to continue. What you typed is still here.")}</p>
      <SignInForm email={known?.user.email ?? ""} onDone={() => void resume()} />
    </Dialog>
  )
}
