/** The SQL port on PGlite: PostgreSQL inside this process, in a worker thread because it blocks its event loop. */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { threadChannel } from "../base/peer/supervisor.ts"
import { Connection } from "../base/peer/connection.ts"
import { PeerGone } from "../base/peer/peer.ts"
import { lockDirectory, type DirectoryLock } from "./directory-lock.ts"
import {
  SqlError,
  StoreUnavailable,
  type Database,
  type SqlRow,
  type SqlValue,
  type Transaction,
  type TransactionOptions,
  encodeValue,
} from "./sql.ts"
import type { Outcome, PgliteService, StatementFailure, PgliteWorkerSettings } from "./pglite-worker.ts"
import { checkChannel, checkCommitted, ListenerSet, TransactionGuard, withRetries } from "./transact.ts"

/** Callers that may wait for the one connection; more means that the process is far beyond what it can do. */
const waitingMax = 10_000
/** A transaction has the only connection: one that never ends must not end everything. */
const transactionMaxMsDefault = 60_000

interface PgliteSettings {
  /** Where to keep the files; a new cluster is created in an empty one. */
  readonly directory: string
  /** How long the work of one transaction may take before it is rolled back. */
  readonly transactionMaxMs?: number
}

export async function openPglite(settings: PgliteSettings): Promise<Database> {
  const { directory, transactionMaxMs = transactionMaxMsDefault } = settings
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const lock = await lockDirectory(directory)
  try {
    return await connectPglite(startPglite(), clusterIn(directory), { transactionMaxMs, lock })
  } catch (error) {
    await lock.release()
    throw error
  }
}

/** Waits until the thread can serve. Exported for the test that ends the thread under a running database. */
export async function connectPglite(
  peer: Connection<PgliteService>,
  worker: PgliteWorkerSettings,
  settings: ConnectionSettings,
): Promise<Database> {
  try {
    await peer.call("open", worker)
  } catch (error) {
    await peer.close()
    if (error instanceof PeerGone) throw new StoreUnavailable(threadEnded, { cause: error })
    throw new StoreUnavailable(unusable(error instanceof Error ? error.message : String(error)))
  }
  return new PgliteDatabase(new PgliteConnection(peer), settings)
}

/** Exported for the test that ends the thread, as the function above. */
export const clusterIn = (directory: string): PgliteWorkerSettings => ({
  directory: join(directory, "postgres"),
})

export function startPglite(): Connection<PgliteService> {
  return new Connection(threadChannel(new URL("./pglite-worker.ts", import.meta.url)))
}

interface ConnectionSettings {
  readonly transactionMaxMs: number
  /** Given back when the database is closed. */
  readonly lock?: DirectoryLock
}

/** When the thread ends, every call fails as an outage instead of waiting. */
class PgliteConnection {
  readonly listeners = new ListenerSet()
  readonly #peer: Connection<PgliteService>
  #isClosed = false

  constructor(peer: Connection<PgliteService>) {
    this.#peer = peer
    // The end of the thread ends the notifications; calls tell of it.
    void this.#deliver().catch(() => undefined)
  }

  async query(text: string, values: readonly SqlValue[] = []): Promise<SqlRow[]> {
    return await this.#ask(() => this.#peer.call("query", { text, values: values.map(encodeValue) }))
  }

  async script(text: string): Promise<SqlRow[]> {
    return await this.#ask(() => this.#peer.call("script", text))
  }

  async commit(): Promise<void> {
    const outcome = await this.script("COMMIT")
    checkCommitted(outcome[0])
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#peer.alive) await this.#peer.call("close", null)
    await this.#peer.close()
  }

  async #ask(call: () => Promise<Outcome>): Promise<SqlRow[]> {
    if (this.#isClosed) throw new StoreUnavailable("Cannot use the database: it is closed")
    const outcome = await call().catch((error: unknown) => {
      throw error instanceof PeerGone ? new StoreUnavailable(threadEnded, { cause: error }) : error
    })
    if ("failure" in outcome) throw toError(outcome.failure)
    return outcome.rows
  }

