/** The ledger under random histories: purchases, requests, failures, crashes and month ends, on two gateways. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { monthOf } from "../src/base/clock.ts"
import { ManualClock } from "./manual-clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { fromCents } from "../src/base/money.ts"
import { Fault } from "../src/contract/errors.ts"
import { Applier } from "../src/gateway/money/applier.ts"
import type { Reservation } from "../src/gateway/money/lease-account.ts"
import { type LeaseBook, accountCredit, openLeaseBook } from "../src/gateway/money/lease-book.ts"
import { findBillingAccount } from "../src/store/billing-accounts.ts"
import { type Journal, openJournal } from "../src/store/journal/journal.ts"
import { releaseGateway, sumHeld } from "../src/store/leases.ts"
import { appendLedger } from "../src/store/ledger.ts"
import type { Database } from "../src/store/sql.ts"
import { insertAccount } from "./account.ts"
import { openTestDatabase } from "./database.ts"
import { sequenceRecord } from "./sequence-record.ts"
import { column, row } from "../src/store/rows.ts"

let database: Database
beforeAll(async () => void (database = await openTestDatabase()))
afterAll(async () => await database.close())

const graceMs = 60_000
const startMs = Date.UTC(2026, 0, 31, 23, 59, 0)

/** A gateway's money parts, which can die at any moment: what was only in memory is then gone. */
class Gateway {
  readonly #directory: string
  readonly #clock: ManualClock
  readonly #ids = createIds()
  journal!: Journal
  book!: LeaseBook
  applier!: Applier
  open: { reservation: Reservation; atMs: number }[] = []

  constructor(directory: string, clock: ManualClock) {
    this.#directory = directory
    this.#clock = clock
  }

  async start(): Promise<void> {
    const clock = this.#clock
    const parts = { database, clock, log: silentLog }
    this.journal = await openJournal({
      directory: this.#directory,
      consumers: ["ledger"],
      newGatewayId: () => this.#ids.next("gw"),
      segmentBytesMax: 3_000,
      keepMs: 0,
      clock,
    })
    this.applier = await Applier.open({ ...parts, journal: this.journal })
    await this.applier.drain()
    await releaseGateway(database, this.journal.gatewayId)
    this.book = await openLeaseBook({
      ...parts,
      source: accountCredit,
      gatewayId: this.journal.gatewayId,
      graceMs,
      recallWaitMs: 15,
    })
    this.applier.onApplied = (sums) => this.book.applied(sums)
  }

  /** What a kill leaves: the journal's bytes and the holds. The handles are closed only so that a restart can open them. */
  async crash(): Promise<void> {
    this.open = []
    await this.journal.close()
    await this.book.close()
    await this.start()
  }

  /** Charges the oldest open request; null is a failure, which costs nothing. */
  async finish(accountId: string, organizationId: string, share: number | null): Promise<bigint> {
    const request = this.open.shift()
    if (!request) return 0n
    const cost = share === null ? 0n : (request.reservation.ticks * BigInt(share)) / 100n
    await this.journal.append(
      sequenceRecord({
        seq_id: this.#ids.next("seq"),
        timestamp: request.atMs,
        organization_id: organizationId,
        billing_account_id: accountId,
        result: share === null ? "error" : "success",
        cost_ticks: String(cost),
      }),
    )
    request.reservation.settle(cost)
    return cost
  }
}

type Step =
  | { kind: "purchase"; cents: number }
  | { kind: "adjust"; cents: number }
  | { kind: "reserve"; gateway: 0 | 1; ticks: number }
  | { kind: "finish"; gateway: 0 | 1; share: number | null }
  | { kind: "apply"; gateway: 0 | 1 }
  | { kind: "crash"; gateway: 0 | 1 }
  | { kind: "advance"; ms: number }

const gateway = fc.constantFrom<(0 | 1)[]>(0, 1)
const ticks = fc.integer({ min: 1, max: 700_000_000 })
const share = fc.option(fc.integer({ min: 0, max: 100 }))
const steps: readonly { weight: number; arbitrary: fc.Arbitrary<Step> }[] = [
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 }).map((cents) => ({ kind: "purchase", cents })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map((cents) => ({ kind: "adjust", cents })) },
  {
    weight: 8,
    arbitrary: fc.tuple(gateway, ticks).map(([gateway, ticks]) => ({ kind: "reserve", gateway, ticks })),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(gateway, share).map(([gateway, share]) => ({ kind: "finish", gateway, share })),
  },
  { weight: 3, arbitrary: gateway.map((gateway) => ({ kind: "apply", gateway })) },
  { weight: 1, arbitrary: gateway.map((gateway) => ({ kind: "crash", gateway })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 40_000 }).map((ms) => ({ kind: "advance", ms })) },
]
const step = fc.oneof(...steps)

interface World {
  readonly accountId: string
  readonly organizationId: string
  readonly clock: ManualClock
  readonly gateways: readonly [Gateway, Gateway]
  readonly cutoffTicks: bigint | null
  bought: bigint
  /** What acknowledged sequences cost, by month. */
  readonly spent: Map<string, bigint>
  admitted: number
  refused: number
}

