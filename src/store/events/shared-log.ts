/**
 * Where several gateways have an embedded engine each, all of them keep the events of all: each adds its own to a table of the
 * PostgreSQL that they share, and takes from there those of the others. A gateway that is new takes what the table has kept.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import type { Log } from "../../base/log.ts"
import { column, row, run, runCounted } from "../rows.ts"
import type { Database } from "../sql.ts"
import type { EventBatch } from "./event.ts"
import type { Events } from "./events.ts"

interface SharedLogSettings {
  readonly database: Database
  readonly events: Events
  readonly gatewayId: string
  /** Where this gateway notes how far it has read. */
  readonly positionFile: string
  readonly log: Log
  readonly hasDiskSpace: () => boolean
  /** With more than this the oldest go before their time: a later gateway lacks them. Then ClickHouse is right. */
  readonly logBytesMax?: number
}

const followEveryMs = 1_000
/** Of about half a MiB each. */
const batchesPerRead = 4
const logBytesMaxDefault = 8 * 1024 ** 3
/** Any number that nothing else takes. */
const writeLock = 0x6576_656e

const ReadBatch = row({ number: column.integer, gatewayId: column.text, data: column.bytes.nullable() })

export class SharedLog {
  readonly #settings: SharedLogSettings
  readonly #stop = new AbortController()
  #position: number
  #following: Promise<void> | null = null
  #loop: Promise<void> = Promise.resolve()
  #failures = 0

  private constructor(settings: SharedLogSettings, position: number) {
    this.#settings = settings
    this.#position = position
  }

  static async open(settings: SharedLogSettings): Promise<SharedLog> {
    const kept = Number(await readFile(settings.positionFile, "utf8").catch(() => "0"))
    const newest = await column.integer.one(
      settings.database,
    )`SELECT coalesce(max(number), 0) FROM event_batches`
    // A database that was restored counts from an earlier number; what comes again is not counted twice.
    const shared = new SharedLog(settings, Number.isSafeInteger(kept) && kept <= newest ? kept : 0)
    shared.#loop = shared.#keepFollowing()
    return shared
  }

  /** For the others. Numbers are given under a lock, so that no reader passes one that is not committed yet. */
  async publish({ data, newestMs }: EventBatch): Promise<void> {
    const { database, gatewayId } = this.#settings
    await database.transaction(async (sql) => {
      await run(sql)`SELECT pg_advisory_xact_lock(${writeLock})`
      await run(sql)`INSERT INTO event_batches (gateway_id, newest_at, data)
        VALUES (${gatewayId}, ${new Date(newestMs)}, ${data})`
    })
  }

  /** Resolves when what the others had published when it was called is kept here. */
  async follow(): Promise<void> {
    // A run that began before may not have seen all of it.
    await this.#following?.catch(() => undefined)
    this.#following ??= this.#read().finally(() => (this.#following = null))
    await this.#following
  }

  async prune(beforeMs: number): Promise<void> {
    const { database, log, logBytesMax = logBytesMaxDefault } = this.#settings
    await run(database)`DELETE FROM event_batches WHERE newest_at < ${new Date(beforeMs)}`
    const removed = await runCounted(database)`DELETE FROM event_batches WHERE number IN (
        SELECT number FROM (
          SELECT number, sum(octet_length(data)) OVER (ORDER BY number DESC) AS bytes FROM event_batches) b
        WHERE bytes > ${logBytesMax}) RETURNING number`
    if (removed > 0)
      log.warn(
        "events pass what gateways share by PostgreSQL: gateways that are added lack the oldest; use ClickHouse",
      )
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  async #keepFollowing(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.follow().then(
        () => (this.#failures = 0),
        (error: unknown) => {
          if (this.#failures++ === 0)
            this.#settings.log.warn(
              { err: error },
              "events of other gateways cannot be read; they are read later",
            )
        },
      )
      await wait(followEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #read(): Promise<void> {
    const { database, events, gatewayId, positionFile, hasDiskSpace } = this.#settings
    while (!this.#stop.signal.aborted && hasDiskSpace()) {
      const batches = await ReadBatch.all(database)`SELECT number, gateway_id,
          CASE WHEN gateway_id <> ${gatewayId} THEN data END AS data
        FROM event_batches WHERE number > ${this.#position} ORDER BY number LIMIT ${batchesPerRead}`
      for (const { number, data, gatewayId: from } of batches) {
        if (data !== null) await events.ask("receive", { data, token: `${from}:shared:${number}` })
        this.#position = number
      }
      const last = batches.at(-1)
      if (!last) return
      // A position that is lost is an older one: events come again and are recognised.
      await mkdir(dirname(positionFile), { recursive: true, mode: 0o700 })
      await writeFile(`${positionFile}.new`, String(last.number), { mode: 0o600 })
      await rename(`${positionFile}.new`, positionFile)
      if (batches.length < batchesPerRead) return
    }
  }
}
