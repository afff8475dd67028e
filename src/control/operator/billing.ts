/** The operator's endpoints about money. */
import { centsExact, fromCents, type Ticks } from "../../base/money.ts"
import type { CallOf, Handlers, OutputOf, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { BillingOperatorTable } from "../../contract/operator.ts"
import {
  type BillingAccount,
  findBillingAccount,
  lockBillingAccount,
  updateBillingAccount,
} from "../../store/billing-accounts.ts"
import { listOrganizationsOfBillingAccount } from "../../store/organizations.ts"
import { listLeases, releaseGateway, sumHeld } from "../../store/leases.ts"
import {
  appendLedger,
  checkLedgers,
  pageLedger,
  type LedgerCheck,
  type LedgerRow,
} from "../../store/ledger.ts"
import { column } from "../../store/rows.ts"
import type { Sql } from "../../store/sql.ts"
import { type AuditedViews, type ChangeScope, type ControlDeps, change, found } from "../audited-change.ts"
import { plural } from "../../base/plural.ts"

interface BillingOperatorDeps extends ControlDeps {
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

type Table = BillingOperatorTable

export function billingOperatorHandlers(deps: BillingOperatorDeps): Handlers<Table> {
  return {
    async creditAccount(call) {
      if (call.body.cents <= 0)
        throw new Fault("invalid_request", "Cannot credit the account: a positive amount is needed")
      return await enter(deps, "credit", call)
    },
    adjustAccount: async (call) => await enter(deps, "adjustment", call),
    async listLedger({ query: { account, limit, cursor } }) {
      const id = await accountOf(deps.database, account)
      const page = await pageLedger(deps.database, { billingAccountId: id, kinds: "all" }, { limit, cursor })
      return { billing_account_id: id, entries: page.items.map(viewEntry), next_cursor: page.nextCursor }
    },
    setAccount: async (call) => await set(deps, call),
    verifyBilling: async () => await verify(deps),
    releaseGateway: async (call) => await release(deps, call),
  }
}

async function enter(
  deps: ControlDeps,
  kind: "credit" | "adjustment",
  call: CallOf<Table["creditAccount"]>,
): Promise<OutputOf<Table["creditAccount"]>> {
  const move = call.body
  const reference = move.reference ?? deps.ids.next("adj")
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    const id = await accountOf(sql, move.account)
    const account = await lockBillingAccount(sql, id)
    const ticks = fromCents(move.cents)
    const availableTicks = (account?.balanceTicks ?? 0n) - (await sumHeld(sql, id))
    if (ticks < 0n && account?.mode === "prepaid" && availableTicks + ticks < 0n)
      throw new Fault(
        "conflict",
        `Cannot take ${-move.cents} cents: ${centsExact(availableTicks)} cents are not spent and not held by a gateway`,
      )
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
    await auditAccount(scope, `billing.${kind}`, { id, views: { after } })
    const balance = (account?.balanceTicks ?? 0n) + ticks
    return { billing_account_id: id, reference, amount_cents: move.cents, balance_cents: centsExact(balance) }
  })
}

/** The named account, that of the named organization, or the only one there is. */
async function accountOf(sql: Sql, named: string | undefined): Promise<string> {
  if (named !== undefined) {
    const id = await column.text.first(sql)`SELECT id FROM billing_accounts WHERE id = ${named}
      UNION SELECT billing_account_id FROM organizations WHERE id = ${named}`
    if (id === null || !(await findBillingAccount(sql, id)))
      throw new Fault("not_found", `Cannot find the billing account ${named}`)
    return id
  }
  const [only, another] = await column.text.all(sql)`SELECT id FROM billing_accounts ORDER BY id LIMIT 2`
  if (only === undefined)
    throw new Fault("not_found", "Cannot find a billing account: start the server once first")
  if (another !== undefined)
    throw new Fault(
      "invalid_request",
      "Cannot tell which account is meant: there are several; name one with --account",
    )
  return only
}

/** In the audit log of every organization that the account pays for; ascending ids, as everyone locks the chains. */
async function auditAccount(
  { sql, audit }: ChangeScope,
  action: string,
  { id, views }: { id: string; views: AuditedViews },
): Promise<void> {
  const organizations = await listOrganizationsOfBillingAccount(sql, id)
  for (const { id: organizationId } of organizations.toReversed())
    await audit(action, { organizationId, id, resourceType: "billing_account" }, views)
}

const shown = ({ provider, mode }: BillingAccount): { provider: string; mode: string } => ({ provider, mode })

/** Another provider does not have the account yet: it is provisioned in the background, and a payment method is entered there. */
const set: Handle<ControlDeps, Table["setAccount"]> = async (deps, call) => {
  const { account, mode, provider } = call.body
  return await change(deps, call, async (scope) => {
    const { sql, now, invalidate } = scope
    const id = await accountOf(sql, account)
    const before = found(await lockBillingAccount(sql, id), "billing account")
    const updated = await updateBillingAccount(
      sql,
      id,
      {
        ...(mode === undefined ? {} : { mode }),
        ...(mode === "postpaid" ? { autoRefillEnabled: false, lowBalanceWarningCents: null } : {}),
        ...(provider === undefined || provider === before.provider
          ? {}
          : { provider, providerCustomerId: null, paymentMethodId: null, paymentMethodDescription: null }),
      },
      now,
    )
    const after = shown(found(updated, "billing account"))
    await auditAccount(scope, "billing.account_set", { id, views: { before: shown(before), after } })
    invalidate({ table: "billing_accounts", id })
    return { billing_account_id: id, ...after }
  })
}

/** Sums agree, the journal is drained, nothing is held for a gateway that is gone. */
async function verify(deps: BillingOperatorDeps): Promise<OutputOf<Table["verifyBilling"]>> {
  const journal = await deps.journalState()
  const checks = await checkLedgers(deps.database)
  const leases = await listLeases(deps.database)
  const nowMs = deps.clock.nowMs()
  const expired = leases.filter(({ expiresAt, heldTicks }) => expiresAt.getTime() < nowMs && heldTicks > 0n)
  const problems = [
    ...checks.flatMap(problemsOf),
    ...(journal.pendingRecords > 0
      ? [
          `${plural(journal.pendingRecords, "record of the journal is", "records of the journal are")} not in the ledger`,
        ]
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
const release: Handle<ControlDeps, Table["releaseGateway"]> = async (deps, call) => {
  const { gateway } = call.body
  return await change(deps, call, async (scope) => {
    const released = await releaseGateway(scope.sql, gateway)
    if (released.length === 0) throw new Fault("not_found", `Cannot release ${gateway}: it holds nothing`)
    for (const { billingAccountId, heldTicks } of released)
      await auditAccount(scope, "billing.lease_released", {
        id: billingAccountId,
        views: { before: null, after: { gateway, released_cents: centsExact(heldTicks) } },
      })
    const cents = centsExact(released.reduce((sum, { heldTicks }) => sum + heldTicks, 0n))
    return { gateway, released_cents: cents }
  })
}

function viewEntry(row: LedgerRow): OutputOf<Table["listLedger"]>["entries"][number] {
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
