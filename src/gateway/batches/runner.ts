/**
 * Runs batches: claims a batch to validate or to finalize, or a part to run, under a lease, and stops when the batch is stopped.
 * Every gateway may run parts of every batch whose files it sees.
 */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import { Fault } from "../../contract/errors.ts"
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
  renewBatch,
  renewPart,
  returnBatch,
  returnPart,
  stopBatch,
} from "../../store/batches/batches.ts"
import { type Change, listenToChanges } from "../../store/changes.ts"
import { nameBlob, placeBlob, sweepFiles } from "../../store/files/files.ts"
import { BlobDamaged } from "../../store/files/storage.ts"
import type { Database } from "../../store/sql.ts"
import { damagedInput, finalizeBatch } from "./finalize.ts"
import { checkInput } from "./input.ts"
import { type PartParts, type RanPart, encodeResults, runPart } from "./run-part.ts"

export interface RunnerParts extends PartParts {
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
  forget(change: Change): void
  close(): Promise<void>
}

/** A notification may be lost, and a gateway may die while it holds something. */
const lookEveryMs = 5_000
const renewEveryMs = 2_000
/** Longer than a busy machine may pause: what its gateway still runs is not run by another. */
const leaseMs = 30_000
/** What failed is tried again after so long. */
const putOffMs = 10_000
/** A part that so many gateways died of is not run again. */
const attemptsMax = 5
const sweepEveryMs = 60_000
/** While the last lines of one part run, another one begins. */
const partsAtOnce = 2

/** What a loop takes up: batches always, and parts, of which it runs so many lines at once. */
interface Share {
  readonly lines: number
  /** It takes parts only while all other loops have some, and of organizations that have none running here. */
  readonly isSpare: boolean
}

/** No organization can take all: a line is kept for the others, and one loop for batches alone. */
function sharesOf(concurrency: number): Share[] {
  const spare = concurrency > partsAtOnce ? [{ lines: 1, isSpare: true }] : []
  const loops = Math.min(partsAtOnce, concurrency)
  const shares = Array.from({ length: loops }, (_, at) => ({
    lines: Math.floor((concurrency - spare.length + at) / loops),
    isSpare: false,
  }))
  return [...shares, ...spare, { lines: 0, isSpare: false }]
}

export async function startBatchRunner(parts: RunnerParts): Promise<BatchRunner> {
  const runner = new Runner(parts)
  const stopListening = await listenToChanges(parts.database, (change) => runner.forget(change)).catch(
    async (error: unknown) => {
      await runner.close()
      throw error
    },
  )
  return {
    forget: (change) => runner.forget(change),
    close: async () => {
      await stopListening()
      await runner.close()
    },
  }
}

class Runner {
  readonly #parts: RunnerParts
  readonly #stop = new AbortController()
  readonly #partLoops: number
  readonly #loops: readonly Promise<void>[]
  /** The organizations of the parts that run here. */
  readonly #running: string[] = []
  readonly #sweepTimer: NodeJS.Timeout
  #sweeping: Promise<void> = Promise.resolve()
  /** End the present waits. */
  readonly #wakes = new Set<() => void>()
  /** Look at what is held at once. */
  readonly #looks = new Set<() => void>()
  #news = 0

  constructor(parts: RunnerParts) {
    this.#parts = parts
    this.#partLoops = Math.min(partsAtOnce, parts.concurrency)
    this.#loops = sharesOf(parts.concurrency).map((share) => this.#run(share))
    this.#sweepTimer = setInterval(() => this.#sweepNext(), sweepEveryMs).unref()
  }