  async #deliver(): Promise<never> {
    const notifications = await this.#peer.stream("notifications", null)
    for (;;) {
      const { done, value } = await notifications.next()
      if (!done) this.listeners.deliver(value.channel, value.payload)
    }
  }
}

class PgliteDatabase implements Database {
  readonly #connection: PgliteConnection
  readonly #settings: ConnectionSettings
  readonly #guard = new TransactionGuard()
  /** Settles when the last one in line is done. */
  #tail: Promise<unknown> = Promise.resolve()
  #waitingCount = 0

  constructor(connection: PgliteConnection, settings: ConnectionSettings) {
    this.#connection = connection
    this.#settings = settings
  }

  query(text: string, values: readonly SqlValue[] = []): Promise<SqlRow[]> {
    return this.#alone(() => this.#connection.query(text, values))
  }

  script(text: string): Promise<void> {
    return this.#alone(async () => void (await this.#connection.script(text)))
  }

  transaction<Result>(
    work: (sql: Transaction) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    const attempt = (): Promise<Result> =>
      this.#guard.run(() =>
        runTransaction(this.#connection, work, { ...options, maxMs: this.#settings.transactionMaxMs }),
      )
    return withRetries(() => this.#alone(attempt))
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    checkChannel(channel)
    const { listeners } = this.#connection
    if (listeners.add(channel, listener)) await this.script(`LISTEN ${channel}`)
    return async () => {
      if (listeners.remove(channel, listener)) await this.script(`UNLISTEN ${channel}`)
    }
  }

  async close(): Promise<void> {
    await this.#alone(() => this.#connection.close())
    await this.#settings.lock?.release()
  }

  /** Runs `work` when everyone before is done: there is one connection, and transactions must not interleave. */
  async #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#guard.check()
    if (this.#waitingCount >= waitingMax) {
      throw new StoreUnavailable(`Cannot use the database: ${waitingMax} calls are waiting for it already`)
    }
    this.#waitingCount++
    const turn = this.#tail.then(work)
    this.#tail = turn.catch(() => undefined)
    try {
      return await turn
    } finally {
      this.#waitingCount--
    }
  }
}

async function runTransaction<Result>(
  connection: PgliteConnection,
  work: (sql: Transaction) => Promise<Result>,
  { isolation = "read committed", maxMs }: TransactionOptions & { readonly maxMs: number },
): Promise<Result> {
  let open = true
  const checkOpen = (): void => {
    if (!open) throw new Error("Cannot use this transaction: it has ended")
  }
  const sql: Transaction = {
    query: async (text, values) => (checkOpen(), connection.query(text, values)),
    script: async (text) => (checkOpen(), void (await connection.script(text))),
  }
  await connection.script(`BEGIN ISOLATION LEVEL ${isolation}`)
  try {
    const result = await within(maxMs, work(sql))
    open = false
    await connection.commit()
    return result
  } catch (error) {
    open = false
    // Nothing to undo when the worker is gone, and the first error says more.
    await connection.script("ROLLBACK").catch(() => undefined)
    throw error
  }
}

async function within<Result>(maxMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: tooLong, reject } = Promise.withResolvers<never>()
  const message = `Cannot go on with a transaction: its work took more than ${maxMs} ms`
  const timer = setTimeout(() => reject(new StoreUnavailable(message)), maxMs)
  try {
    return await Promise.race([work, tooLong])
  } finally {
    clearTimeout(timer)
  }
}

const threadEnded = "Cannot use the embedded database: its thread has ended; start the server again"

const unusable = (reason: string): string =>
  `Cannot start the embedded database: ${reason}; restore its directory from a backup or use another one`

function toError({ message, state, constraint, detail }: StatementFailure): Error {
  if (state === undefined) return new StoreUnavailable(`Cannot use the embedded database: ${message}`)
  return new SqlError(message, { state, constraint, detail })
}
