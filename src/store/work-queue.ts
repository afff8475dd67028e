/**
 * Work that gateways share: each claims what is due under a lease, taking turns between owners, renews the lease while it works,
 * and gives back what it has when it stops. The rows stay in the tables of each kind, which says how they are claimed.
 */
import type { Clock } from "../base/clock.ts"
import { FairTurns } from "../base/turns.ts"
import type { Log } from "../base/log.ts"
import { Fault } from "../contract/errors.ts"
import type { Change } from "./changes.ts"
import { column, run, runCounted } from "./rows.ts"
import type { Sql, SqlValue } from "./sql.ts"

export interface Lease {
  readonly now: Date
  /** Who holds the work beyond this without renewing it is dead, and another gateway takes it. */
  readonly until: Date
}

export interface WorkSignals {
  /** This gateway stops. */
  readonly stop: AbortSignal
  /** The work was cancelled, or another gateway has it. */
  readonly lost: AbortSignal
  /** Either. */
  readonly halt: AbortSignal
}

/** Organizations that have something due: rows as the kind's own SQL says. */
export const listOrganizations = (sql: Sql, rows: SqlValue) =>
  column.text.all(sql)`SELECT DISTINCT organization_id FROM ${rows}`

export interface WorkKind<Item> {
  /** As logs name it. */
  readonly name: string
  /** Its changes may bring work, or cancel some. */
  readonly table?: Change["table"]
  /** In this gateway. */
  readonly parallelMax: number
  readonly perOwnerMax: number
  readonly leaseMs?: number
  /** Those with something due, such as organizations. */
  listOwners(now: Date): Promise<readonly string[]>
  /** The owner's next; null when there is none, because another gateway was first. */
  claim(owner: string, lease: Lease): Promise<Item | null>
  /** False when the work was cancelled or another gateway has it. Without it, no work may take longer than the lease. */
  renew?(item: Item, until: Date): Promise<boolean>
  /** Ends the work, or puts it off. What throws is left to its lease, unless the gateway stops. */
  run(item: Item, signals: WorkSignals): Promise<void>
  /** Work that the stop has interrupted: another gateway may have it at once. */
  giveBack(item: Item): Promise<void>
}

interface WorkQueueDeps {
  readonly clock: Clock
  readonly log: Log
}

/** A notification may be lost, and work becomes due, or free of the lease of a gateway that died. */
const pollIntervalMs = 1_000
const renewIntervalMs = 1_000
/** Longer than a busy machine may pause: what its gateway still runs is not run by another. */
const leaseMsDefault = 30_000
/** While the store is away. */
const backoffMsMax = 30_000

/** Works until it is closed. It follows changes: those of its table may bring work, or cancel some. */
export class WorkQueue<Item> {
  readonly #deps: WorkQueueDeps
  readonly #kind: WorkKind<Item>
  readonly #turns: FairTurns
  readonly #stop = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** Renew the leases that are held. */
  readonly #renewals = new Set<() => void>()
  readonly #loop: Promise<void>
  #wakes = 0
  #endWait: () => void = () => undefined

  constructor(deps: WorkQueueDeps, kind: WorkKind<Item>) {
    this.#deps = deps
    this.#kind = kind
    this.#turns = new FairTurns(kind.perOwnerMax)
    this.#loop = this.#run()
  }

