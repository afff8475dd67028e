/** The requests that this browser made lately, so that each can be looked up again; kept in the browser and nowhere else. */

interface RecentSequence {
  readonly id: string
  readonly orgId: string
  readonly at: number
  /** The first words of what was asked. */
  readonly about: string
}

const entry = "umpire.sequences"
const entriesMax = 40
const aboutCharactersMax = 80

export function recentSequences(orgId: string): RecentSequence[] {
  return stored().filter((one) => one.orgId === orgId)
}

export function rememberSequence(id: string, orgId: string, about: string): void {
  const words = about.trim().replaceAll(/\s+/g, " ").slice(0, aboutCharactersMax)
  const entries = [{ id, orgId, at: Date.now(), about: words }, ...stored()].slice(0, entriesMax)
  try {
    localStorage.setItem(entry, JSON.stringify(entries))
  } catch {
    // A full or forbidden storage loses the convenience, not the page.
    localStorage.removeItem(entry)
  }
}

export function forgetSequences(): void {
  localStorage.removeItem(entry)
}

/** What is not of this form was written by another version, or by somebody's hand. */
function stored(): RecentSequence[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(entry) ?? "[]")
    return Array.isArray(found) ? found.filter(isRecent) : []
  } catch {
    return []
  }
}

function isRecent(given: unknown): given is RecentSequence {
  const { id, orgId, at, about } = (given ?? {}) as Partial<Record<keyof RecentSequence, unknown>>
  return (
    typeof id === "string" && typeof orgId === "string" && typeof at === "number" && typeof about === "string"
  )
}
