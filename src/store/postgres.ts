/** The SQL port on PostgreSQL 15 or later through pg: a bounded pool, and one connection of its own for LISTEN. */
import { setTimeout as wait } from "node:timers/promises"
import pg from "pg"
import {
  SqlError,
  StoreUnavailable,
  type Database,
  type SqlRow,
  type SqlValue,
  type Transaction,
  type TransactionOptions,
  encodeValue,
  valueParsers,
} from "./sql.ts"
import { column } from "./rows.ts"
import { checkChannel, checkCommitted, ListenerSet, TransactionGuard, withRetries } from "./transact.ts"

const connectionsMaxDefault = 10
/** A busy server accepts connections no sooner than it answers. */
const connectTimeoutMs = 15_000
const statementTimeoutMs = 30_000
/** The server's own timeout comes first; this one is for a server that no longer answers. */
const answerTimeoutMs = statementTimeoutMs + 5_000
const idleInTransactionMs = 30_000
/** How long a connection may be silent before it is asked whether it is there: a listener sends nothing by itself. */
const keepAliveMs = 10_000
/** Callers that may wait for a connection; each waits at most connectTimeoutMs. */
const waitingMax = 1_000
const reconnectFirstMs = 100
const reconnectMaxMs = 5_000
const versionMin = 150_000

interface PostgresSettings {
  readonly url: string
  /** Of the server itself, where `url` is of a pooler that gives each transaction another of its sessions. */
  readonly directUrl?: string | undefined
  readonly connectionsMax?: number
}

export async function openPostgres(settings: PostgresSettings): Promise<Database> {
  const database = new PostgresDatabase(settings)
  try {
    const version = await column.integer.one(database)`SELECT current_setting('server_version_num')::int`
    if (version < versionMin) {
      throw new Error(
        `Cannot use this PostgreSQL: its version number is ${version}; version 15 or later would work`,
      )
    }
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

function clientConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "umpire",
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    types: { getTypeParser },
  }
}

/** What the server holds a session to. A pooler has no sessions to be told of it: there transactions say so themselves. */
const sessionLimits = {
  statement_timeout: statementTimeoutMs,
  idle_in_transaction_session_timeout: idleInTransactionMs,
}
const limitTransaction = Object.entries(sessionLimits)
  .map(([name, value]) => `; SET LOCAL ${name} = ${value}`)
  .join("")

declare module "pg" {
  interface Client {
    /** What is sent when a connection begins. */
    getStartupConf(): Record<string, string>
  }
}

/** Dates are those of UTC. Of what is sent when a connection begins, poolers know this. */
class UtcClient extends pg.Client {
  override getStartupConf(): Record<string, string> {
    return { ...super.getStartupConf(), TimeZone: "UTC" }
  }
}

/** Set on each client: the driver's own table of parsers is global to the process. */
const getTypeParser: typeof pg.types.getTypeParser = (oid, format) => {
  const own = format === "binary" ? undefined : valueParsers[oid]
  return own ?? pg.types.getTypeParser(oid, format)
}

type Isolation = NonNullable<TransactionOptions["isolation"]>

class PostgresDatabase implements Database {
  readonly #pool: pg.Pool
  readonly #subscriptions: Subscriptions
  readonly #guard = new TransactionGuard()
  readonly #begin: (isolation: Isolation) => string

  constructor({ url, directUrl, connectionsMax = connectionsMaxDefault }: PostgresSettings) {
    const isPooled = directUrl !== undefined
    this.#begin = (isolation) => `BEGIN ISOLATION LEVEL ${isolation}${isPooled ? limitTransaction : ""}`
    this.#pool = new pg.Pool({
      ...clientConfig(url),
      ...(isPooled ? {} : sessionLimits),
      Client: UtcClient,
      max: connectionsMax,
    })
    this.#pool.on("error", ignoreBreak)
    // For the client's life: the pool hands it over while what follows in the same packet, a shutdown say, is still to be read.
    this.#pool.on("connect", (client) => client.on("error", ignoreBreak))
    this.#subscriptions = new Subscriptions(directUrl ?? url)
  }

  query(text: string, values: readonly SqlValue[] = []): Promise<SqlRow[]> {
    this.#guard.check()
    return this.#withClient((client) => query(client, text, values))
  }

  async script(text: string): Promise<void> {
    this.#guard.check()
    await this.#withClient((client) => script(client, text))
  }

  transaction<Result>(
    work: (sql: Transaction) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    this.#guard.check()
    return withRetries(() =>
      this.#withClient((client) =>
        this.#guard.run(() =>
          runTransaction(client, work, this.#begin(options.isolation ?? "read committed")),
        ),
      ),
    )
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    this.#guard.check()
    checkChannel(channel)
    return this.#subscriptions.add(channel, listener)
  }

  async close(): Promise<void> {
    await this.#subscriptions.close()
    await this.#pool.end()
  }

  async #withClient<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#pool.waitingCount >= waitingMax) {
      throw new StoreUnavailable(
        `Cannot use the database: ${waitingMax} calls are waiting for a connection already`,
      )
    }
    const client = await this.#pool.connect().catch(rethrow)
    let broken = false
    try {
      return await work(client)
    } catch (error) {
      broken = error instanceof StoreUnavailable
      throw error
    } finally {
      client.release(broken)
    }
  }
}

