/** Knows whether the server answers, and whether the session still stands; every request of the page passes through here. */
import { useSyncExternalStore } from "react"
import { t } from "./i18n/translate.ts"

/** Shows the server that a write comes from this page: another site cannot send it. */
export const csrfHeaders = { "x-umpire-csrf": "1" }

interface Connection {
  readonly server: "answers" | "away" | "back"
  readonly session: "unknown" | "open" | "ended"
}

/** The request did not arrive, or its answer did not. */
class Unreachable extends Error {
  override readonly name = t("Unreachable")
}

const retryMsMin = 500
const retryMsMax = 5_000
const backShownMs = 4_000

let state: Connection = { server: "answers", session: "unknown" }
const watchers = new Set<() => void>()

function change(next: Partial<Connection>): void {
  state = { ...state, ...next }
  for (const watcher of watchers) watcher()
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    () => state,
  )
}

export const sessionOpened = (): void => change({ session: "open" })
export const sessionClosed = (): void => change({ session: "unknown" })

/** Fetches, and notices a server that is gone and a session that has ended. */
export const watchedFetch: typeof fetch = async (input, init) => {
  let response: Response
  try {
    response = await fetch(input, init)
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error
    lost()
    throw new Unreachable(t("Umpire is not answering. Try again in a moment."), { cause: error })
  }
  if (response.status === 401 && state.session === "open") change({ session: "ended" })
  return response
}

function lost(): void {
  if (state.server === "away") return
  change({ server: "away" })
  void comeBack(retryMsMin)
}

/** Asks until the server is ready again, less often each time. */
async function comeBack(waitMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, waitMs))
  const ready = await fetch("/readyz").then(
    ({ ok }) => ok,
    () => false,
  )
  if (!ready) return await comeBack(Math.min(waitMs * 2, retryMsMax))
  change({ server: "back" })
  setTimeout(() => state.server === "back" && change({ server: "answers" }), backShownMs)
}
