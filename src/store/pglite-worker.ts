/** The thread that runs PGlite. */
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { PGlite } from "@electric-sql/pglite"
import { servePeer } from "../base/peer/serve.ts"
import { unpackCluster } from "./cluster-dump.ts"
import { valueParsers, type EncodedValue, type SqlRow } from "./sql.ts"

export interface PgliteWorkerSettings {
  /** Where the files are. */
  readonly directory: string
}

/** What the thread serves. PGlite runs what it is given in order, so calls may overlap. */
export interface PgliteService {
  open: { input: PgliteWorkerSettings; output: null }
  query: { input: { readonly text: string; readonly values: readonly EncodedValue[] }; output: Outcome }
  script: { input: string; output: Outcome }
  notifications: { input: null; item: Notification; output: never }
  close: { input: null; output: null }
}

/** A failure of a statement is an answer: it has PostgreSQL's own fields. */
export type Outcome = { readonly rows: SqlRow[] } | { readonly failure: StatementFailure }

interface Notification {
  readonly channel: string
  readonly payload: string
}

export interface StatementFailure {
  readonly message: string
  /** Absent when the failure did not come from PostgreSQL. */
  readonly state?: string | undefined
  readonly constraint?: string | undefined
  readonly detail?: string | undefined
}

/** A new cluster, dumped when the package was made; a clone has none and creates its own. It saves 4 s and 300 MB. */
const clusterDump = fileURLToPath(new URL("./cluster.tar.gz", import.meta.url))

/** The system's page cache holds the files; the default of 128 MB would be taken at once. */
const startParams = [...PGlite.defaultStartParams, "-c", "shared_buffers=16MB"]

let postgres: PGlite | undefined

servePeer<PgliteService>({
  open: async (settings) => {
    postgres = await start(settings)
    return null
  },
  query: async ({ text, values }) =>
    await outcomeOf(async () => (await opened().query<SqlRow>(text, [...values])).rows),
  script: async (text) =>
    await outcomeOf(async () => (await opened().exec(text)).map(({ command }) => ({ command }))),
  async *notifications() {
    const waiting: Notification[] = []
    let wake: (() => void) | undefined
    opened().onNotification((channel, payload) => {
      waiting.push({ channel, payload })
      wake?.()
    })
    for (;;) {
      while (waiting.length > 0) yield* waiting.splice(0)
      await new Promise<void>((resolve) => (wake = resolve))
    }
  },
  close: async () => {
    await postgres?.close()
    return null
  },
})

function opened(): PGlite {
  if (!postgres) throw new Error("The database is not open")
  return postgres
}

async function outcomeOf(run: () => Promise<SqlRow[]>): Promise<Outcome> {
  try {
    return { rows: await run() }
  } catch (error) {
    return { failure: describe(error) }
  }
}

async function start({ directory }: PgliteWorkerSettings): Promise<PGlite> {
  if (!existsSync(directory) && existsSync(clusterDump)) unpackCluster(clusterDump, directory)
  const postgres = await withoutOptimizing(async () => {
    const opening = new PGlite({ parsers: { ...valueParsers }, dataDir: directory, startParams })
    await opening.waitReady
    return opening
  })
  await postgres.exec("SET TimeZone = 'UTC'")
  return postgres
}

/**
 * Has V8 run the WebAssembly module that `open` compiles as its baseline compiler leaves it. The optimizing compiler takes
 * 1.2 GB and 4 s for a single function of PGlite's; without it a transaction takes some 10 % longer, a read 30 %.
 * Modules that are compiled later (undici has one) are optimized when they run hot: a module keeps the tiering that it
 * was compiled with, and tiering up without dynamic tiering would optimize everything at once.
 */
async function withoutOptimizing<Result>(open: () => Promise<Result>): Promise<Result> {
  setFlagsFromString("--no-wasm-tier-up")
  setFlagsFromString("--no-wasm-dynamic-tiering")
  try {
    return await open()
  } finally {
    setFlagsFromString("--wasm-dynamic-tiering")
  }
}

function describe(error: unknown): StatementFailure {
  if (!(error instanceof Error)) return { message: String(error) }
  // PGlite's error carries PostgreSQL's fields under these names; read one by one, absent ones stay undefined.
  const { code, constraint, detail } = error as { code?: string; constraint?: string; detail?: string }
  return { message: error.message, state: code, constraint, detail }
}
