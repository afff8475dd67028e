/** The frame around every page of an organization: navigation, search, and banners about server and billing. */
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query"
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router"
import { type ReactNode, Suspense, useEffect, useId, useRef, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Icon } from "../parts/icon.tsx"
import { Menu, MenuHeading, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Loading } from "../parts/page.tsx"
import { organizationsQuery, signOut, useOrganization, useSession } from "../session.ts"
import { chooseTheme, themes, useTheme } from "../theme.ts"
import { PlaceBadge, useBadges } from "./badges.tsx"
import { BillingBanner } from "./billing-banner.tsx"
import { ConnectionBanner } from "./connection-banner.tsx"
import { JumpList } from "./jump-list.tsx"
import { CreateOrganizationDialog } from "./new-organization.tsx"
import { homeOf, placesFor } from "./places.ts"
import { SessionEnded } from "./session-ended.tsx"
import { Shortcuts, isMac, useConsoleKeys } from "./shortcuts.tsx"
import { chooseLanguage, chosenLanguage, languageNames } from "../i18n/language.ts"
import { t } from "../i18n/translate.ts"

export function Layout(): ReactNode {
  const organization = useOrganization()
  const [jumping, setJumping] = useState(false)
  const [creating, setCreating] = useState(false)
  const create = (): void => setCreating(true)
  const [listing, setListing] = useState(false)
  const shortcuts = (): void => setListing(true)
  useConsoleKeys({ search: () => setJumping(true), shortcuts })
  return (
    <div className="flex min-h-dvh max-md:flex-col">
      <a
        href="#page"
        className="bg-accent text-on-accent absolute top-2 start-2 z-50 -translate-y-16 rounded-md px-3 py-2 focus:translate-y-0"
      >
        {t("Skip to the page")}
      </a>
      <aside className="border-line bg-panel sticky top-0 hidden h-dvh w-60 shrink-0 flex-col border-e md:flex">
        <Sidebar onJump={() => setJumping(true)} onCreate={create} onShortcuts={shortcuts} />
      </aside>
      <PhoneBar onJump={() => setJumping(true)} onCreate={create} onShortcuts={shortcuts} />
      <main id="page" tabIndex={-1} className="min-w-0 flex-1 outline-none" key={organization.id}>
        <ConnectionBanner />
        <BillingBanner />
        <Suspense fallback={<Loading label={t("Loading the page")} />}>
          <Outlet />
        </Suspense>
      </main>
      {jumping ? (
        <JumpList onClose={() => setJumping(false)} onCreateOrganization={create} onShortcuts={shortcuts} />
      ) : null}
      {listing ? <Shortcuts onClose={() => setListing(false)} /> : null}
      {creating ? <CreateOrganizationDialog onClose={() => setCreating(false)} /> : null}
      <SessionEnded />
    </div>
  )
}

interface SidebarActions {
  readonly onJump: () => void
  /** Asks for the name of a new organization. */
  readonly onCreate: () => void
  readonly onShortcuts: () => void
}