async function createWorld(cutoffCents: number | null, directory: string): Promise<World> {
  const ids = createIds()
  const clock = new ManualClock(startMs)
  const { accountId, organizationId } = await insertAccount(
    database,
    ids,
    new Date(startMs),
    cutoffCents === null ? null : BigInt(cutoffCents),
  )
  const gateways = [0, 1].map((index) => new Gateway(join(directory, `${accountId}-${index}`), clock)) as [
    Gateway,
    Gateway,
  ]
  for (const one of gateways) await one.start()
  const cutoffTicks = cutoffCents === null ? null : fromCents(cutoffCents)
  return {
    accountId,
    organizationId,
    clock,
    gateways,
    cutoffTicks,
    bought: 0n,
    spent: new Map(),
    admitted: 0,
    refused: 0,
  }
}

let entries = 0
async function enter(world: World, kind: "purchase" | "adjustment", ticks: bigint): Promise<void> {
  const at = new Date(world.clock.nowMs())
  await appendLedger(database, {
    billingAccountId: world.accountId,
    at,
    kind,
    amountTicks: ticks,
    reference: `${kind} ${++entries}`,
  })
  world.bought += ticks
}

async function take(world: World, step: Step): Promise<void> {
  switch (step.kind) {
    case "purchase":
      return await enter(world, "purchase", fromCents(step.cents))
    case "adjust":
      return await enter(world, "adjustment", fromCents(step.cents))
    case "advance":
      return world.clock.advance(step.ms)
    case "apply":
      return await world.gateways[step.gateway].applier.drain()
    case "crash":
      return await world.gateways[step.gateway].crash()
    case "reserve":
      return await reserve(world, world.gateways[step.gateway], BigInt(step.ticks))
    case "finish": {
      const atMs = world.gateways[step.gateway].open[0]?.atMs ?? startMs
      const cost = await world.gateways[step.gateway].finish(
        world.accountId,
        world.organizationId,
        step.share,
      )
      world.spent.set(monthOf(atMs), (world.spent.get(monthOf(atMs)) ?? 0n) + cost)
    }
  }
}

async function reserve(world: World, gateway: Gateway, ticks: bigint): Promise<void> {
  const atMs = world.clock.nowMs()
  try {
    gateway.open.push({ reservation: await gateway.book.reserve(world.accountId, atMs, ticks), atMs })
    world.admitted++
  } catch (error) {
    expect(error).toBeInstanceOf(Fault)
    expect((error as Fault).status).toBe(402)
    world.refused++
  }
}

async function check(world: World): Promise<void> {
  const account = await findBillingAccount(database, world.accountId)
  const [sums] = await row({ all: column.text, usage: column.text, charges: column.text }).all(
    database,
  )`SELECT (SELECT coalesce(sum(amount_ticks), 0) FROM ledger
    WHERE billing_account_id = ${world.accountId}) AS all,
    (SELECT coalesce(-sum(amount_ticks), 0) FROM ledger
    WHERE billing_account_id = ${world.accountId} AND kind = 'usage') AS usage,
    (SELECT coalesce(sum(amount_ticks), 0) FROM charges
    WHERE billing_account_id = ${world.accountId}) AS charges`
  expect(account?.balanceTicks).toBe(BigInt(sums?.all ?? -1))
  expect(sums?.usage).toBe(sums?.charges)
  expect(account?.balanceTicks ?? -1n).toBeGreaterThanOrEqual(0n)
  // Reserved and unapplied money is held: what is left for others is never below zero.
  expect((account?.balanceTicks ?? 0n) - (await sumHeld(database, world.accountId))).toBeGreaterThanOrEqual(
    0n,
  )
}

async function checkEnd(world: World): Promise<void> {
  for (const one of world.gateways) await one.applier.drain()
  await check(world)
  const account = await findBillingAccount(database, world.accountId)
  const spent = [...world.spent.values()].reduce((sum, ticks) => sum + ticks, 0n)
  expect(account?.balanceTicks).toBe(world.bought - spent)
  const months = await row({ month: column.text, spent_ticks: column.bigint }).all(
    database,
  )`SELECT month, spent_ticks FROM month_spend
    WHERE billing_account_id = ${world.accountId} AND spent_ticks <> 0`
  expect(new Map(months.map(({ month, spent_ticks }) => [month, spent_ticks]))).toEqual(
    new Map([...world.spent].filter(([, ticks]) => ticks !== 0n)),
  )
  if (world.cutoffTicks !== null)
    for (const { spent_ticks } of months) expect(spent_ticks).toBeLessThanOrEqual(world.cutoffTicks)
}

test("whatever happens, balance = purchases + adjustments - costs of sequences, and neither it nor the cutoff is overrun", async () => {
  const counts = { histories: 0, admitted: 0, refused: 0 }
  const directory = await mkdtemp(join(tmpdir(), "umpire-ledger-"))
  await fc.assert(
    fc.asyncProperty(
      fc.option(fc.integer({ min: 1, max: 30 })),
      fc.array(step, { minLength: 20, maxLength: 60 }),
      async (cutoffCents, steps) => {
        const world = await createWorld(cutoffCents, directory)
        try {
          await enter(world, "purchase", fromCents(5))
          for (const one of steps) {
            await take(world, one)
            await check(world)
          }
          await checkEnd(world)
        } finally {
          for (const one of world.gateways) {
            await one.book.close()
            await one.journal.close()
          }
        }
        counts.histories++
        counts.admitted += world.admitted
        counts.refused += world.refused
      },
    ),
    { numRuns: Number(process.env["UMPIRE_TEST_HISTORIES"] ?? 12) },
  )
  await rm(directory, { recursive: true })
  console.log(`histories ${counts.histories}, admitted ${counts.admitted}, refused ${counts.refused}`)
  expect(counts.admitted).toBeGreaterThan(0)
  expect(counts.refused).toBeGreaterThan(0)
})
