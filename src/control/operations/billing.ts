/** The operator's commands about money. */
import { z } from "zod"
import { centsExact, fromCents, type Ticks } from "../../base/money.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type BillingAccount,
  findBillingAccount,
  lockBillingAccount,
  updateBillingAccount,
} from "../../store/billing-accounts.ts"
import { listLeases, releaseGateway, sumHeld } from "../../store/leases.ts"
import {
  appendLedger,
  checkLedgers,
  pageLedger,
  type LedgerCheck,
  type LedgerRow,
} from "../../store/ledger.ts"
import type { Sql } from "../../store/sql.ts"
import { auditSystem } from "../billing/parts.ts"
import type { ControlParts } from "../change.ts"
import { type Operations, read } from "./input.ts"

interface BillingOperatorParts extends ControlParts {
  /** Puts into the ledger what this gateway's journal still holds, where it runs, and says what is left. */
  readonly journalState: () => Promise<JournalState>
}

export interface JournalState {
  readonly gatewayId: string | null
  /** Records that are not in the ledger. */
  readonly pendingRecords: number
  /** What is damaged or missing, a sentence each: its usage is not charged. */
  readonly lost: readonly string[]
  /** Writes that a crash ended, a sentence each: they were never acknowledged. */
  readonly unfinished: readonly string[]
}

const centsMax = 100_000_000
const MoveInput = z.strictObject({
  account: z.string().optional(),
  cents: z.int().min(-centsMax).max(centsMax),
  reason: z.string().trim().min(1).max(500),
  reference: z.string().min(1).max(200).optional(),
})
const LedgerInput = z.strictObject({
  account: z.string().optional(),
  limit: z.int().min(1).max(1000).default(50),
  cursor: z.string().optional(),
})
const SetInput = z.strictObject({
  account: z.string().optional(),
  provider: z.enum(["local", "stripe"]).optional(),
  mode: z.enum(["prepaid", "postpaid"]).optional(),
})
const ReleaseInput = z.strictObject({ gateway: z.string().min(1) })

export function billingOperations(parts: BillingOperatorParts): Operations {
  return {
    "billing.credit": async (input) => {
      const move = read(MoveInput, input)
      if (move.cents <= 0)
        throw new Fault("invalid_request", "Cannot credit the account: a positive amount is needed")
      return await enter(parts, "credit", move)
    },
    "billing.adjust": async (input) => await enter(parts, "adjustment", read(MoveInput, input)),
    "billing.ledger": async (input) => {
      const { account, limit, cursor } = read(LedgerInput, input)
      const id = await accountOf(parts.database, account)
      const page = await pageLedger(parts.database, id, { limit, cursor })
      return { billing_account_id: id, entries: page.items.map(viewEntry), next_cursor: page.nextCursor }
    },
    "billing.set": async (input) => await set(parts, read(SetInput, input)),
    "billing.verify": async () => await verify(parts),
    "billing.release": async (input) => await release(parts, read(ReleaseInput, input).gateway),
  }
}

async function enter(
  parts: ControlParts,
  kind: "credit" | "adjustment",
  move: z.infer<typeof MoveInput>,
): Promise<unknown> {
  const reference = move.reference ?? parts.ids.next("adj")
  return await parts.database.transaction(async (sql) => {
    const id = await accountOf(sql, move.account)
    const account = await lockBillingAccount(sql, id)
    const ticks = fromCents(move.cents)
    const availableTicks = (account?.balanceTicks ?? 0n) - (await sumHeld(sql, id))
    if (ticks < 0n && account?.mode === "prepaid" && availableTicks + ticks < 0n)
      throw new Fault(
        "conflict",
        `Cannot take ${-move.cents} cents: ${centsExact(availableTicks)} cents are not spent and not held by a gateway`,
      )
    const now = new Date(parts.clock.nowMs())
    const added = await appendLedger(sql, {
      billingAccountId: id,
      at: now,
      kind,
      amountTicks: ticks,
      reference,
      note: move.reason,
    })
    if (!added) throw new Fault("conflict", `Cannot enter ${reference}: it is in the ledger already`)
    const after = { amount_cents: move.cents, reason: move.reason }
    await auditSystem(
      parts,
      sql,
      id,
      { action: `billing.${kind}`, resource: { type: "billing_account", id }, after },
      now,
    )
    const balance = (account?.balanceTicks ?? 0n) + ticks
    return { billing_account_id: id, reference, amount_cents: move.cents, balance_cents: centsExact(balance) }
  })
}

/** The named account, that of the named organization, or the only one there is. */
async function accountOf(sql: Sql, named: string | undefined): Promise<string> {
  if (named !== undefined) {
    const [row] = await sql.query<{ id: string }>(
      "SELECT id FROM billing_accounts WHERE id = $1 UNION SELECT billing_account_id FROM organizations WHERE id = $1",
      [named],
    )
    if (!row || !(await findBillingAccount(sql, row.id)))
      throw new Fault("not_found", `Cannot find the billing account ${named}`)
    return row.id
  }
  const rows = await sql.query<{ id: string }>("SELECT id FROM billing_accounts ORDER BY id LIMIT 2")
  const [only, another] = rows
  if (!only) throw new Fault("not_found", "Cannot find a billing account: start the server once first")
  if (another)
    throw new Fault(
      "invalid_request",
      "Cannot tell which account is meant: there are several; name one with --account",
    )
  return only.id
}

