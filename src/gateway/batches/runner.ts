/**
 * Runs batches: validates and finalizes them, and runs their parts, in turns between organizations. Every gateway may run parts
 * of every batch whose files it sees.
 */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { BatchError } from "../../contract/openai/batches.ts"
import {
  type Batch,
  type BatchPart,
  beginBatch,
  claimBatch,
  claimPart,
  endPart,
  expireBatches,
  expireUnchecked,
  finishBatch,
  listBatchOrganizations,
  listPartOrganizations,
  renewBatch,
  renewPart,
  returnBatch,
  returnPart,
  stopBatch,
} from "../../store/batches/batches.ts"
import { type Change, followChanges } from "../../store/changes.ts"
import { nameBlob, placeBlob } from "../../store/files/files.ts"
import { BlobDamaged } from "../../store/files/storage.ts"
import type { Database } from "../../store/sql.ts"
import { type WorkKind, WorkQueue, type WorkSignals } from "../../store/work-queue.ts"
import { damagedInput, finalizeBatch } from "./finalize.ts"
import { checkInput } from "./input.ts"
import { type PartDeps, type RanPart, encodeResults, runPart } from "./run-line.ts"

export interface RunnerDeps extends PartDeps {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly linesMax: number
  /** Lines at once. */
  readonly concurrency: number
  readonly fileExpiryMs: number
}

export interface BatchRunner {
  /** For changes made by this process: a new batch begins, a cancelled one ends. */
  invalidate(change: Change): void
  close(): Promise<void>
}

/** What failed is tried again after so long. */
const retryAfterMs = 10_000
/** A part that so many gateways died of is not run again. */
const attemptsMax = 5
/** Batches that are validated or finalized at once; a small one of an organization does not wait for its large one. */
const batchesAtOnce = 4
const batchesPerOrganization = 2
/** Parts of one organization: while the last lines of one run, another one begins. */
const partsAtOnce = 2

export async function startBatchRunner(deps: RunnerDeps): Promise<BatchRunner> {
  const queues = [new WorkQueue(deps, batchKind(deps)), new WorkQueue(deps, partKind(deps))]
  return await followChanges(deps.database, ...queues)
}

function batchKind(deps: RunnerDeps): WorkKind<Batch> {
  const { database, storage, clock, log } = deps
  const nowDate = (): Date => new Date(clock.nowMs())
  return {
    name: "batches to validate or finalize",
    table: "batches",
    parallelMax: batchesAtOnce,
    perOwnerMax: batchesPerOrganization,
    listOwners: async (now) => {
      await expireBatches(database, now)
      return await listBatchOrganizations(database, { storage: storage.id, now })
    },
    claim: (organizationId, lease) => claimBatch(database, organizationId, { storage: storage.id, ...lease }),
    renew: (batch, until) => renewBatch(database, batch, until),
    run: async (batch, { stop, halt }) => {
      try {
        if (batch.status !== "validating") await finalizeBatch(deps, batch, { now: nowDate(), signal: halt })
        else if (batch.attempts > attemptsMax) await failBatch(deps, batch, [interrupted])
        else await validate(deps, batch, halt)
      } catch (error) {
        stop.throwIfAborted()
        log.error({ err: error, batch: batch.id }, "a batch could not be worked on")
        await expireUnchecked(database, batch, nowDate())
        await returnBatch(database, batch, new Date(clock.nowMs() + retryAfterMs))
      }
    },
    giveBack: (batch) => returnBatch(database, batch, null),
  }
}

async function validate(deps: RunnerDeps, batch: Batch, signal: AbortSignal): Promise<void> {
  const { database, clock } = deps
  const checked = await checkInput(deps, batch, signal)
  if (checked.errors.length > 0) return await failBatch(deps, batch, checked.errors)
  const now = new Date(clock.nowMs())
  const isBegun = await database.transaction((sql) => beginBatch(sql, batch, checked, now))
  // It was stopped meanwhile, and can be finalized.
  if (!isBegun) await returnBatch(database, batch, null)
}

async function failBatch(
  { database, clock }: RunnerDeps,
  batch: Batch,
  errors: readonly BatchError[],
): Promise<void> {
  await database.transaction((sql) =>
    finishBatch(sql, batch, {
      ending: "failed",
      errors: JSON.stringify(errors),
      outputFileId: null,
      errorFileId: null,
      completed: 0,
      unrun: 0,
      now: new Date(clock.nowMs()),
    }),
  )
}

