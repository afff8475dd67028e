/** Who is signed in, in which organizations, and which of them the page is about. */
import { type QueryClient, queryOptions, useQuery, useSuspenseQuery } from "@tanstack/react-query"
import { useParams } from "@tanstack/react-router"
import { useMemo } from "react"
import type { CurrentSession } from "../../src/contract/platform/sessions.ts"
import type { OrganizationItem } from "../../src/contract/platform/organizations.ts"
import { type Permission, isOwner, permissionsOfRole } from "../../src/contract/access.ts"
import { ClientError, api } from "./api.ts"
import { sessionClosed, sessionOpened } from "./connection.ts"
import { type BrowserStorage, browserStorage, clearBrowserStorage } from "./parts/storage.ts"
import { t } from "./i18n/translate.ts"

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  staleTime: 60_000,
  queryFn: async (): Promise<CurrentSession | null> => {
    try {
      const session = await api.getSession()
      sessionOpened()
      return session
    } catch (error) {
      if (error instanceof ClientError && error.status === 401) return null
      throw error
    }
  },
})

export const organizationsQuery = queryOptions({
  queryKey: ["organizations"],
  staleTime: 60_000,
  queryFn: async () => await api.listOrganizations(),
})

export const modelsQuery = (orgId: string) =>
  queryOptions({
    queryKey: ["models", orgId],
    staleTime: 30_000,
    queryFn: async () => await api.listOrganizationModels({ params: { org_id: orgId } }),
  })

export function useSession(): CurrentSession | null {
  return useQuery(sessionQuery).data ?? null
}

/** The organization in the address of the page. Its layout has loaded the list before any page shows. */
export function useOrganization(): OrganizationItem {
  const { orgId } = useParams({ strict: false })
  const { data } = useSuspenseQuery(organizationsQuery)
  const found = data.find(({ id }) => id === orgId)
  if (!found) throw new Error(t("This organization does not exist, or you are not a member of it."))
  return found
}

export const useIsOwner = (): boolean => isOwner(useOrganization().role)

/** Whether the role of this user in the organization permits it. */
export const useMay = (permission: Permission): boolean =>
  permissionsOfRole(useOrganization().role).includes(permission)

/** What the signed-in user keeps in this browser for the organization of the page. */
export function useBrowserStorage(): BrowserStorage {
  const userId = useSession()?.user.id ?? ""
  const { id } = useOrganization()
  return useMemo(() => browserStorage(userId, id, localStorage), [userId, id])
}

/** The same for this tab alone. */
export function useTabStorage(): BrowserStorage {
  const userId = useSession()?.user.id ?? ""
  const { id } = useOrganization()
  return useMemo(() => browserStorage(userId, id, sessionStorage), [userId, id])
}

const lastEntry = "umpire.organization"
const lastOrganization = (): string | null => localStorage.getItem(lastEntry)
export const rememberOrganization = (orgId: string): void => localStorage.setItem(lastEntry, orgId)

/** Where the console opens: the organization of last time, else the personal one. */
export function homeOrganization(organizations: readonly OrganizationItem[]): OrganizationItem | undefined {
  const last = lastOrganization()
  return (
    organizations.find(({ id }) => id === last) ??
    organizations.find(({ is_personal }) => is_personal) ??
    organizations[0]
  )
}

const skippedEntry = "umpire.setup-skipped"
/** For this tab: the first-run screen comes back with the next visit. */
export const skipSetup = (): void => sessionStorage.setItem(skippedEntry, "1")
export const setupSkipped = (): boolean => sessionStorage.getItem(skippedEntry) !== null

const cleanups = new Set<() => void>()
/** What a module holds of the user beyond the storage is dropped when they sign out. */
export const atSignOut = (cleanup: () => void): void => void cleanups.add(cleanup)

export async function signOut(queries: QueryClient): Promise<void> {
  sessionClosed()
  clearBrowserStorage()
  for (const cleanup of cleanups) cleanup()
  await api.deleteSession()
  queries.clear()
  // The page may have opened storage again while it was still shown.
  clearBrowserStorage()
}
