/** Starts, kills and loads gateway processes for the tests of money under faults. */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { recallLeases, sumHeld } from "../src/store/leases.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { isBefore, journalStart } from "../src/store/journal/journal.ts"
import { readJournal } from "../src/store/journal/segments.ts"
import { bootstrapKey } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

const script = join(import.meta.dirname, "money-gateway.ts")
const startTimeoutMs = 110_000
const recallEveryMs = 50

interface GatewayOptions {
  readonly databaseUrl: string
  readonly dataDirectory: string
  readonly env?: Record<string, string>
  /** The largest file it can write, in KiB: what a full disk looks like to a process. */
  readonly fileKibMax?: number
}

export class TestGateway {
  readonly url: string
  readonly process: ChildProcess

  private constructor(url: string, process: ChildProcess) {
    this.url = url
    this.process = process
  }

  static async start(options: GatewayOptions): Promise<TestGateway> {
    const limit = options.fileKibMax === undefined ? "" : `ulimit -f ${options.fileKibMax}; `
    const child = spawn("bash", ["-c", `${limit}exec "${process.execPath}" "${script}"`], {
      env: {
        PATH: process.env["PATH"] ?? "",
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "",
        UMPIRE_DATABASE_URL: options.databaseUrl,
        UMPIRE_DATA_DIR: options.dataDirectory,
        UMPIRE_BOOTSTRAP_KEY: bootstrapKey,
        UMPIRE_PORT: "0",
        UMPIRE_LOG_LEVEL: "error",
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    })
    return new TestGateway(await readyUrl(child), child)
  }

  /** Kilobytes that the process has in memory; where the system says so. */
  memoryKib(): number {
    const status = readFileSync(`/proc/${this.process.pid}/status`, "utf8")
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0)
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const ended = new Promise((resolve) => this.process.once("exit", resolve))
    this.process.kill(signal)
    await ended
  }
}

async function readyUrl(child: ChildProcess): Promise<string> {
  let output = ""
  let errors = ""
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()))
  // One that ends by itself later leaves its clients waiting: what it said last is told here.
  child.once("exit", (code) => code && process.stderr.write(`A gateway ended with ${code}: ${errors}\n`))
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`The gateway did not start: ${errors}`)), startTimeoutMs)
    child.once("exit", (code) => reject(new Error(`The gateway ended with ${code}: ${errors}`)))
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      const url = /ready on (http\S+)/.exec(output)?.[1]
      if (!url) return
      clearTimeout(timer)
      resolve(url)
    })
  })
}

/** 100 tokens: 100,000 ticks at the test model's price. */
const evidence = "x".repeat(100)
export const requestTicks = 100_000n
export const tokenTicks = 1_000n

export interface Reply {
  readonly status: number
  readonly code: string | null
  readonly retryAfter?: string | null
  readonly message?: string
}

/** Null when the connection broke before the whole answer was there. */
export async function ask(
  url: string,
  requestId: string,
  headers: Record<string, string> = {},
): Promise<Reply | null> {
  try {
    const response = await fetch(`${url}/v1/decisions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${bootstrapKey}`,
        "content-type": "application/json",
        "x-request-id": requestId,
        ...headers,
      },
      body: JSON.stringify({
        model: "test",
        input: evidence,
        questions: [{ type: "predicate", instructions: "?" }],
      }),
    })
    const { error } = (await response.json()) as { error?: { code: string; message: string } }
    const retryAfter = response.headers.get("retry-after")
    return { status: response.status, code: error?.code ?? null, retryAfter, message: error?.message ?? "" }
  } catch {
    return null
  }
}

const streamedTokens = 10
const message = "x".repeat(100 - streamedTokens)