  invalidate({ table }: Change): void {
    if (table !== this.#kind.table) return
    this.wake()
    // Some may have been cancelled.
    for (const renew of this.#renewals) renew()
  }

  /** There may be something to do. */
  wake(): void {
    this.#wakes++
    this.#endWait()
  }

  isWorkingFor(owner: string): boolean {
    return this.#turns.running(owner) > 0
  }

  async close(): Promise<void> {
    this.#stop.abort(new Fault("client_closed", "Cannot go on: the server is stopping"))
    this.#endWait()
    await this.#loop
    await Promise.all(this.#running)
  }

  async #run(): Promise<void> {
    let waitMs = pollIntervalMs
    while (!this.#stop.signal.aborted) {
      const wakes = this.#wakes
      try {
        await this.#fill()
        waitMs = pollIntervalMs
      } catch (error) {
        this.#deps.log.warn({ err: error }, `${this.#kind.name} cannot be claimed now`)
        waitMs = Math.min(backoffMsMax, 2 * waitMs)
      }
      if (wakes === this.#wakes) await this.#wait(waitMs)
    }
  }

  async #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    this.#endWait = resolve
    if (this.#stop.signal.aborted) resolve()
    await promise
    clearTimeout(timer)
  }

  /** Claims until every place is taken or nothing is due. */
  async #fill(): Promise<void> {
    const { clock } = this.#deps
    const { parallelMax, leaseMs = leaseMsDefault } = this.#kind
    if (this.#running.size >= parallelMax) return
    const owners = new Set(await this.#kind.listOwners(new Date(clock.nowMs())))
    while (this.#running.size < parallelMax && !this.#stop.signal.aborted) {
      const owner = this.#turns.next(owners)
      if (owner === undefined) return
      const nowMs = clock.nowMs()
      const lease = { now: new Date(nowMs), until: new Date(nowMs + leaseMs) }
      const item = await this.#kind.claim(owner, lease)
      if (item === null) owners.delete(owner)
      else this.#begin(owner, item)
    }
  }

  #begin(owner: string, item: Item): void {
    const end = this.#turns.begin(owner)
    const work = this.#work(item)
      .catch((error: unknown) =>
        this.#deps.log.warn({ err: error }, `${this.#kind.name} could not be ended; the lease runs out`),
      )
      .finally(() => {
        end()
        this.#running.delete(work)
        this.wake()
      })
    this.#running.add(work)
  }

  async #work(item: Item): Promise<void> {
    const stop = this.#stop.signal
    const lost = new AbortController()
    const halt = AbortSignal.any([stop, lost.signal])
    const endRenewal = this.#keepLease(item, lost)
    try {
      await this.#kind.run(item, { stop, lost: lost.signal, halt })
    } catch (error) {
      if (!stop.aborted) throw error
      await this.#kind.giveBack(item)
    } finally {
      await endRenewal()
    }
  }

  /** Renews the lease until the returned function is called; aborts `lost` when it is another's. */
  #keepLease(item: Item, lost: AbortController): () => Promise<void> {
    const { clock, log } = this.#deps
    const { name, leaseMs = leaseMsDefault } = this.#kind
    let pending: Promise<void> = Promise.resolve()
    const renewOnce = async (): Promise<void> => {
      try {
        if (!(await this.#kind.renew?.(item, new Date(clock.nowMs() + leaseMs))))
          lost.abort(new Fault("client_closed", "Cannot go on: the work was cancelled"))
      } catch (error) {
        log.warn({ err: error }, `the lease of ${name} could not be renewed`)
      }
    }
    if (!this.#kind.renew) return () => pending
    const renew = (): void => void (pending = pending.then(renewOnce))
    const timer = setInterval(renew, renewIntervalMs)
    this.#renewals.add(renew)
    return async () => {
      clearInterval(timer)
      this.#renewals.delete(renew)
      await pending
    }
  }
}

/** Those of the tasks that are due, and that no other gateway does. */
export const listDueTasks = (sql: Sql, names: readonly string[], now: Date) =>
  column.text.all(sql)`SELECT name FROM unnest(${names}::text[]) AS task(name)
    LEFT JOIN periodic_tasks t USING (name)
    WHERE t.due_at IS NULL OR (t.due_at <= ${now} AND (t.held_until IS NULL OR t.held_until <= ${now}))`

/** Returns false when the task is not due or another gateway does it. */
export const takeTask = async (sql: Sql, name: string, { now, until }: Lease) =>
  (await runCounted(sql)`INSERT INTO periodic_tasks AS t (name, due_at, held_until)
    VALUES (${name}, ${now}, ${until})
    ON CONFLICT (name) DO UPDATE SET held_until = excluded.held_until
    WHERE t.due_at <= ${now} AND (t.held_until IS NULL OR t.held_until <= ${now}) RETURNING name`) > 0

export const finishTask = (sql: Sql, name: string, dueAt: Date) =>
  run(sql)`UPDATE periodic_tasks SET due_at = ${dueAt}, held_until = NULL WHERE name = ${name}`
