/** The first steps of a new user, each ticked when it is done; gone when all are, or when hidden. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useEffect, useSyncExternalStore } from "react"
import { recentSequences } from "../analytics/recent.ts"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Icon } from "../parts/icon.tsx"
import { watchBrowserStorage } from "../parts/storage.ts"
import { setsKey } from "../sets/set-query.ts"
import { useBrowserStorage, useIsOwner, useOrganization, useSession } from "../session.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const hiddenEntry = "onboarding-hidden"
const refreshMs = 15_000

interface Step {
  readonly name: string
  readonly done: boolean
  /** A page to go to, or something to do here; null where the page itself is the place. */
  readonly to: "/o/$orgId/settings" | "/o/$orgId/start" | "/o/$orgId/keys" | "/o/$orgId/members" | null
  readonly act?: () => void
}

export function Onboarding({ onCode }: { onCode: () => void }): ReactNode {
  const storage = useBrowserStorage()
  const hidden = useSyncExternalStore(watchBrowserStorage, () => storage.read(hiddenEntry) === true)
  const { steps, known } = useSteps(onCode, !hidden)
  const finished = steps.every(({ done }) => done)
  useEffect(() => {
    if (finished && !hidden) storage.write(hiddenEntry, true)
  }, [finished, hidden, storage])
  if (hidden || finished) return null
  const done = steps.filter((step) => step.done).length
  const next = steps.findIndex((step) => !step.done)
  return (
    <section
      aria-label={t("Getting started")}
      aria-busy={!known}
      className="panel relative flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-2 pe-12 text-sm"
    >
      <h2 className="font-semibold whitespace-nowrap">
        <T
          text="Getting started <span>{done} of {steps}</span>"
          done={done}
          steps={steps.length}
          span={(children) => (
            <span className={`text-soft number ms-1 text-xs font-normal ${known ? "" : "invisible"}`}>
              {children}
            </span>
          )}
        />
      </h2>
      <ol className="flex flex-wrap items-center gap-x-3 gap-y-1.5 text-[13px] max-sm:w-full max-sm:flex-col max-sm:items-start">
        {steps.map((step, index) => (
          <li
            key={step.name}
            aria-label={`${step.name}: ${step.done ? t("done") : t("to do")}`}
            className={step.done ? "max-sm:hidden" : undefined}
          >
            <StepView step={step} next={index === next} />
          </li>
        ))}
      </ol>
      <Button
        kind="bare"
        small
        icon="cross"
        className="absolute top-1.5 end-2"
        aria-label={t("Hide getting started")}
        title={t("Hide")}
        onClick={() => storage.write(hiddenEntry, true)}
      />
    </section>
  )
}

function StepView({ step, next }: { step: Step; next: boolean }): ReactNode {
  const { id: orgId } = useOrganization()
  const { name, done, to, act } = step
  const mark = (
    <span
      aria-hidden="true"
      className={`grid size-4 shrink-0 place-items-center rounded-full ${done ? "bg-accent text-on-accent" : "border-strong border"}`}
    >
      {done ? <Icon name="check" className="size-3" /> : null}
    </span>
  )
  const look = `flex items-center gap-1.5 rounded-sm whitespace-nowrap ${done ? "text-soft" : next ? "text-accent" : ""}`
  if (done || (to === null && !act))
    return (
      <span className={look}>
        {mark} {name}
      </span>
    )
  if (to === null)
    return (
      <button type="button" className={`${look} hover:underline`} onClick={act}>
        {mark} {name}
      </button>
    )
  const search = to === "/o/$orgId/keys" || to === "/o/$orgId/members" ? ({ open: "create" } as const) : {}
  return (
    <Link to={to} params={{ orgId }} search={search} className={`${look} hover:underline`}>
      {mark} {name}
    </Link>
  )
}

/** Until it is known what has been done, all stand there as to do: the page below must not move under a pressed button. */
function useSteps(onCode: () => void, wanted: boolean): { steps: readonly Step[]; known: boolean } {
  const { id: org_id, created_at } = useOrganization()
  const session = useSession()
  const owner = useIsOwner()
  const storage = useBrowserStorage()
  const decided = useSyncExternalStore(watchBrowserStorage, () => recentSequences(storage).length > 0)
  const keys = useQuery({
    queryKey: ["keys", org_id, "all"],
    enabled: wanted,
    refetchInterval: refreshMs,
    queryFn: async () => (await api.listApiKeys({ params: { org_id }, query: { limit: 200 } })).data,
  })
  const resources = useQuery({
    queryKey: ["resources", org_id],
    enabled: wanted,
    queryFn: async () => await api.getOrganizationResources({ params: { org_id } }),
  })
  const sets = useQuery({
    queryKey: [...setsKey(org_id), "any"],
    enabled: wanted,
    queryFn: async () =>
      (await api.listQuestionSets({ params: { org_id }, query: { limit: 1 } })).data.length > 0,
  })
  const { members = 1, pending_invitations = 0 } = resources.data?.counts ?? {}
  const used = keys.data?.some(({ last_used_at }) => last_used_at !== null) ?? false
  const steps: readonly Step[] = [
    {
      name: t("Set a password"),
      done: session !== null && (session.has_password || !session.setup_required),
      to: "/o/$orgId/settings",
    },
    { name: t("Make a first decision"), done: decided || used, to: null },
    { name: t("Teach rows"), done: sets.data === true, to: "/o/$orgId/start" },
    {
      // The key that a first start makes is as old as the organization.
      name: t("Create a key"),
      done: keys.data?.some((key) => key.created_at !== created_at) ?? false,
      to: "/o/$orgId/keys",
    },
    { name: t("Run the snippet"), done: used, to: null, act: onCode },
    ...(owner
      ? [
          {
            name: t("Invite someone"),
            done: members > 1 || pending_invitations > 0,
            to: "/o/$orgId/members" as const,
          },
        ]
      : []),
  ]
  const known = [session, keys.data, resources.data, sets.data].every(
    (one) => one !== null && one !== undefined,
  )
  return { steps, known }
}
