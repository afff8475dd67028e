/** Says that the server does not answer, and when it does again. */
import { useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect } from "react"
import { useConnection } from "../connection.ts"
import { Spinner } from "../parts/button.tsx"
import { Icon } from "../parts/icon.tsx"
import { t } from "../i18n/translate.ts"

export function ConnectionBanner(): ReactNode {
  const { server } = useConnection()
  const queries = useQueryClient()
  useEffect(() => {
    if (server === "back") void queries.invalidateQueries()
  }, [server, queries])
  if (server === "answers") return null
  const away = server === "away"
  return (
    <div
      role="status"
      className={`flex items-center justify-center gap-2 px-4 py-2 text-sm ${away ? "bg-warn-wash text-warn" : "bg-accent-wash text-accent"}`}
    >
      {away ? <Spinner /> : <Icon name="check" />}
      {away
        ? t(
            "Umpire is not answering; it may be restarting. Your input is kept, and the page reconnects automatically.",
          )
        : t("Reconnected.")}
    </div>
  )
}
