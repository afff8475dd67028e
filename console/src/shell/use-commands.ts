/** The commands of the organization of the page: its pages, what the user may do, its keys, people and requests. */
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { recentSequences } from "../analytics/recent.ts"
import { api } from "../api.ts"
import { ago } from "../parts/format.ts"
import {
  modelsQuery,
  organizationsQuery,
  signOut,
  useBrowserStorage,
  useIsOwner,
  useOrganization,
} from "../session.ts"
import { chooseTheme } from "../theme.ts"
import type { Command } from "./commands.ts"
import { type Place, placesFor } from "./places.ts"
import { t } from "../i18n/translate.ts"

/** As many as the API gives at once; more are found on their pages. */
const listedMax = 200
const sequenceForm = /^seq_\w+$/
/** Callers choose request ids; what has a digit and no space may be one. */
const requestForm = /^(?!seq_)(?=.*\d)[\w.:-]{8,128}$/

type Go = (to: Place["to"], search?: Record<string, unknown>) => void

interface Dialogs {
  readonly createOrganization: () => void
  readonly showShortcuts: () => void
}

export function useCommands(text: string, dialogs: Dialogs): readonly Command[] {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const go: Go = (to, search = {}) =>
    void navigate({ to: to as "/o/$orgId/audit", params: { orgId }, search })
  const openSequence = (seqId: string): void =>
    void navigate({ to: "/o/$orgId/requests/$seqId", params: { orgId, seqId } })
  const storage = useBrowserStorage()
  const typed = text.trim()
  return [
    ...useActions(go, dialogs),
    ...usePageCommands(go, () => void navigate({ to: "/docs" })),
    ...useOrganizationCommands(),
    ...useListed(go),
    ...useSetCommands(),
    ...recentSequences(storage).map(({ id, about, at }): Command => ({
      id,
      name: about || id,
      detail: about ? `${id} · ${ago(new Date(at).toISOString())}` : id,
      kind: "Request",
      icon: "clock",
      quiet: true,
      run: () => openSequence(id),
    })),
    ...(sequenceForm.test(typed)
      ? [
          {
            id: `open ${typed}`,
            name: t("Open {typed}", { typed }),
            kind: "Request",
            icon: "search",
            run: () => openSequence(typed),
          } as const,
        ]
      : []),
    ...(requestForm.test(typed)
      ? [
          {
            id: `requests ${typed}`,
            name: t("Requests with id {typed}", { typed }),
            kind: "Request",
            icon: "inbox",
            run: () => go("/o/$orgId/requests", { range: "all", request_id: typed }),
          } as const,
        ]
      : []),
  ]
}

function usePageCommands(go: Go, openReference: () => void): readonly Command[] {
  const pages = placesFor(useOrganization().role).flatMap(({ items }): readonly Place[] => items)
  return [
    ...pages.map(({ to, name, icon, also }): Command => ({
      id: to,
      name,
      icon,
      kind: "Page",
      ...(also ? { also } : {}),
      run: () => go(to),
    })),
    {
      id: "docs",
      name: t("API reference"),
      kind: "Page",
      icon: "book",
      also: "docs openapi",
      run: openReference,
    },
  ]
}

function action(name: string, icon: Command["icon"], run: () => void, also: string): Command {
  return { id: name, name, kind: "Action", icon, also, run }
}

function useActions(go: Go, { createOrganization, showShortcuts }: Dialogs): readonly Command[] {
  const owner = useIsOwner()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const dark = document.documentElement.dataset["theme"] === "dark"
  const open = { open: "create" }
  return [
    action(t("Create key"), "key", () => go("/o/$orgId/keys", open), "new api secret token"),
    ...(owner
      ? [
          action(t("Invite someone"), "people", () => go("/o/$orgId/members", open), "new member user email"),
          action(t("Add credit"), "card", () => go("/o/$orgId/billing", open), "pay refill buy balance"),
          action(
            t("Add identity provider"),
            "badge",
            () => go("/o/$orgId/identity", open),
            "oidc x509 trust",
          ),
        ]
      : []),
    action(t("New batch"), "stack", () => go("/o/$orgId/batches/new"), "table csv upload rows label"),
    action(t("New question set"), "cards", () => go("/o/$orgId/sets", open), "create questions"),
    action(t("Create organization"), "plus", createOrganization, "new company team"),
    action(t("Keyboard shortcuts"), "list", showShortcuts, "keys help"),
    action(t("Set password"), "gear", () => go("/o/$orgId/settings"), "change"),
    action(
      dark ? t("Switch to light") : t("Switch to dark"),
      dark ? "sun" : "moon",
      () => chooseTheme(dark ? "light" : "dark"),
      "theme appearance",
    ),
    action(
      t("Sign out"),
      "out",
      () => void signOut(queries).then(() => navigate({ to: "/sign-in" })),
      "log leave",
    ),
  ]
}

function useOrganizationCommands(): readonly Command[] {
  const { id: current } = useOrganization()
  const navigate = useNavigate()
  return useSuspenseQuery(organizationsQuery)
    .data.filter(({ id }) => id !== current)
    .map(({ id, name }) => ({
      id,
      name,
      kind: "Organization",
      icon: "split",
      also: "switch to",
      quiet: true,
      run: () => void navigate({ to: "/o/$orgId/playground", params: { orgId: id } }),
    }))
}

function useSetCommands(): readonly Command[] {
  const { id: org_id } = useOrganization()
  const navigate = useNavigate()
  const sets = useQuery({
    queryKey: ["sets", org_id, "all"],
    queryFn: async () =>
      (await api.listQuestionSets({ params: { org_id }, query: { limit: listedMax } })).data,
  })
  return (sets.data ?? []).map(({ id, name, description }): Command => ({
    id,
    name,
    ...(description ? { detail: description } : {}),
    kind: "Question set",
    icon: "cards",
    quiet: true,
    run: () =>
      void navigate({ to: "/o/$orgId/sets/$setName", params: { orgId: org_id, setName: name }, search: {} }),
  }))
}

/** What is still being fetched is missing, and appears when it has come. */
function useListed(go: Go): readonly Command[] {
  const { id: org_id } = useOrganization()
  const page = { params: { org_id }, query: { limit: listedMax } }
  const keys = useQuery({
    queryKey: ["keys", org_id, "all"],
    queryFn: async () => (await api.listApiKeys(page)).data,
  })
  const members = useQuery({
    queryKey: ["members", org_id, "all"],
    queryFn: async () => (await api.listMembers(page)).data,
  })
  const models = useQuery(modelsQuery(org_id))
  return [
    ...(keys.data ?? []).map(({ id, name }): Command => ({
      id,
      name,
      detail: id,
      kind: "API key",
      icon: "key",
      quiet: true,
      run: () => go("/o/$orgId/keys", { show: id }),
    })),
    ...(members.data ?? []).map(({ user_id, name, email }): Command => ({
      id: user_id,
      name: name ?? email,
      ...(name ? { detail: email } : {}),
      kind: "Person",
      icon: "people",
      quiet: true,
      run: () => go("/o/$orgId/members", { show: user_id }),
    })),
    ...(models.data ?? []).map(({ model_sku, developer }): Command => ({
      id: model_sku,
      name: model_sku,
      ...(developer ? { detail: developer } : {}),
      kind: "Model",
      icon: "layers",
      quiet: true,
      run: () => go("/o/$orgId/models"),
    })),
  ]
}
