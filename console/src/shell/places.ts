/** The pages of the console, for the sidebar and the command palette. */
import { type Role, isOwner } from "../../../src/contract/access.ts"
import type { IconName } from "../parts/icon.tsx"
import { t } from "../i18n/translate.ts"

export interface Place {
  readonly to: `/o/$orgId/${string}`
  readonly name: string
  readonly icon: IconName
  /** Words under which it is also found. */
  readonly also?: string
  /** Others may not read what is there. */
  readonly ownersOnly?: true
}

const places = [
  {
    group: t("Try"),
    items: [
      {
        to: "/o/$orgId/playground",
        name: t("Playground"),
        icon: "play",
        also: "ask decide decisions systemone",
      },
      {
        to: "/o/$orgId/start",
        name: t("Quick start"),
        icon: "bolt",
        also: "first own data rows paste label teach sample",
      },
      { to: "/o/$orgId/chat", name: t("Chat"), icon: "chat", also: "generate stream conversation" },
      {
        to: "/o/$orgId/evaluate",
        name: t("Evaluate"),
        icon: "target",
        also: "accuracy calibration csv jsonl",
      },
      {
        to: "/o/$orgId/batches",
        name: t("Batches"),
        icon: "stack",
        also: "table csv tsv jsonl file rows label upload",
      },
      {
        to: "/o/$orgId/sets",
        name: t("Question sets"),
        icon: "cards",
        also: "versions examples teach publish threshold abstain",
      },
      { to: "/o/$orgId/review", name: t("Review"), icon: "check", also: "label queue doubtful abstained" },
    ],
  },
  {
    group: t("Monitor"),
    items: [
      {
        to: "/o/$orgId/analytics",
        name: t("Analytics"),
        icon: "chart",
        also: "charts latency errors tokens",
      },
      {
        to: "/o/$orgId/requests",
        name: t("Requests"),
        icon: "inbox",
        also: "log sequences records errors live",
      },
      {
        to: "/o/$orgId/alerts",
        name: t("Alerts"),
        icon: "bell",
        also: "webhooks email rules notifications firing",
      },
      {
        to: "/o/$orgId/billing",
        name: t("Billing"),
        icon: "card",
        also: "credit refill invoices spend limits",
      },
      {
        to: "/o/$orgId/audit",
        name: t("Audit log"),
        icon: "list",
        also: "changes history who",
        ownersOnly: true,
      },
    ],
  },
  {
    group: t("Manage"),
    items: [
      { to: "/o/$orgId/keys", name: t("API keys"), icon: "key", also: "secret rotate token" },
      { to: "/o/$orgId/models", name: t("Models"), icon: "layers", also: "prices access" },
      { to: "/o/$orgId/members", name: t("Members"), icon: "people", also: "invite roles users" },
      {
        to: "/o/$orgId/guardrails",
        name: t("Guardrails"),
        icon: "shield",
        also: "block redact injection moderation safety",
      },
      { to: "/o/$orgId/routing", name: t("Routing"), icon: "route", also: "regions fallback" },
      {
        to: "/o/$orgId/identity",
        name: t("Workload identity"),
        icon: "badge",
        also: "oidc x509 cel federation",
      },
      {
        to: "/o/$orgId/settings",
        name: t("Settings"),
        icon: "gear",
        also: "name retention password content redaction",
      },
    ],
  },
] as const satisfies readonly { readonly group: string; readonly items: readonly Place[] }[]

/** What who only labels, and who only pays, come for. */
const placesOf: Partial<Record<Role, readonly string[]>> = {
  reviewer: [t("Review"), t("Settings")],
  billing: [t("Billing"), t("Analytics"), t("Settings")],
}

/** Those that somebody with the role may read. */
export const placesFor = (role: Role) =>
  places
    .map(({ group, items }) => ({
      group,
      items: items.filter(
        (item) => placesOf[role]?.includes(item.name) ?? (isOwner(role) || !("ownersOnly" in item)),
      ),
    }))
    .filter(({ items }) => items.length > 0)

const homes = { reviewer: "/o/$orgId/review", billing: "/o/$orgId/billing" } as const

export const homeOf = (role: Role) =>
  role === "reviewer" || role === "billing" ? homes[role] : "/o/$orgId/playground"
