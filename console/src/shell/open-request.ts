/** What an address asks of a page: `open=create` opens its form once, `show=<id>` marks a row. */
import { useNavigate, useSearch } from "@tanstack/react-router"
import { useEffect } from "react"

export interface PageRequest {
  readonly open?: "create"
  readonly show?: string
}

export const readPageRequest = (search: Record<string, unknown>): PageRequest => ({
  ...(search["open"] === "create" ? { open: "create" as const } : {}),
  ...(typeof search["show"] === "string" ? { show: search["show"] } : {}),
})

/** The address is tidied, so that the way back does not open the form again. */
export function useOpenRequest(open: () => void): void {
  const asked = useSearch({ strict: false }).open === "create"
  const navigate = useNavigate()
  useEffect(() => {
    if (!asked) return
    open()
    void navigate({ to: ".", search: {}, replace: true })
    // `open` is made anew with every drawing; only the address counts.
  }, [asked])
}

export function useShown(): string | null {
  const { show } = useSearch({ strict: false })
  return typeof show === "string" ? show : null
}