function Sidebar({ onJump, onCreate, onShortcuts }: SidebarActions): ReactNode {
  const { id, role } = useOrganization()
  const badges = useBadges()
  const ids = useId()
  return (
    <>
      <div className="flex flex-col gap-2 p-3">
        <OrganizationSwitcher onCreate={onCreate} />
        <button
          type="button"
          onClick={onJump}
          className="border-line text-soft hover:border-strong flex h-8 items-center gap-2 rounded-md border px-2 text-xs"
        >
          <Icon name="search" className="size-3.5" />
          <span className="flex-1 text-start">{t("Search")}</span>
          <kbd className="font-sans text-[11px] max-md:hidden">{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
      </div>
      <nav aria-label={t("Pages")} className="scroll-shadow flex-1 overflow-y-auto px-3 pb-1">
        {placesFor(role).map(({ group, items }) => (
          <div key={group} className="mb-3">
            <p className="text-soft px-2 py-1 text-[11px] font-medium tracking-wide uppercase">{group}</p>
            {items.map(({ to, name, icon }) => (
              <Link
                key={to}
                to={to}
                params={{ orgId: id }}
                aria-describedby={badges[to]?.count ? `${ids}${icon}` : undefined}
                className="flex h-[clamp(1.7rem,3.4dvh,2rem)] items-center gap-2.5 rounded-md px-2 text-sm"
                activeProps={{ className: "bg-accent-wash text-accent font-medium" }}
                inactiveProps={{ className: "text-soft hover:bg-sunken hover:text-ink" }}
              >
                <Icon name={icon} />
                <span className="flex-1">{name}</span>
                <PlaceBadge id={`${ids}${icon}`} badge={badges[to]} />
              </Link>
            ))}
          </div>
        ))}
      </nav>
      <div className="border-line flex items-center gap-1 border-t p-3">
        <UserMenu onShortcuts={onShortcuts} />
        <Link
          to="/docs"
          aria-label={t("API reference")}
          title={t("API reference")}
          className="text-soft hover:bg-sunken hover:text-ink grid size-9 place-items-center rounded-md"
        >
          <Icon name="book" />
        </Link>
      </div>
    </>
  )
}

function OrganizationSwitcher({ onCreate }: { onCreate: () => void }): ReactNode {
  const organization = useOrganization()
  const { data } = useSuspenseQuery(organizationsQuery)
  const navigate = useNavigate()
  return (
    <Menu
      align="start"
      trigger={
        <button
          type="button"
          className="hover:bg-sunken flex h-10 w-full min-w-0 items-center gap-2.5 rounded-md px-1.5 text-start"
        >
          <Mark />
          <span className="sr-only">{t("Organization")} </span>
          <span className="min-w-0 flex-1 truncate text-sm font-semibold">{organization.name}</span>
          <span className="sr-only">, {t("switch")}</span>
          <Icon name="down" className="text-soft size-3.5" />
        </button>
      }
    >
      <MenuHeading>{t("Organizations")}</MenuHeading>
      {data.map(({ id, name, role }) => (
        <MenuItem
          key={id}
          checked={id === organization.id}
          onSelect={() => void navigate({ to: homeOf(role), params: { orgId: id } })}
        >
          {name}
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem icon="plus" onSelect={onCreate}>
        {t("Create organization")}
      </MenuItem>
    </Menu>
  )
}

function Mark(): ReactNode {
  return <img src="/icon.svg" alt="" className="size-7 shrink-0" width={28} height={28} />
}

function UserMenu({ onShortcuts }: Pick<SidebarActions, "onShortcuts">): ReactNode {
  const session = useSession()
  const theme = useTheme()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const leave = async (): Promise<void> => {
    await signOut(queries)
    await navigate({ to: "/sign-in" })
  }
  const chosen = chosenLanguage()
  const shown = session?.user.name ?? session?.user.email ?? t("You")
  return (
    <Menu
      align="start"
      trigger={
        <button
          type="button"
          className="hover:bg-sunken flex h-9 min-w-0 flex-1 items-center gap-2 rounded-md px-1.5 text-start"
        >
          <span
            aria-hidden="true"
            className="bg-accent-wash text-accent grid size-6 shrink-0 place-items-center rounded-full text-xs font-semibold uppercase"
          >
            {shown.slice(0, 1)}
          </span>
          <span className="min-w-0 flex-1 truncate text-sm">{shown}</span>
          <span className="sr-only">, {t("account and appearance")}</span>
        </button>
      }
    >
      {session?.user.name ? (
        <>
          <MenuHeading>{session.user.email}</MenuHeading>
          <MenuLine />
        </>
      ) : null}
      {themes.map((one) => (
        <MenuItem
          key={one}
          icon={one === "dark" ? "moon" : one === "light" ? "sun" : "split"}
          checked={one === theme}
          onSelect={() => chooseTheme(one)}
        >
          {one === "system" ? t("System theme") : one === "dark" ? t("Dark theme") : t("Light theme")}
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem checked={chosen === null} onSelect={() => chooseLanguage(null)}>
        {t("Language of the browser")}
      </MenuItem>
      {languageNames.map(([code, name]) => (
        <MenuItem key={code} checked={code === chosen} onSelect={() => chooseLanguage(code)}>
          <span lang={code}>{name}</span>
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem icon="list" onSelect={onShortcuts}>
        {t("Keyboard shortcuts")}
      </MenuItem>
      <MenuItem icon="out" onSelect={() => void leave()}>
        {t("Sign out")}
      </MenuItem>
    </Menu>
  )
}

/** On a phone the sidebar hides behind a button and covers the page while it is open. */
function PhoneBar({ onJump, onCreate, onShortcuts }: SidebarActions): ReactNode {
  const drawer = useRef<HTMLDialogElement>(null)
  const { name } = useOrganization()
  const path = useRouterState({ select: (state) => state.location.pathname })
  useEffect(() => {
    drawer.current?.close()
  }, [path])
  const jump = (): void => {
    drawer.current?.close()
    onJump()
  }
  const create = (): void => {
    drawer.current?.close()
    onCreate()
  }
  const shortcuts = (): void => {
    drawer.current?.close()
    onShortcuts()
  }
  return (
    <header className="border-line bg-panel sticky top-0 z-30 flex h-12 items-center gap-2 border-b px-3 md:hidden">
      <Button
        kind="bare"
        icon="menu"
        aria-label={t("Open the menu")}
        onClick={() => drawer.current?.showModal()}
      />
      <Mark />
      <span className="truncate text-sm font-semibold">{name}</span>
      <dialog
        ref={drawer}
        aria-label={t("Menu")}
        className="bg-panel fixed inset-y-0 start-0 m-0 h-dvh max-h-none w-72 max-w-[85vw] flex-col open:flex"
        onClick={({ target }) => {
          // Beside the menu, or on a link of it: also one to where one is already.
          if (target === drawer.current || (target instanceof Element && target.closest("a")))
            drawer.current?.close()
        }}
      >
        <Sidebar onJump={jump} onCreate={create} onShortcuts={shortcuts} />
      </dialog>
    </header>
  )
}