/** How many lines at once each part has that runs beside others. The last is spare where there are more than can be shared. */
function sharesOf(concurrency: number): number[] {
  const spare = concurrency > partsAtOnce ? [1] : []
  const shared = Math.min(partsAtOnce, concurrency)
  const shares = Array.from({ length: shared }, (_, at) =>
    Math.ceil((concurrency - spare.length - at) / shared),
  )
  return [...shares, ...spare]
}

type ClaimedPart = NonNullable<Awaited<ReturnType<typeof claimPart>>>

function partKind(deps: RunnerDeps): WorkKind<ClaimedPart> {
  const { database, storage } = deps
  const shares = sharesOf(deps.concurrency)
  /** The organizations of the parts that run here, by their share. */
  const running = shares.map((): string | null => null)
  /** No organization can take all: the last share is for one that has no other. */
  const isOpenTo = (organizationId: string): boolean =>
    shares.length <= partsAtOnce || running.indexOf(null) < partsAtOnce || !running.includes(organizationId)
  return {
    name: "parts of batches",
    table: "batches",
    parallelMax: shares.length,
    perOwnerMax: partsAtOnce,
    listOwners: (now) => listPartOrganizations(database, { storage: storage.id, now }),
    claim: async (organizationId, lease) =>
      isOpenTo(organizationId)
        ? await claimPart(database, organizationId, { storage: storage.id, ...lease })
        : null,
    renew: ({ part }, until) => renewPart(database, part, until),
    run: async (claimed, signals) => {
      const at = running.indexOf(null)
      running[at] = claimed.part.organizationId
      try {
        await workOnPart(deps, claimed, { lines: shares[at] ?? 1, ...signals })
      } finally {
        running[at] = null
      }
    },
    giveBack: ({ part }) => returnPart(database, part, null),
  }
}

async function workOnPart(
  deps: RunnerDeps,
  { batch, part }: ClaimedPart,
  { lines, stop, halt }: WorkSignals & { readonly lines: number },
): Promise<void> {
  try {
    const ran = await runPart(
      deps,
      { batch, part },
      { concurrency: part.attempts > attemptsMax ? 0 : lines, signals: { stop, halt } },
    )
    if (ran.refused) await stopBatchNow(deps, batch, refusalOf(ran.refused))
    stop.throwIfAborted()
    await storeResults(deps, part, ran)
  } catch (error) {
    stop.throwIfAborted()
    await putOff(deps, { batch, part }, error)
  }
}

async function stopBatchNow({ database, clock }: RunnerDeps, batch: Batch, errors: string): Promise<void> {
  await stopBatch(database, batch.id, { ending: "failed", errors }, new Date(clock.nowMs()))
}

/** What fails is run again after a while: its lines may have been charged. An input that stays away ends the batch. */
async function putOff(deps: RunnerDeps, { batch, part }: ClaimedPart, error: unknown): Promise<void> {
  const { database, clock, log } = deps
  log.error({ err: error, batch: batch.id, part: part.number }, "a part of a batch failed")
  if (!(error instanceof BlobDamaged))
    await returnPart(database, part, new Date(clock.nowMs() + retryAfterMs))
  else if (part.attempts > attemptsMax) await stopBatchNow(deps, batch, damagedInput(error))
}

async function storeResults(
  { database, storage, clock }: RunnerDeps,
  part: BatchPart,
  ran: RanPart,
): Promise<void> {
  const blob = await storage.stage(once(Buffer.from(encodeResults(ran))))
  const completed = ran.results.filter((result) => result?.isSuccess === true).length
  const failed = ran.results.filter((result) => result?.isSuccess === false).length
  const now = new Date(clock.nowMs())
  try {
    await placeBlob(database, storage, part.organizationId, blob, now)
    await database.transaction(async (sql) => {
      await nameBlob(sql, storage, part.organizationId, blob)
      await endPart(sql, part, { sha256: blob.sha256, completed, failed, now })
    })
  } finally {
    await blob.discard()
  }
}

// oxlint-disable-next-line require-await -- what stores it takes a stream
async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const interrupted: BatchError = {
  code: "internal",
  message: "The batch was interrupted too often",
  line: null,
  param: null,
}

function refusalOf({ error, line }: NonNullable<RanPart["refused"]>): string {
  const { code, message } = error.fault
  return JSON.stringify([{ code, message, line, param: null } satisfies BatchError])
}