/** The same price as `ask`, as a stream; its last event says how it ended. */
export async function askStream(url: string, requestId: string): Promise<Reply | null> {
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${bootstrapKey}`,
        "content-type": "application/json",
        "x-request-id": requestId,
      },
      body: JSON.stringify({
        model: "test",
        messages: [{ role: "user", content: message }],
        max_completion_tokens: streamedTokens,
        stream: true,
      }),
    })
    const text = await response.text()
    const code = /"code":"(\w+)"/.exec(text)?.[1] ?? (text.endsWith("data: [DONE]\n\n") ? null : "cut off")
    return { status: response.status, code: response.ok ? code : (code ?? "") }
  } catch {
    return null
  }
}

/** Everything that a gateway's journal still holds; nothing is deleted for minutes. */
export async function readRecords(dataDirectory: string): Promise<SequenceRecord[]> {
  const records: SequenceRecord[] = []
  for (let position = journalStart; ;) {
    const batch = await readJournal(join(dataDirectory, "journal"), position)
    records.push(...batch.records)
    if (!isBefore(position, batch.next)) return records
    position = batch.next
  }
}

/** The first account as a test wants it: no refills by itself, and exactly this balance. */
export async function prepareAccount(url: string, balanceTicks: bigint): Promise<string> {
  const database = await openPostgres({ url, connectionsMax: 1 })
  try {
    const [account] = await row({ id: column.text }).all(database)`SELECT id FROM billing_accounts`
    const id = account?.id ?? ""
    await database.query("UPDATE billing_accounts SET auto_refill_enabled = false")
    await untilNothingIsHeld(database, id)
    await database.query(
      `WITH entry AS (INSERT INTO ledger (billing_account_id, at, kind, amount_ticks, reference)
         SELECT id, now(), 'adjustment', $2 - balance_ticks, gen_random_uuid()::text FROM billing_accounts WHERE id = $1)
       UPDATE billing_accounts SET balance_ticks = $2 WHERE id = $1`,
      [id, balanceTicks],
    )
    return id
  } finally {
    await database.close()
  }
}

/** A balance that is set below what gateways hold would be overspent by the test itself. */
async function untilNothingIsHeld(database: Database, accountId: string): Promise<void> {
  for (;;) {
    await recallLeases(database, accountId, "gw_test")
    if ((await sumHeld(database, accountId)) === 0n) return
    await wait(recallEveryMs)
  }
}

export interface Books {
  readonly balanceTicks: bigint
  readonly ledgerTicks: bigint
  readonly heldTicks: bigint
  /** What each sequence was charged. */
  readonly charges: ReadonlyMap<string, bigint>
}

export async function readBooks(url: string): Promise<Books> {
  const database: Database = await openPostgres({ url, connectionsMax: 1 })
  try {
    const [sums] = await row({ balance: column.bigint, ledger: column.text, held: column.text }).all(
      database,
    )`SELECT balance_ticks AS balance, (SELECT sum(amount_ticks) FROM ledger) AS ledger,
      (SELECT coalesce(sum(held_ticks), 0) FROM leases) AS held FROM billing_accounts`
    const rows = await row({ seq_id: column.text, amount_ticks: column.bigint }).all(
      database,
    )`SELECT seq_id, amount_ticks FROM charges`
    return {
      balanceTicks: sums?.balance ?? 0n,
      ledgerTicks: BigInt(sums?.ledger ?? 0),
      heldTicks: BigInt(sums?.held ?? 0),
      charges: new Map(rows.map(({ seq_id, amount_ticks }) => [seq_id, amount_ticks])),
    }
  } finally {
    await database.close()
  }
}

/** Clients that ask without pause until told to stop; each request has an id of its own. */
export class Load {
  readonly acknowledged = new Set<string>()
  readonly refusals = new Map<string, number>()
  sent = 0
  broken = 0
  readonly #url: () => string
  readonly #headers: () => Record<string, string>
  readonly #clients: Promise<void>[]
  #running = true
  /** Told of every whole answer. */
  onReply: (reply: Reply) => void = () => undefined

  /** `headers` are those of the next request. */
  constructor(url: () => string, clients: number, headers: () => Record<string, string> = () => ({})) {
    this.#url = url
    this.#headers = headers
    this.#clients = Array.from({ length: clients }, () => this.#run())
  }

  async stop(): Promise<void> {
    this.#running = false
    await Promise.all(this.#clients)
  }

  async #run(): Promise<void> {
    while (this.#running) {
      const id = `load-${++this.sent}`
      const reply = await ask(this.#url(), id, this.#headers())
      if (reply === null) {
        this.broken++
        // The gateway is gone; a client that hammers on a closed port keeps the next one from starting.
        await new Promise((resolve) => setTimeout(resolve, 100))
        continue
      }
      if (reply.status === 200) this.acknowledged.add(id)
      else this.refusals.set(reply.code ?? "", (this.refusals.get(reply.code ?? "") ?? 0) + 1)
      this.onReply(reply)
    }
  }
}
