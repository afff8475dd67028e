/** `umpire billing`: credits and adjusts accounts, shows their ledger, and checks that every sum agrees. */
import { dollarText } from "../base/money.ts"
import { type CliContext, type Command, UsageError, text } from "./command.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

interface Entry {
  readonly id: string
  readonly at: string
  readonly kind: string
  readonly amount_cents: number
  readonly reference: string
  readonly note: string | null
  readonly model: string | null
  readonly sequences: number | null
}

interface Verdict {
  readonly ok: boolean
  readonly problems: readonly string[]
  readonly notes: readonly string[]
  readonly accounts: readonly {
    readonly billing_account_id: string
    readonly balance_cents: number
    readonly usage_cents: number
    readonly held_cents: number
  }[]
}

const exitFailure = 1

export const billing = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire billing credit --cents 5000 --reason 'goodwill' [--account ba_...]",
    "umpire billing adjust --cents=-250 --reason 'double booking of 3 May' [--account ba_...]",
    "umpire billing ledger [--account ba_...] [--limit 50]",
    "umpire billing set [--mode postpaid] [--provider stripe] [--account ba_...]",
    "umpire billing verify",
    "umpire billing release gw_...",
  ],
  options: {
    account: { type: "string", short: "a" },
    cents: { type: "string" },
    reason: { type: "string", short: "r" },
    reference: { type: "string" },
    limit: { type: "string" },
    mode: { type: "string" },
    provider: { type: "string" },
    json: { type: "boolean" },
  },
  optionHelp: {
    account: "the billing account, or an organization that it pays for; needed where there are several",
    cents: "whole cents; negative reduces the balance",
    reason: "the reason, recorded in the ledger and in the audit log",
    reference: "idempotency key: a repeated command with the same reference changes nothing",
    limit: "entries to show",
    mode: "prepaid or postpaid",
    provider: "local or stripe; the payment method must be entered again",
    json: "print JSON",
  },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, gateway] = context.positionals
  const account = text(context, "account")
  const scope = account === undefined ? {} : { account }
  switch (action) {
    case "credit":
    case "adjust":
      return show(context, await operate(`billing.${action}`, { ...scope, ...move(context) }), drawMove)
    case "ledger":
      return show(context, await operate("billing.ledger", { ...scope, limit: limitOf(context) }), drawLedger)
    case "set":
      return show(context, await operate("billing.set", { ...scope, ...settings(context) }), drawSet)
    case "verify":
      return verify(context, await operate("billing.verify", {}))
    case "release":
      if (!gateway) throw new UsageError("which gateway? umpire billing release gw_...")
      return show(context, await operate("billing.release", { gateway }), drawRelease)
    default:
      throw new UsageError("say credit, adjust, ledger, set, verify or release")
  }
}

function move(context: CliContext): Record<string, unknown> {
  const cents = text(context, "cents")
  const reason = text(context, "reason")
  const reference = text(context, "reference")
  if (cents === undefined || !/^-?\d+$/.test(cents))
    throw new UsageError("how much? --cents takes whole cents")
  if (reason === undefined) throw new UsageError("why? say so with --reason")
  return { cents: Number(cents), reason, ...(reference === undefined ? {} : { reference }) }
}

function settings(context: CliContext): Record<string, unknown> {
  const [mode, provider] = [text(context, "mode"), text(context, "provider")]
  if (mode === undefined && provider === undefined) throw new UsageError("set what? --mode or --provider")
  return { ...(mode === undefined ? {} : { mode }), ...(provider === undefined ? {} : { provider }) }
}

function limitOf(context: CliContext): number {
  const given = text(context, "limit")
  if (given !== undefined && !/^\d+$/.test(given)) throw new UsageError("--limit takes a number")
  return given === undefined ? 50 : Number(given)
}

function show(context: CliContext, result: unknown, draw: (result: unknown) => string): number {
  context.stdout.write(context.values["json"] === true ? `${JSON.stringify(result)}\n` : draw(result))
  return 0
}

function verify(context: CliContext, result: unknown): number {
  show(context, result, drawVerdict)
  // What billing.verify answers.
  return (result as Verdict).ok ? 0 : exitFailure
}

function drawMove(result: unknown): string {
  // What billing.credit and billing.adjust answer.
  const moved = result as {
    billing_account_id: string
    amount_cents: number
    balance_cents: number
    reference: string
  }
  return `${moved.billing_account_id}: ${dollarText(moved.amount_cents)} entered as ${moved.reference}; the balance is ${dollarText(moved.balance_cents)}.\n`
}

function drawSet(result: unknown): string {
  // What billing.set answers.
  const set = result as { billing_account_id: string; mode: string; provider: string }
  return `${set.billing_account_id} is ${set.mode}, paid through ${set.provider}.\n`
}

function drawLedger(result: unknown): string {
  // What billing.ledger answers.
  const rows = (result as { entries: Entry[] }).entries.map((entry) => [
    entry.at,
    entry.kind,
    dollarText(entry.amount_cents),
    entry.kind === "usage" ? `${entry.sequences ?? 0} x ${entry.model ?? ""}` : entry.reference,
    entry.note ?? "",
  ])
  return drawTable(["at", "kind", "amount", "for", "note"], rows)
}

function drawVerdict(result: unknown): string {
  // What billing.verify answers.
  const { ok, problems, notes, accounts } = result as Verdict
  const rows = accounts.map((account) => [
    account.billing_account_id,
    dollarText(account.balance_cents),
    dollarText(account.usage_cents),
    dollarText(account.held_cents),
  ])
  const table = drawTable(["account", "balance", "used", "held"], rows)
  const verdict = ok
    ? "Every balance is the sum of its ledger, the journal is drained, no lease is leaked.\n"
    : problems.map((problem) => `PROBLEM  ${problem}\n`).join("")
  return `${table}\n${verdict}${notes.map((note) => `NOTE  ${note}\n`).join("")}`
}

function drawRelease(result: unknown): string {
  // What billing.release answers.
  const { gateway, released_cents } = result as { gateway: string; released_cents: number }
  return `${gateway} no longer holds ${dollarText(released_cents)}.\n`
}
