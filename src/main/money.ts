/** Builds the gateway's money parts: the journal, the leases, what moves one into the ledger, and the meter over them. */
import { join } from "node:path"
import type { Catalog } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Metrics } from "../base/telemetry.ts"
import type { RateLimits } from "../base/rate-limiter.ts"
import { createInferenceMetrics } from "../gateway/telemetry.ts"
import { cheapestRequest, createMeter, type Meter } from "../gateway/meter.ts"
import { Applier, ledgerConsumer } from "../gateway/money/applier.ts"
import {
  type LeaseBook,
  type LeaseReport,
  accountCredit,
  keyBudgets,
  openLeaseBook,
} from "../gateway/money/lease-book.ts"
import { createPayers, createTagBudgets } from "../gateway/reservations.ts"
import { type Journal, openJournal } from "../store/journal/journal.ts"
import type { JournalState } from "../control/operator/billing.ts"
import { inspectJournal } from "./billing.ts"
import { releaseGateway } from "../store/leases.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import type { Database } from "../store/sql.ts"

interface MoneyNeeds {
  readonly organizations: Pick<Organizations, "of">
  readonly config: Config
  readonly catalog: Catalog
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: Metrics
  readonly rateLimits: RateLimits
  /** Who else reads the journal; a segment stays until all have passed it. */
  readonly consumers: readonly string[]
}

export interface Money {
  readonly meter: Meter
  readonly journal: Journal
  /** Resolves when everything that was used until now is in the ledger. */
  settle(): Promise<void>
  /** After settling: what is left, which should be nothing. */
  journalState(): Promise<JournalState>
  /** How this gateway's money parts stand now. */
  report(): MoneyReport
  close(): Promise<void>
}

interface MoneyReport {
  readonly gatewayId: string
  readonly journalBytes: number
  /** How long usage has been waiting to get into the ledger. */
  readonly lagMs: number
  readonly leases: readonly LeaseReport[]
  readonly renewalAgeMs: number
}

const mebibyte = 1024 * 1024
const millisecondsPerSecond = 1_000

export const journalDirectory = (dataDirectory: string): string => join(dataDirectory, "journal")

/** Whatever an earlier run of this gateway left is applied, and its holds are released, before anything is admitted. */
export async function openMoney(needs: MoneyNeeds): Promise<Money> {
  const { config, catalog, database, clock, ids, log } = needs
  const graceMs = config.billing.outage_grace_s * millisecondsPerSecond
  const journal = await openJournal({
    directory: journalDirectory(config.data_dir),
    consumers: [ledgerConsumer, ...needs.consumers],
    newGatewayId: () => ids.next("gw"),
    durability: config.journal.durability,
    bytesMax: config.journal.size_max_mib * mebibyte,
    clock,
  })
  try {
    const { gatewayId } = journal
    const applier = await Applier.open({ database, journal, clock, log })
    await applier.drain()
    await releaseGateway(database, gatewayId)
    const leaseParts = {
      database,
      gatewayId,
      clock,
      log,
      graceMs,
      recallWaitMs: config.billing.recall_wait_ms,
      cheapestTicks: () => cheapestRequest(catalog.list(), config.server.request_timeout_ms),
    }
    const leases = await openLeaseBook({ ...leaseParts, source: accountCredit })
    const budgets = await openLeaseBook({ ...leaseParts, source: keyBudgets })
    applier.onApplied = (sums) => {
      leases.applied(sums)
      budgets.applied(sums)
    }
    applier.start()
    const payers = createPayers(needs.organizations)
    const tagBudgets = createTagBudgets(needs.organizations)
    const observe = createInferenceMetrics(needs.metrics, catalog)
    const { rateLimits } = needs
    const held = { leases, budgets, tagBudgets, rateLimits, payers }
    const meter = createMeter({ journal, ...held, clock, ids, log, observe })
    return {
      meter,
      journal,
      settle: () => applier.drain(),
      journalState: async () => {
        await applier.drain()
        return await inspectJournal(journal.directory, database, journal.end)
      },
      report: () => ({
        gatewayId,
        journalBytes: journal.bytes,
        lagMs: applier.lagMs,
        leases: leases.report(),
        renewalAgeMs: leases.renewalAgeMs,
      }),
      close: async () => await shutDown({ applier, books: [leases, budgets], journal, database, log }),
    }
  } catch (error) {
    await journal.close()
    throw error
  }
}

interface Running {
  readonly applier: Applier
  readonly books: readonly LeaseBook[]
  readonly journal: Journal
  readonly database: Database
  readonly log: Log
}

/** Nothing runs any more: what is in the journal goes to the ledger and the holds go back, or both wait for the next start. */
async function shutDown({ applier, books, journal, database, log }: Running): Promise<void> {
  await applier.close()
  for (const book of books) await book.close()
  try {
    await applier.drain()
    await releaseGateway(database, journal.gatewayId)
  } catch (error) {
    log.warn({ err: error }, "usage is left in the journal; the next start applies it")
  }
  await journal.close()
}
