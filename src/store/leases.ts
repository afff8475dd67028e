/** Leases: what a gateway may spend without asking. A hold, not a ledger entry: available = balance - holds. */
import { fromCents, type Ticks } from "../base/money.ts"
import { type BillingAccount, findMonthSpend, lockBillingAccount, noteCutoff } from "./billing-accounts.ts"
import { column, part, row, type RowOf, run } from "./rows.ts"
import type { Database, Sql, Transaction } from "./sql.ts"

const Lease = row({
  gatewayId: column.text,
  billingAccountId: column.text,
  /** The first day of the month. */
  month: column.text,
  /** What may still be spent, and what was spent but is not in the ledger yet. */
  heldTicks: column.bigint,
  expiresAt: column.timestamp,
})
type Lease = RowOf<typeof Lease>

export interface LeaseRequest {
  readonly gatewayId: string
  readonly billingAccountId: string
  readonly month: string
  /** Less than this helps no request that waits: then nothing is taken. */
  readonly usefulTicks: Ticks
  /** What all requests that wait need together. */
  readonly neededTicks: Ticks
  /** What the gateway would like beyond that, to be taken only while there is plenty. */
  readonly spareTicks: Ticks
  readonly expiresAt: Date
}

export type LeaseAnswer =
  | {
      readonly kind: "refused"
      readonly reason: "unknown_account" | "setup_failed" | "payment_method_required"
    }
  | {
      readonly kind: "granted"
      readonly grantedTicks: Ticks
      /** What is admitted on it is charged to the balance or to the month's invoice. */
      readonly mode: BillingAccount["mode"]
      /** What the gateway now holds in all. */
      readonly heldTicks: Ticks
      /** What other gateways, or this one for another month, hold of the same: they may give it back. */
      readonly heldElsewhereTicks: Ticks
      /** What stands in the way of more; null when nothing does. */
      readonly limit: "credit" | "cutoff" | "budget" | "tag_budget" | null
      /** What could still be granted; null when nothing limits it. */
      readonly leftTicks: Ticks | null
    }

/** Of what is left after everyone who waits is served, a gateway takes at most this part as its spare. */
const spareShare = 4n

/** Takes what is wished for as far as balance and cutoff allow, both after what every gateway holds. */
export async function takeLease(sql: Transaction, request: LeaseRequest): Promise<LeaseAnswer> {
  const account = await lockBillingAccount(sql, request.billingAccountId)
  if (!account) return { kind: "refused", reason: "unknown_account" }
  const reason = refusalOf(account)
  if (reason) return { kind: "refused", reason }
  const holds = await sumHolds(sql, request)
  const spend = await findMonthSpend(sql, request.billingAccountId, request.month)
  const { available, limit } = availableOf(account, holds, spend.spentTicks)
  const grantedTicks = grantOf(request, available)
  if (spend.refused && grantedTicks >= request.usefulTicks)
    await noteCutoff(sql, request.billingAccountId, request.month, false)
  await extendLease(sql, request, grantedTicks)
  return {
    kind: "granted",
    grantedTicks,
    mode: account.mode,
    heldTicks: holds.own + grantedTicks,
    heldElsewhereTicks: holds.all - holds.own,
    limit,
    leftTicks: available === null ? null : available - grantedTicks,
  }
}

type Refusal = Extract<LeaseAnswer, { kind: "refused" }>["reason"]

function refusalOf(account: BillingAccount): Refusal | null {
  if (account.providerCustomerId === null) return "setup_failed"
  if (account.mode === "postpaid" && account.paymentMethodId === null) return "payment_method_required"
  return null
}

interface Holds {
  readonly own: Ticks
  readonly all: Ticks
  readonly ofMonth: Ticks
}

const Hold = row({ gatewayId: column.text, current: column.boolean, heldTicks: column.bigint })

async function sumHolds(sql: Sql, { billingAccountId, month, gatewayId }: LeaseRequest): Promise<Holds> {
  const leases = await Hold.all(sql)`SELECT gateway_id, month = ${month} AS current, held_ticks FROM leases
    WHERE billing_account_id = ${billingAccountId}`
  const sum = (some: typeof leases): Ticks => some.reduce((total, { heldTicks }) => total + heldTicks, 0n)
  return {
    own: sum(leases.filter((lease) => lease.current && lease.gatewayId === gatewayId)),
    all: sum(leases),
    ofMonth: sum(leases.filter(({ current }) => current)),
  }
}

