/** `umpire billing`: credits and adjusts accounts, shows their ledger, and checks that every sum agrees. */
import { dollarText } from "../base/money.ts"
import type { OutputOf } from "../contract/endpoint.ts"
import type { BillingOperatorTable } from "../contract/operator.ts"
import { operatorCommand, operates } from "./actions.ts"
import { UsageError, valueOption } from "./command.ts"
import { columns } from "./table.ts"

type Verdict = OutputOf<BillingOperatorTable["verifyBilling"]>

const exitFailure = 1
const account = { account: "account" } as const

const move = (endpoint: "creditAccount" | "adjustAccount") =>
  operates(endpoint, {
    fields: {
      ...account,
      cents: { field: "cents", ask: "how much? --cents takes whole cents" },
      reason: { field: "reason", ask: "why? say so with --reason" },
      reference: "reference",
    },
    draw: (moved) =>
      `${moved.billing_account_id}: ${dollarText(moved.amount_cents)} entered as ${moved.reference}; the balance is ${dollarText(moved.balance_cents)}.\n`,
  })

export const billing = operatorCommand({
  usage: [
    "umpire billing credit --cents 5000 --reason 'goodwill' [--account ba_...]",
    "umpire billing adjust --cents=-250 --reason 'double booking of 3 May' [--account ba_...]",
    "umpire billing ledger [--account ba_...] [--limit 50]",
    "umpire billing set [--mode postpaid] [--provider stripe] [--account ba_...]",
    "umpire billing verify",
    "umpire billing release gw_...",
  ],
  options: {
    account: valueOption(
      "the billing account, or an organization that it pays for; needed where there are several",
      "a",
    ),
    cents: valueOption("whole cents; negative reduces the balance"),
    reason: valueOption("the reason, recorded in the ledger and in the audit log", "r"),
    reference: valueOption("idempotency key: a repeated command with the same reference changes nothing"),
    limit: valueOption("entries to show"),
    mode: valueOption("prepaid or postpaid"),
    provider: valueOption("local or stripe; the payment method must be entered again"),
  },
  actions: {
    credit: move("creditAccount"),
    adjust: move("adjustAccount"),
    ledger: operates("listLedger", {
      fields: { ...account, limit: "limit" },
      draw: ({ entries }) => drawLedger(entries),
    }),
    set: operates("setAccount", {
      fields: { ...account, mode: "mode", provider: "provider" },
      input({ values: { mode, provider } }) {
        if (mode === undefined && provider === undefined)
          throw new UsageError("set what? --mode or --provider")
        return {}
      },
      draw: (set) => `${set.billing_account_id} is ${set.mode}, paid through ${set.provider}.\n`,
    }),
    verify: operates("verifyBilling", { draw: drawVerdict, status: ({ ok }) => (ok ? 0 : exitFailure) }),
    release: operates("releaseGateway", {
      args: { gateway: "which gateway? umpire billing release gw_..." },
      draw: ({ gateway, released_cents }) => `${gateway} no longer holds ${dollarText(released_cents)}.\n`,
    }),
  },
})

const drawLedger = columns<OutputOf<BillingOperatorTable["listLedger"]>["entries"][number]>({
  at: ({ at }) => at,
  kind: ({ kind }) => kind,
  amount: ({ amount_cents }) => dollarText(amount_cents),
  for: ({ kind, sequences, model, reference }) =>
    kind === "usage" ? `${sequences ?? 0} x ${model ?? ""}` : reference,
  note: ({ note }) => note ?? "",
})

const drawAccounts = columns<Verdict["accounts"][number]>({
  account: ({ billing_account_id }) => billing_account_id,
  balance: ({ balance_cents }) => dollarText(balance_cents),
  used: ({ usage_cents }) => dollarText(usage_cents),
  held: ({ held_cents }) => dollarText(held_cents),
})

function drawVerdict({ ok, problems, notes, accounts }: Verdict): string {
  const verdict = ok
    ? "Every balance is the sum of its ledger, the journal is drained, no lease is leaked.\n"
    : problems.map((problem) => `PROBLEM  ${problem}\n`).join("")
  return `${drawAccounts(accounts)}\n${verdict}${notes.map((note) => `NOTE  ${note}\n`).join("")}`
}