  forget({ table }: Change): void {
    // Its files go with an organization.
    if (table === "organizations") this.#sweepNext()
    if (table !== "batches") return
    this.#wakeAll()
    for (const look of this.#looks) look()
  }

  async close(): Promise<void> {
    clearInterval(this.#sweepTimer)
    this.#stop.abort(new Fault("client_closed", "Cannot go on: the server is stopping"))
    for (const wake of this.#wakes) wake()
    await Promise.all([...this.#loops, this.#sweeping])
  }

  #wakeAll(): void {
    this.#news++
    for (const wake of this.#wakes) wake()
  }

  #now(): Date {
    return new Date(this.#parts.clock.nowMs())
  }

  #leasedUntil(): Date {
    return new Date(this.#parts.clock.nowMs() + leaseMs)
  }

  #putOffUntil(): Date {
    return new Date(this.#parts.clock.nowMs() + putOffMs)
  }

  #sweepNext(): void {
    this.#sweeping = this.#sweeping.then(() => this.#sweep())
  }

  async #sweep(): Promise<void> {
    const { database, storage, log } = this.#parts
    await sweepFiles(database, storage, this.#now()).catch((error: unknown) =>
      log.warn({ err: error }, "files that are no longer needed could not be removed"),
    )
  }

  async #run(share: Share): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const news = this.#news
      const isDone = await this.#step(share).catch((error: unknown) => {
        if (!this.#stop.signal.aborted)
          this.#parts.log.warn({ err: error }, "batches cannot be worked on now")
        return false
      })
      if (!isDone && news === this.#news) await this.#wait()
    }
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, lookEveryMs)
    this.#wakes.add(resolve)
    if (this.#stop.signal.aborted) resolve()
    await promise
    clearTimeout(timer)
    this.#wakes.delete(resolve)
  }

  /** False when there was nothing to do. */
  async #step(share: Share): Promise<boolean> {
    const { database, storage } = this.#parts
    await expireBatches(database, this.#now())
    const claim = { storage: storage.id, now: this.#now(), leasedUntil: this.#leasedUntil() }
    const batch = await claimBatch(database, claim)
    if (batch) {
      await this.#workOnBatch(batch)
      return true
    }
    if (share.lines === 0 || (share.isSpare && this.#running.length < this.#partLoops)) return false
    const exceptOf = share.isSpare ? [...this.#running] : []
    const claimed = await claimPart(database, { ...claim, exceptOf })
    if (!claimed) return false
    const { organizationId } = claimed.batch
    this.#running.push(organizationId)
    // The spare loop may have something to do now.
    this.#wakeAll()
    try {
      await this.#workOnPart(claimed.batch, claimed.part, share.lines)
    } finally {
      this.#running.splice(this.#running.indexOf(organizationId), 1)
    }
    return true
  }

  async #workOnBatch(batch: Batch): Promise<void> {
    const { database, log } = this.#parts
    const lost = new AbortController()
    const signal = AbortSignal.any([this.#stop.signal, lost.signal])
    const stopRenewing = this.#renew(lost, () => renewBatch(database, batch, this.#leasedUntil()))
    try {
      if (batch.status !== "validating") await finalizeBatch(this.#parts, batch, this.#now(), signal)
      else if (batch.attempts > attemptsMax) await this.#fail(batch, [interrupted])
      else await this.#validate(batch, signal)
      await stopRenewing()
    } catch (error) {
      await stopRenewing()
      const isStopping = this.#stop.signal.aborted
      if (!isStopping) {
        log.error({ err: error, batch: batch.id }, "a batch could not be worked on")
        await expireUnchecked(database, batch, this.#now())
      }
      // What stops is taken up at once, what fails after a while.
      await returnBatch(database, batch, isStopping ? null : this.#putOffUntil())
    }
  }

  async #validate(batch: Batch, signal: AbortSignal): Promise<void> {
    const { database } = this.#parts
    const checked = await checkInput(this.#parts, batch, signal)
    if (checked.errors.length > 0) return await this.#fail(batch, checked.errors)
    const isBegun = await database.transaction((sql) => beginBatch(sql, batch, checked, this.#now()))
    // It was stopped meanwhile, and can be finalized.
    if (!isBegun) await returnBatch(database, batch, null)
    this.forget({ table: "batches", id: batch.id })
  }

  async #fail(batch: Batch, errors: readonly BatchError[]): Promise<void> {
    await this.#parts.database.transaction((sql) =>
      finishBatch(sql, batch, {
        ending: "failed",
        errors: JSON.stringify(errors),
        outputFileId: null,
        errorFileId: null,
        completed: 0,
        now: this.#now(),
      }),
    )
  }

  async #workOnPart(batch: Batch, part: BatchPart, concurrency: number): Promise<void> {
    const { database } = this.#parts
    const halt = new AbortController()
    const stopRenewing = this.#renew(halt, () => renewPart(database, part, this.#leasedUntil()))
    const signals = { stop: this.#stop.signal, halt: AbortSignal.any([this.#stop.signal, halt.signal]) }
    try {
      const ran = await runPart(
        this.#parts,
        { batch, part },
        part.attempts > attemptsMax ? 0 : concurrency,
        signals,
      )
      if (ran.refused) await this.#stopBatch(batch, told(ran.refused))
      if (this.#stop.signal.aborted) await returnPart(database, part, null)
      else await this.#keep(part, ran)
      await stopRenewing()
    } catch (error) {
      await stopRenewing()
      if (this.#stop.signal.aborted) await returnPart(database, part, null)
      else await this.#putOff(batch, part, error)
    }
  }

  async #stopBatch(batch: Batch, errors: string): Promise<void> {
    await stopBatch(this.#parts.database, batch.id, { ending: "failed", errors }, this.#now())
  }

  /** What fails is run again after a while: its lines may have been charged. An input that stays away ends the batch. */
  async #putOff(batch: Batch, part: BatchPart, error: unknown): Promise<void> {
    const { database, log } = this.#parts
    log.error({ err: error, batch: batch.id, part: part.number }, "a part of a batch failed")
    if (!(error instanceof BlobDamaged)) await returnPart(database, part, this.#putOffUntil())
    else if (part.attempts > attemptsMax) await this.#stopBatch(batch, damagedInput(error))
  }

  async #keep(part: BatchPart, ran: RanPart): Promise<void> {
    const { database, storage } = this.#parts
    const blob = await storage.stage(once(Buffer.from(encodeResults(ran))))
    const completed = ran.results.filter((result) => result?.isSuccess === true).length
    const failed = ran.results.filter((result) => result?.isSuccess === false).length
    try {
      await placeBlob(database, storage, part.organizationId, blob, this.#now())
      await database.transaction(async (sql) => {
        await nameBlob(sql, storage, part.organizationId, blob)
        await endPart(sql, part, { sha256: blob.sha256, completed, failed, now: this.#now() })
      })
    } finally {
      await blob.discard()
    }
  }

  /** Renews a lease until the returned function is called; aborts `lost` when it is another's. */
  #renew(lost: AbortController, renew: () => Promise<boolean>): () => Promise<void> {
    let pending: Promise<void> = Promise.resolve()
    const once = async (): Promise<void> => {
      try {
        if (!(await renew())) lost.abort(new Fault("client_closed", "Cannot go on: the batch was stopped"))
      } catch (error) {
        this.#parts.log.warn({ err: error }, "the lease of a batch could not be renewed")
      }
    }
    const look = (): void => void (pending = pending.then(once))
    const timer = setInterval(look, renewEveryMs)
    this.#looks.add(look)
    return async () => {
      clearInterval(timer)
      this.#looks.delete(look)
      await pending
    }
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

function told({ error, line }: NonNullable<RanPart["refused"]>): string {
  const { code, message } = error.fault
  return JSON.stringify([{ code, message, line, param: null } satisfies BatchError])
}