function availableOf(
  account: BillingAccount,
  holds: Holds,
  spentTicks: Ticks,
): { available: Ticks | null; limit: "credit" | "cutoff" | null } {
  const credit = account.mode === "prepaid" ? account.balanceTicks - holds.all : null
  const cutoffCents = account.spendCutoffCents
  const cutoff = cutoffCents === null ? null : fromCents(Number(cutoffCents)) - spentTicks - holds.ofMonth
  if (credit !== null && (cutoff === null || credit <= cutoff))
    return { available: atLeastZero(credit), limit: "credit" }
  if (cutoff !== null) return { available: atLeastZero(cutoff), limit: "cutoff" }
  return { available: null, limit: null }
}

const atLeastZero = (ticks: Ticks): Ticks => (ticks > 0n ? ticks : 0n)

export function grantOf(
  { usefulTicks, neededTicks, spareTicks }: LeaseRequest,
  available: Ticks | null,
): Ticks {
  if (available === null) return neededTicks + spareTicks
  if (available < usefulTicks) return 0n
  if (available <= neededTicks) return available
  const spare = (available - neededTicks) / spareShare
  return neededTicks + (spare < spareTicks ? spare : spareTicks)
}

export const extendLease = (sql: Sql, request: LeaseRequest, grantedTicks: Ticks) =>
  run(sql)`INSERT INTO leases AS l (gateway_id, billing_account_id, month, held_ticks, expires_at)
    VALUES (${request.gatewayId}, ${request.billingAccountId}, ${request.month}, ${grantedTicks}, ${request.expiresAt})
    ON CONFLICT (billing_account_id, month, gateway_id)
    DO UPDATE SET held_ticks = l.held_ticks + excluded.held_ticks, expires_at = excluded.expires_at`

/** Gives back what is not needed and tells those who wait for it. */
export const returnLease = (
  database: Database,
  lease: Pick<Lease, "gatewayId" | "billingAccountId" | "month">,
  ticks: Ticks,
) =>
  run(database)`WITH returned AS (
      UPDATE leases SET held_ticks = GREATEST(held_ticks - ${ticks}, 0)
      WHERE billing_account_id = ${lease.billingAccountId} AND month = ${lease.month}
        AND gateway_id = ${lease.gatewayId})
    SELECT pg_notify('${part(leaseChannel)}', ${`returned:${lease.billingAccountId}:${lease.gatewayId}`})`

/** Keeps the leases of a gateway alive; returns those that the database knows. */
export const renewLeases = (sql: Sql, gatewayId: string, expiresAt: Date) =>
  Lease.all(sql)`UPDATE leases SET expires_at = ${expiresAt} WHERE gateway_id = ${gatewayId}
    RETURNING *`

/** Drops a lease that holds nothing. */
export const dropEmptyLeases = (sql: Sql, gatewayId: string, beforeMonth: string) =>
  run(sql)`DELETE FROM leases WHERE gateway_id = ${gatewayId} AND month < ${beforeMonth}
    AND held_ticks = 0`

/** After the gateway's journal is applied nothing of its holds is needed; also for the operator, when it never returns. */
export const releaseGateway = (sql: Sql, gatewayId: string) =>
  Lease.all(sql)`DELETE FROM leases WHERE gateway_id = ${gatewayId} RETURNING *`

export const listLeases = (sql: Sql) =>
  Lease.all(sql)`SELECT * FROM leases ORDER BY billing_account_id, month, gateway_id`

/** What every gateway holds of the account. */
export const sumHeld = (sql: Sql, billingAccountId: string) =>
  column.bigint.one(sql)`SELECT coalesce(sum(held_ticks), 0) FROM leases
    WHERE billing_account_id = ${billingAccountId}`

const leaseChannel = "umpire_leases"

export interface LeaseMessage {
  /** `recall`: someone is short; `returned`: someone gave back. */
  readonly kind: "recall" | "returned"
  readonly billingAccountId: string
  /** Who says so. */
  readonly gatewayId: string
}

export const recallLeases = (sql: Sql, billingAccountId: string, gatewayId: string) =>
  run(sql)`SELECT pg_notify(${leaseChannel}, ${`recall:${billingAccountId}:${gatewayId}`})`

export function listenToLeases(
  database: Database,
  listener: (message: LeaseMessage) => void,
): Promise<() => Promise<void>> {
  return database.listen(leaseChannel, (payload) => {
    const [kind, billingAccountId, gatewayId] = payload.split(":")
    if ((kind === "recall" || kind === "returned") && billingAccountId && gatewayId)
      listener({ kind, billingAccountId, gatewayId })
  })
}
