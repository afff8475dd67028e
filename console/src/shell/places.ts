/** The pages of the console, for the sidebar and the command palette. */
import type { IconName } from "../parts/icon.tsx"

export interface Place {
  readonly to: `/o/$orgId/${string}`
  readonly name: string
  readonly icon: IconName
  /** Words under which it is also found. */
  readonly also?: string
}

export const places = [
  {
    group: "Try",
    items: [
      {
        to: "/o/$orgId/playground",
        name: "Playground",
        icon: "play",
        also: "ask decide decisions systemone",
      },
      { to: "/o/$orgId/chat", name: "Chat", icon: "chat", also: "generate stream conversation" },
      { to: "/o/$orgId/evaluate", name: "Evaluate", icon: "target", also: "accuracy calibration csv jsonl" },
      {
        to: "/o/$orgId/sets",
        name: "Question sets",
        icon: "cards",
        also: "versions examples teach publish threshold abstain",
      },
    ],
  },
  {
    group: "Monitor",
    items: [
      { to: "/o/$orgId/analytics", name: "Analytics", icon: "chart", also: "requests latency errors tokens" },
      { to: "/o/$orgId/billing", name: "Billing", icon: "card", also: "credit refill invoices spend limits" },
      { to: "/o/$orgId/audit", name: "Audit log", icon: "list", also: "changes history who" },
    ],
  },
  {
    group: "Manage",
    items: [
      { to: "/o/$orgId/keys", name: "API keys", icon: "key", also: "secret rotate token" },
      { to: "/o/$orgId/models", name: "Models", icon: "layers", also: "prices access" },
      { to: "/o/$orgId/members", name: "Members", icon: "people", also: "invite roles users" },
      { to: "/o/$orgId/routing", name: "Routing", icon: "route", also: "regions fallback" },
      {
        to: "/o/$orgId/identity",
        name: "Workload identity",
        icon: "shield",
        also: "oidc x509 cel federation",
      },
      { to: "/o/$orgId/settings", name: "Settings", icon: "gear", also: "name retention password" },
    ],
  },
] as const satisfies readonly { readonly group: string; readonly items: readonly Place[] }[]
