/** The pages of the console, for the sidebar and the command palette. */
import { type Role, isOwner } from "../../../src/contract/access.ts"
import type { IconName } from "../parts/icon.tsx"

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
    group: "Try",
    items: [
      {
        to: "/o/$orgId/playground",
        name: "Playground",
        icon: "play",
        also: "ask decide decisions systemone",
      },
      {
        to: "/o/$orgId/start",
        name: "Quick start",
        icon: "bolt",
        also: "first own data rows paste label teach sample",
      },
      { to: "/o/$orgId/chat", name: "Chat", icon: "chat", also: "generate stream conversation" },
      { to: "/o/$orgId/evaluate", name: "Evaluate", icon: "target", also: "accuracy calibration csv jsonl" },
      {
        to: "/o/$orgId/batches",
        name: "Batches",
        icon: "stack",
        also: "table csv tsv jsonl file rows label upload",
      },
      {
        to: "/o/$orgId/sets",
        name: "Question sets",
        icon: "cards",
        also: "versions examples teach publish threshold abstain",
      },
      { to: "/o/$orgId/review", name: "Review", icon: "check", also: "label queue doubtful abstained" },
    ],
  },
  {
    group: "Monitor",
    items: [
      { to: "/o/$orgId/analytics", name: "Analytics", icon: "chart", also: "charts latency errors tokens" },
      {
        to: "/o/$orgId/requests",
        name: "Requests",
        icon: "inbox",
        also: "log sequences records errors live",
      },
      {
        to: "/o/$orgId/alerts",
        name: "Alerts",
        icon: "bell",
        also: "webhooks email rules notifications firing",
      },
      { to: "/o/$orgId/billing", name: "Billing", icon: "card", also: "credit refill invoices spend limits" },
      {
        to: "/o/$orgId/audit",
        name: "Audit log",
        icon: "list",
        also: "changes history who",
        ownersOnly: true,
      },
    ],
  },
  {
    group: "Manage",
    items: [
      { to: "/o/$orgId/keys", name: "API keys", icon: "key", also: "secret rotate token" },
      { to: "/o/$orgId/models", name: "Models", icon: "layers", also: "prices access" },
      { to: "/o/$orgId/members", name: "Members", icon: "people", also: "invite roles users" },
      {
        to: "/o/$orgId/guardrails",
        name: "Guardrails",
        icon: "shield",
        also: "block redact injection moderation safety",
      },
      { to: "/o/$orgId/routing", name: "Routing", icon: "route", also: "regions fallback" },
      {
        to: "/o/$orgId/identity",
        name: "Workload identity",
        icon: "badge",
        also: "oidc x509 cel federation",
      },
      {
        to: "/o/$orgId/settings",
        name: "Settings",
        icon: "gear",
        also: "name retention password content redaction",
      },
    ],
  },
] as const satisfies readonly { readonly group: string; readonly items: readonly Place[] }[]

/** What who only labels, and who only pays, come for. */
const placesOf: Partial<Record<Role, readonly string[]>> = {
  reviewer: ["Review", "Settings"],
  billing: ["Billing", "Analytics", "Settings"],
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
