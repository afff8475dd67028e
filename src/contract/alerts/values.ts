/** What the endpoints of alerts and webhooks have in common. */

export const area = "Alerts"
export const surface = "platform"
const principals = ["session", "key"] as const
export const readAccess = { principals, permission: "api-read" } as const
export const writeAccess = { principals, permission: "api-write" } as const
export const administer = { principals, permission: "api-admin" } as const

/** Of an organization, unless said otherwise. */
export const alertLimits = {
  rulesMax: 100,
  webhooksMax: 20,
  channelsPerRuleMax: 10,
  /** Webhook calls and e-mails that wait. */
  pendingDeliveriesMax: 1000,
  nameCharactersMax: 200,
} as const
