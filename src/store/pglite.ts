/** The SQL port on PGlite: PostgreSQL inside this process, in a worker thread because it blocks its event loop. */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { lockDirectory, type DirectoryLock } from "./directory-lock.ts"
import { SqlError, StoreUnavailable } from "./sql.ts"
import type { Database, SqlValue, Transaction, TransactionOptions } from "./sql.ts"
import { checkChannel, ListenerSet } from "./listeners.ts"
import type { WorkerFailure, WorkerReply, WorkerRequest, WorkerSettings } from "./pglite-worker.ts"
import { checkCommitted, TransactionGuard, withRetries } from "./transact.ts"
import { encodeValue } from "./values.ts"

/** Callers that may wait for the one connection; more means that the process is far beyond what it can do. */
const waitingMax = 10_000
/** A transaction has the only connection: one that never ends must not end everything. */
const transactionMaxMsDefault = 60_000

interface PgliteSettings {
  /** Where to keep the files; everything is in memory, and gone at the end, when absent. */
  readonly directory?: string
  /** See WorkerSettings. Creating a cluster takes 2 to 5 seconds, loading a dump half of one; tests open many. */
  readonly seedFile?: string
  /** How long the work of one transaction may take before it is rolled back. */
  readonly transactionMaxMs?: number
}

export async function openPglite(settings: PgliteSettings = {}): Promise<Database> {
  const { directory, seedFile, transactionMaxMs = transactionMaxMsDefault } = settings
  const seed = seedFile === undefined ? {} : { seedFile }
  if (directory === undefined) return connectWorker(startWorker(seed), { transactionMaxMs })

  await mkdir(directory, { recursive: true, mode: 0o700 })
  const lock = await lockDirectory(directory)
  try {
    return await connectWorker(startWorker({ ...seed, directory: join(directory, "postgres") }), {
      transactionMaxMs,
      lock,
    })
  } catch (error) {
    await lock.release()
    throw error
  }
}

export function startWorker(settings: WorkerSettings): Worker {
  return new Worker(new URL("./pglite-worker.ts", import.meta.url), { workerData: settings })
}

/** Waits until the worker can serve. Exported for the test that ends the worker under a running database. */
export async function connectWorker(worker: Worker, settings: ConnectionSettings): Promise<Database> {
  const connection = new WorkerConnection(worker)
  await connection.ready
  return new PgliteDatabase(connection, settings)
}

interface ConnectionSettings {
  readonly transactionMaxMs: number
  /** Given back when the database is closed. */
  readonly lock?: DirectoryLock
}

interface Waiter {
  resolve(rows: object[]): void
  reject(error: Error): void
}

/** Matches the worker's answers with the calls; when the worker ends, every call fails instead of waiting. */
class WorkerConnection {
  readonly ready: Promise<void>
  readonly listeners = new ListenerSet()
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiter>()
  #lastId = 0
  #ended: Error | undefined

  constructor(worker: Worker) {
    this.#worker = worker
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.ready = promise
    worker.on("message", (reply: WorkerReply) => {
      if (reply.kind === "ready") resolve()
      else if (reply.kind === "unusable") this.#end(new StoreUnavailable(unusable(reply.message)), reject)
      else this.#take(reply)
    })
    worker.on("error", (cause) => this.#end(new StoreUnavailable(workerEnded, { cause }), reject))
    worker.on("exit", () => this.#end(new StoreUnavailable(workerEnded), reject))
  }

  query(text: string, values: readonly SqlValue[]): Promise<object[]> {
    return this.#ask((id) => ({ id, kind: "query", text, values: values.map(encodeValue) }))
  }

  async script(text: string): Promise<void> {
    await this.#ask((id) => ({ id, kind: "script", text }))
  }

  async commit(): Promise<void> {
    const outcome = await this.#ask((id) => ({ id, kind: "script", text: "COMMIT" }))
    checkCommitted(outcome[0])
  }

  async close(): Promise<void> {
    if (this.#ended === undefined) await this.#ask((id) => ({ id, kind: "close" }))
    this.#ended = new StoreUnavailable("Cannot use the database: it is closed")
    await this.#worker.terminate()
  }

  #ask(request: (id: number) => WorkerRequest): Promise<object[]> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<object[]>()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    this.#worker.postMessage(request(id))
    this.#waiting.set(id, { resolve, reject })
    return promise
  }

  #take(reply: Exclude<WorkerReply, { kind: "ready" | "unusable" }>): void {
    if (reply.kind === "notification") return this.listeners.deliver(reply.channel, reply.payload)
    const waiter = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    if (reply.kind === "rows") waiter?.resolve(reply.rows)
    else waiter?.reject(toError(reply.failure))
  }

  #end(error: Error, rejectReady: (error: Error) => void): void {
    this.#ended ??= error
    rejectReady(this.#ended)
    for (const waiter of this.#waiting.values()) waiter.reject(this.#ended)
    this.#waiting.clear()
  }
}

class PgliteDatabase implements Database {
  readonly #connection: WorkerConnection
  readonly #settings: ConnectionSettings
  readonly #guard = new TransactionGuard()
  /** Settles when the last one in line is done. */
  #tail: Promise<unknown> = Promise.resolve()
  #waitingCount = 0

  constructor(connection: WorkerConnection, settings: ConnectionSettings) {
    this.#connection = connection
    this.#settings = settings
  }

  query<Row extends object>(text: string, values: readonly SqlValue[] = []): Promise<Row[]> {
    return this.#alone(() => query<Row>(this.#connection, text, values))
  }

  script(text: string): Promise<void> {
    return this.#alone(() => this.#connection.script(text))
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

async function query<Row extends object>(
  connection: WorkerConnection,
  text: string,
  values: readonly SqlValue[],
): Promise<Row[]> {
  // The caller names the columns of its own statement; the port cannot check them.
  return (await connection.query(text, values)) as Row[]
}

async function runTransaction<Result>(
  connection: WorkerConnection,
  work: (sql: Transaction) => Promise<Result>,
  { isolation = "read committed", maxMs }: TransactionOptions & { readonly maxMs: number },
): Promise<Result> {
  let open = true
  const checkOpen = (): void => {
    if (!open) throw new Error("Cannot use this transaction: it has ended")
  }
  const sql: Transaction = {
    query: async (text, values = []) => (checkOpen(), query(connection, text, values)),
    script: async (text) => (checkOpen(), connection.script(text)),
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

const workerEnded = "Cannot use the embedded database: its thread has ended; start the server again"

const unusable = (reason: string): string =>
  `Cannot start the embedded database: ${reason}; restore its directory from a backup or use another one`

function toError({ message, state, constraint, detail }: WorkerFailure): Error {
  if (state === undefined) return new StoreUnavailable(`Cannot use the embedded database: ${message}`)
  return new SqlError(message, { state, constraint, detail })
}