async function query(client: pg.ClientBase, text: string, values: readonly SqlValue[]): Promise<SqlRow[]> {
  // Also without values the extended protocol, which takes one statement only: as on PGlite.
  const statement: pg.QueryConfig & { queryMode: string } = {
    text,
    values: values.map(encodeValue),
    queryMode: "extended",
  }
  const result = await client.query<SqlRow>(statement).catch(rethrow)
  return result.rows
}

async function script(client: pg.ClientBase, text: string): Promise<pg.QueryResult> {
  return client.query(text).catch(rethrow)
}

async function runTransaction<Result>(
  client: pg.PoolClient,
  work: (sql: Transaction) => Promise<Result>,
  begin: string,
): Promise<Result> {
  let open = true
  const checkOpen = (): void => {
    if (!open) throw new Error("Cannot use this transaction: it has ended")
  }
  await script(client, begin)
  try {
    const result = await work({
      query: async (text, values = []) => (checkOpen(), query(client, text, values)),
      script: async (text) => (checkOpen(), void (await script(client, text))),
    })
    open = false
    checkCommitted(await script(client, "COMMIT"))
    return result
  } catch (error) {
    open = false
    await rollBack(client, error)
    throw error
  }
}

async function rollBack(client: pg.PoolClient, reason: unknown): Promise<void> {
  if (reason instanceof StoreUnavailable) return
  await script(client, "ROLLBACK")
}

/** One connection for all channels; replaced when it breaks, with every channel listened to again. */
class Subscriptions {
  readonly #url: string
  readonly #listeners = new ListenerSet()
  readonly #stop = new AbortController()
  #client: Promise<pg.Client> | undefined

  constructor(url: string) {
    this.#url = url
  }

  async add(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    try {
      if (this.#listeners.add(channel, listener)) await this.#tell(`LISTEN ${channel}`)
    } catch (error) {
      this.#listeners.remove(channel, listener)
      throw error
    }
    return async () => {
      if (this.#listeners.remove(channel, listener)) await this.#tell(`UNLISTEN ${channel}`)
    }
  }

  async close(): Promise<void> {
    this.#stop.abort()
    const client = await this.#client?.catch(() => undefined)
    await client?.end().catch(() => undefined)
  }

  async #tell(statement: string): Promise<void> {
    this.#client ??= this.#connect()
    await script(await this.#client, statement)
  }

  /** Listens to every channel there is, so that a replacement knows what the one before it knew. */
  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(clientConfig(this.#url))
    client.on("error", ignoreBreak)
    client.on("notification", ({ channel, payload }) => this.#listeners.deliver(channel, payload ?? ""))
    try {
      await client.connect().catch(rethrow)
      for (const channel of this.#listeners.channels) await script(client, `LISTEN ${channel}`)
    } catch (error) {
      this.#client = undefined
      await client.end().catch(() => undefined)
      throw error
    }
    client.on("end", () => {
      this.#client = undefined
      void this.#replace()
    })
    return client
  }

  async #replace(): Promise<void> {
    for (
      let delayMs = reconnectFirstMs;
      !this.#stop.signal.aborted;
      delayMs = Math.min(delayMs * 2, reconnectMaxMs)
    ) {
      try {
        // Someone who had something to tell may have connected meanwhile: a second connection would never be closed.
        this.#client ??= this.#connect()
        await this.#client
        return
      } catch {
        await wait(delayMs, undefined, { signal: this.#stop.signal }).catch(() => undefined)
      }
    }
  }
}

/** A connection that breaks between two statements says so in an event; the next statement fails with the same. */
function ignoreBreak(): void {}

/** Server states that mean "not now" rather than "wrong": by class, then one by one. */
const unavailableClasses = new Set(["08", "53", "58"])
const unavailableStates = new Set(["57014", "57P01", "57P02", "57P03", "57P05", "25P03", "25006"])

function rethrow(cause: unknown): never {
  if (!(cause instanceof pg.DatabaseError) || cause.code === undefined) {
    throw new StoreUnavailable("Cannot reach the database: the connection failed or did not answer in time", {
      cause,
    })
  }
  const { code: state, constraint, detail, message } = cause
  if (message.includes("startup parameter"))
    throw new SqlError(
      "Cannot use database.url: a pooler there refuses what a session is told; set database.direct_url to the address of PostgreSQL itself",
      { state },
      cause,
    )
  if (unavailableClasses.has(state.slice(0, 2)) || unavailableStates.has(state)) {
    throw new StoreUnavailable(`Cannot use the database now: it answered ${state}`, { cause })
  }
  throw new SqlError(message, { state, constraint, detail }, cause)
}
