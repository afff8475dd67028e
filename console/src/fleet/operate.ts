/** The operator's operations as the fleet page calls them: by a session that its link opens once. */
import { FleetState } from "../../../src/contract/fleet-report.ts"
import { t } from "../i18n/translate.ts"

/** Of this tab alone; it ends with `umpire fleet`. */
const entry = "umpire.fleet"

/** The link is exchanged as soon as the page is there, and leaves its address. */
async function exchangeLink(): Promise<string | null> {
  const link = location.hash.slice(1)
  if (link === "") return sessionStorage.getItem(entry)
  history.replaceState(null, "", "/")
  try {
    const { session } = (await post("/session", link, null)) as { session: string }
    sessionStorage.setItem(entry, session)
    return session
  } catch (error) {
    // A link that was used does not end the session that the tab has.
    const kept = sessionStorage.getItem(entry)
    if (kept === null) throw error
    return kept
  }
}

let opening: Promise<string | null> | undefined
// Another link, pasted into the open page.
addEventListener("hashchange", () => {
  opening = undefined
})

async function operate(operation: string, input: unknown): Promise<unknown> {
  opening ??= exchangeLink()
  const session = await opening
  if (session === null) throw new Error(t("Run umpire fleet, and open the link that it prints."))
  const { result } = (await post(`/operations/${operation}`, session, input)) as { result: unknown }
  return result
}

async function post(path: string, bearer: string, input: unknown): Promise<unknown> {
  const response = await fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify(input),
  }).catch((cause: unknown) => {
    throw new Error("umpire fleet does not answer: it was stopped, or its server was.", { cause })
  })
  const body: unknown = await response.json()
  if (response.ok) return body
  const { error } = body as { error?: { message?: string } }
  throw new Error(error?.message ?? t("The answer was {status}.", { status: response.status }))
}

export const readFleet = async (): Promise<FleetState> => FleetState.parse(await operate("fleet", null))

export const setDrained = async (worker: string, drained: boolean): Promise<unknown> =>
  await operate(drained ? "workers.drain" : "workers.undrain", { worker })
