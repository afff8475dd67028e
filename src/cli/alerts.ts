/** `umpire alerts`: alert rules from the command line. */
import { type AlertChannel, type AlertRule, alertKindSettings, alertKinds } from "../contract/alerts/rules.ts"
import type { Client } from "../contract/client.ts"
import { type Action, apiCommand, calls } from "./actions.ts"
import {
  type CliContext,
  UsageError,
  listOption,
  numberOf,
  numbersBetween,
  oneOf,
  pairOf,
  required,
  show,
  texts,
  valueOption,
} from "./command.ts"
import { columns } from "./table.ts"

const drawRules = columns<AlertRule>({
  rule: ({ id }) => id,
  name: ({ name }) => name,
  kind: ({ kind }) => kind,
  threshold: ({ threshold }) => (threshold === null ? "" : String(threshold)),
  minutes: ({ window_minutes }) => (window_minutes === null ? "" : String(window_minutes)),
  state: ({ enabled, state }) => (enabled ? state : "disabled"),
  tells: ({ channels }) => channels.map(channelName).join(", "),
  detail: ({ detail }) => detail,
})

const channelName = (channel: AlertChannel): string =>
  channel.type === "webhook" ? channel.webhook_id : channel.address

const sendTest: Action<Client> = async (context, connect) => {
  const rule_id = required(context.positionals[1], "which rule? umpire alerts test ar_...")
  const { client, organizationId } = await connect()
  const org_id = await organizationId()
  const { channels } = await client.getAlertRule({ params: { org_id, rule_id } })
  const webhookIds = channels.flatMap((channel) => (channel.type === "webhook" ? [channel.webhook_id] : []))
  if (webhookIds.length === 0) throw new UsageError("the rule tells no webhook, so there is nothing to send")
  const sent: { webhook_id: string; delivery_id: string }[] = []
  for (const webhook_id of webhookIds) {
    const { id } = await client.testWebhook({ params: { org_id, webhook_id } })
    sent.push({ webhook_id, delivery_id: id })
  }
  return show(context, sent, () =>
    sent.map(({ webhook_id, delivery_id }) => `Sent to ${webhook_id} as ${delivery_id}.\n`).join(""),
  )
}

export const alerts = apiCommand({
  usage: [
    "umpire alerts list",
    "umpire alerts create Errors --kind error_rate [--threshold 0.05] [--window 15] [--target model=umpire-decide] [--webhook wh_...] [--email ada@example.com]",
    "umpire alerts delete ar_...",
    "umpire alerts test ar_...",
    "",
    "test sends an event of the type webhook.test to each webhook of the rule; umpire webhooks deliveries says how it went.",
  ],
  options: {
    kind: valueOption(alertKinds.join(", ")),
    threshold: valueOption(
      "in cents, a share of 1, milliseconds, PSI or days, as the kind says (default: the kind's)",
    ),
    window: valueOption("over how many minutes it is measured (default: the kind's)"),
    target: listOption(
      "what it is about: api_key_id=, model=, question_set_id= or question=; may be repeated",
    ),
    webhook: listOption("a webhook to tell; may be repeated"),
    email: listOption("an address to tell; may be repeated"),
  },
  actions: {
    list: calls("listAlertRules", {
      draw: (rules) => (rules.length === 0 ? "There are no alert rules.\n" : drawRules(rules)),
    }),
    create: calls("createAlertRule", {
      args: { name: "which rule? umpire alerts create Errors --kind error_rate" },
      input: ruleOf,
      draw: (rule) => drawRules([rule]),
    }),
    delete: calls("deleteAlertRule", {
      args: { rule_id: "which rule? umpire alerts delete ar_..." },
      json: ({ rule_id }) => ({ id: rule_id, deleted: true }),
      draw: (_, { rule_id }) => `Deleted ${rule_id}.\n`,
    }),
    test: sendTest,
  },
})

function ruleOf(context: CliContext): object {
  const kind = required(oneOf(context, "kind", alertKinds), `--kind takes one of ${alertKinds.join(", ")}`)
  const { threshold: bounds, windowMinutes } = alertKindSettings[kind]
  const threshold = boundedBy(context, "threshold", { kind, bounds })
  const minutes = windowMinutes && { ...windowMinutes, unit: "minutes" as const }
  const window_minutes = boundedBy(context, "window", { kind, bounds: minutes })
  return {
    kind,
    ...(threshold === undefined ? {} : { threshold }),
    ...(window_minutes === undefined ? {} : { window_minutes }),
    // The server says which of them the kind takes.
    target: Object.fromEntries(
      texts(context, "target").map((pair) =>
        pairOf(pair, "--target takes name=value, such as model=umpire-decide"),
      ),
    ),
    channels: [
      ...texts(context, "webhook").map((webhook_id) => ({ type: "webhook", webhook_id })),
      ...texts(context, "email").map((address) => ({ type: "email", address })),
    ],
  }
}

const units = {
  cents: "in cents",
  share: "a share of 1",
  ms: "in milliseconds",
  psi: "a PSI",
  days: "in days",
  minutes: "in minutes",
} as const

interface BoundedKind {
  readonly kind: string
  readonly bounds: { readonly min: number; readonly max: number; readonly unit: keyof typeof units } | null
}

/** What a kind has no bounds for, it does not take. */
function boundedBy(context: CliContext, option: string, { kind, bounds }: BoundedKind): number | undefined {
  const given = numberOf(context, option)
  if (given === undefined) return undefined
  if (bounds === null) throw new UsageError(`a rule of the kind ${kind} has no --${option}`)
  const { takes, fits } = numbersBetween(bounds.min, bounds.max)
  return numberOf(context, option, { fits, takes: `${takes} for the kind ${kind}, ${units[bounds.unit]}` })
}
