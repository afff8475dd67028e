/** `umpire alerts`: alert rules from the command line. */
import {
  type AlertChannel,
  type AlertRule,
  type AlertTarget,
  alertKindSettings,
  alertKinds,
} from "../contract/alerts/rules.ts"
import type { Client } from "../contract/client.ts"
import { connectApi, everyPage } from "./api-client.ts"
import {
  type CliContext,
  type Command,
  UsageError,
  numberOf,
  numbersBetween,
  oneOf,
  pairOf,
  required,
  show,
  texts,
} from "./command.ts"
import { apiHelp, apiOptions } from "./server-options.ts"
import { drawTable } from "./table.ts"

export const alerts: Command = {
  usage: [
    "umpire alerts list",
    "umpire alerts create Errors --kind error_rate [--threshold 0.05] [--window 15] [--target model=umpire-decide]",
    "                     [--webhook wh_...] [--email ada@example.com]",
    "umpire alerts delete ar_...",
    "umpire alerts test ar_...",
    "",
    "test sends an event of the type webhook.test to each webhook of the rule; umpire webhooks deliveries says how it went.",
  ],
  options: {
    kind: { type: "string" },
    threshold: { type: "string" },
    window: { type: "string" },
    target: { type: "string", multiple: true },
    webhook: { type: "string", multiple: true },
    email: { type: "string", multiple: true },
    ...apiOptions,
  },
  optionHelp: {
    kind: alertKinds.join(", "),
    threshold: "in cents, a share of 1, milliseconds, PSI or days, as the kind says (default: the kind's)",
    window: "over how many minutes it is measured (default: the kind's)",
    target: "what it is about: api_key_id=, model=, question_set_id= or question=; may be repeated",
    webhook: "a webhook to tell; may be repeated",
    email: "an address to tell; may be repeated",
    ...apiHelp,
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const [action, name] = context.positionals
  switch (action) {
    case "list":
      return await list(context)
    case "create":
      return await create(
        context,
        required(name, "which rule? umpire alerts create Errors --kind error_rate"),
      )
    case "delete":
      return await remove(context, required(name, "which rule? umpire alerts delete ar_..."))
    case "test":
      return await sendTest(context, required(name, "which rule? umpire alerts test ar_..."))
    default:
      throw new UsageError("say list, create, delete or test")
  }
}

async function list(context: CliContext): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const found = await everyPage((query) => client.listAlertRules({ params: { org_id }, query }))
  return show(context, found, () => (found.length === 0 ? "There are no alert rules.\n" : draw(found)))
}

const draw = (rules: readonly AlertRule[]): string =>
  drawTable(
    ["rule", "name", "kind", "threshold", "minutes", "state", "tells", "detail"],
    rules.map((rule) => [
      rule.id,
      rule.name,
      rule.kind,
      rule.threshold === null ? "" : String(rule.threshold),
      rule.window_minutes === null ? "" : String(rule.window_minutes),
      rule.enabled ? rule.state : "disabled",
      rule.channels.map(channelName).join(", "),
      rule.detail,
    ]),
  )

const channelName = (channel: AlertChannel): string =>
  channel.type === "webhook" ? channel.webhook_id : channel.address

type NewRule = Parameters<Client["createAlertRule"]>[0]["body"]

async function create(context: CliContext, name: string): Promise<number> {
  const kind = required(oneOf(context, "kind", alertKinds), `--kind takes one of ${alertKinds.join(", ")}`)
  const settings = alertKindSettings[kind]
  const threshold = boundedBy(context, "threshold", kind, settings.threshold)
  const window_minutes = boundedBy(
    context,
    "window",
    kind,
    settings.windowMinutes && { ...settings.windowMinutes, unit: "minutes" },
  )
  const body: NewRule = {
    name,
    kind,
    ...(threshold === undefined ? {} : { threshold }),
    ...(window_minutes === undefined ? {} : { window_minutes }),
    target: targetOf(texts(context, "target")),
    channels: [
      ...texts(context, "webhook").map((webhook_id) => ({ type: "webhook" as const, webhook_id })),
      ...texts(context, "email").map((address) => ({ type: "email" as const, address })),
    ],
  }
  const { client, organizationId: org_id } = await connectApi(context)
  const rule = await client.createAlertRule({ params: { org_id }, body })
  return show(context, rule, () => draw([rule]))
}

const units = {
  cents: "in cents",
  share: "a share of 1",
  ms: "in milliseconds",
  psi: "a PSI",
  days: "in days",
  minutes: "in minutes",
} as const

/** What a kind has no bounds for, it does not take. */
function boundedBy(
  context: CliContext,
  option: string,
  kind: string,
  bounds: { readonly min: number; readonly max: number; readonly unit: keyof typeof units } | null,
): number | undefined {
  const given = numberOf(context, option)
  if (given === undefined) return undefined
  if (bounds === null) throw new UsageError(`a rule of the kind ${kind} has no --${option}`)
  const { takes, fits } = numbersBetween(bounds.min, bounds.max)
  return numberOf(context, option, { fits, takes: `${takes} for the kind ${kind}, ${units[bounds.unit]}` })
}

/** The server says which of them the kind takes. */
function targetOf(pairs: readonly string[]): AlertTarget {
  return Object.fromEntries(
    pairs.map((pair) => pairOf(pair, "--target takes name=value, such as model=umpire-decide")),
  )
}

async function remove(context: CliContext, rule_id: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  await client.deleteAlertRule({ params: { org_id, rule_id } })
  return show(context, { id: rule_id, deleted: true }, () => `Deleted ${rule_id}.\n`)
}

async function sendTest(context: CliContext, rule_id: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
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