const shown = (account: BillingAccount | null): { provider: string; mode: string } | null =>
  account && { provider: account.provider, mode: account.mode }

/** Another provider does not have the account yet: it is provisioned in the background, and a payment method is entered there. */
async function set(parts: ControlParts, given: z.infer<typeof SetInput>): Promise<unknown> {
  const now = new Date(parts.clock.nowMs())
  const view = await parts.database.transaction(async (sql) => {
    const id = await accountOf(sql, given.account)
    const before = await lockBillingAccount(sql, id)
    const moved = given.provider === before?.provider ? undefined : given.provider
    const after = await updateBillingAccount(
      sql,
      id,
      {
        ...(given.mode === undefined ? {} : { mode: given.mode }),
        ...(given.mode === "postpaid" ? { autoRefillEnabled: false, lowBalanceWarningCents: null } : {}),
        ...(moved === undefined
          ? {}
          : {
              provider: moved,
              providerCustomerId: null,
              paymentMethodId: null,
              paymentMethodDescription: null,
            }),
      },
      now,
    )
    const resource = { type: "billing_account", id }
    await auditSystem(
      parts,
      sql,
      id,
      { action: "billing.account_set", resource, before: shown(before), after: shown(after) },
      now,
    )
    return { billing_account_id: id, ...shown(after) }
  })
  parts.forget({ table: "billing_accounts", id: view.billing_account_id })
  return view
}

/** Sums agree, the journal is drained, nothing is held for a gateway that is gone. */
async function verify(parts: BillingOperatorParts): Promise<unknown> {
  const journal = await parts.journalState()
  const checks = await checkLedgers(parts.database)
  const leases = await listLeases(parts.database)
  const nowMs = parts.clock.nowMs()
  const expired = leases.filter(({ expiresAt, heldTicks }) => expiresAt.getTime() < nowMs && heldTicks > 0n)
  const problems = [
    ...checks.flatMap(problemsOf),
    ...(journal.pendingRecords > 0
      ? [`${journal.pendingRecords} records of the journal are not in the ledger`]
      : []),
    ...journal.lost,
    ...expired.map(
      (lease) =>
        `${lease.gatewayId} holds ${centsExact(lease.heldTicks)} cents of ${lease.billingAccountId} and has not renewed; restart it, or umpire billing release ${lease.gatewayId}`,
    ),
  ]
  return {
    ok: problems.length === 0,
    problems,
    notes: journal.unfinished,
    journal: { gatewayId: journal.gatewayId, pendingRecords: journal.pendingRecords },
    accounts: checks.map((check) => ({
      billing_account_id: check.billingAccountId,
      balance_cents: centsExact(check.balanceTicks),
      ledger_cents: centsExact(check.ledgerTicks),
      usage_cents: centsExact(check.usageTicks),
      held_cents: centsExact(heldOf(leases, check.billingAccountId)),
    })),
  }
}

function heldOf(leases: Awaited<ReturnType<typeof listLeases>>, billingAccountId: string): Ticks {
  return leases
    .filter((lease) => lease.billingAccountId === billingAccountId)
    .reduce((sum, { heldTicks }) => sum + heldTicks, 0n)
}

function problemsOf(check: LedgerCheck): string[] {
  const { billingAccountId: id, balanceTicks, ledgerTicks, usageTicks, chargedTicks } = check
  const problems: string[] = []
  if (balanceTicks !== ledgerTicks)
    problems.push(`${id}: the balance is ${balanceTicks} ticks, its ledger ${ledgerTicks}`)
  if (check.mode === "prepaid" && balanceTicks < 0n) problems.push(`${id}: the prepaid balance is below zero`)
  if (check.chargesComplete && usageTicks !== chargedTicks)
    problems.push(
      `${id}: the usage in the ledger is ${usageTicks} ticks, that of its sequences ${chargedTicks}`,
    )
  return problems
}

/** Gives up the holds of a gateway that will not come back; what its journal still holds is lost with it. */
async function release(parts: ControlParts, gateway: string): Promise<unknown> {
  const now = new Date(parts.clock.nowMs())
  return await parts.database.transaction(async (sql) => {
    const released = await releaseGateway(sql, gateway)
    if (released.length === 0) throw new Fault("not_found", `Cannot release ${gateway}: it holds nothing`)
    for (const { billingAccountId: id, heldTicks } of released)
      await auditSystem(
        parts,
        sql,
        id,
        {
          action: "billing.lease_released",
          resource: { type: "billing_account", id },
          after: { gateway, released_cents: centsExact(heldTicks) },
        },
        now,
      )
    const cents = centsExact(released.reduce((sum, { heldTicks }) => sum + heldTicks, 0n))
    return { gateway, released_cents: cents }
  })
}

function viewEntry(row: LedgerRow): Record<string, unknown> {
  return {
    id: String(row.id),
    at: row.at.toISOString(),
    kind: row.kind,
    amount_ticks: String(row.amountTicks),
    amount_cents: centsExact(row.amountTicks),
    reference: row.reference,
    note: row.note,
    organization_id: row.organizationId,
    model: row.model,
    day: row.day,
    sequences: row.sequences === null ? null : Number(row.sequences),
  }
}
