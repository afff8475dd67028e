/** The thread that runs PGlite. */
import { readFile, rename, writeFile } from "node:fs/promises"
import { threadId } from "node:worker_threads"
import { PGlite } from "@electric-sql/pglite"
import { servePeer } from "../base/peer/connection.ts"
import { valueParsers, type EncodedValue } from "./values.ts"

export interface PgliteWorkerSettings {
  /** Where the files are; in memory when absent. */
  readonly directory?: string
  /** A dump of a freshly created cluster, used instead of creating one; written when it does not exist. */
  readonly seedFile?: string
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
export type Outcome = { readonly rows: object[] } | { readonly failure: StatementFailure }

export interface Notification {
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

let postgres: PGlite | undefined

servePeer<PgliteService>({
  open: async (settings) => {
    postgres = await start(settings)
    return null
  },
  query: async ({ text, values }) =>
    await outcomeOf(async () => (await opened().query<object>(text, [...values])).rows),
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

async function outcomeOf(run: () => Promise<object[]>): Promise<Outcome> {
  try {
    return { rows: await run() }
  } catch (error) {
    return { failure: describe(error) }
  }
}

async function start({ directory, seedFile }: PgliteWorkerSettings): Promise<PGlite> {
  const seed = seedFile === undefined ? undefined : await readSeed(seedFile)
  const postgres = new PGlite({
    parsers: { ...valueParsers },
    ...(directory === undefined ? {} : { dataDir: directory }),
    ...(seed === undefined ? {} : { loadDataDir: seed }),
  })
  await postgres.waitReady
  await postgres.exec("SET TimeZone = 'UTC'")
  if (seedFile !== undefined && seed === undefined) await writeSeed(postgres, seedFile)
  return postgres
}

async function readSeed(seedFile: string): Promise<Blob | undefined> {
  const bytes = await readFile(seedFile).catch(() => undefined)
  return bytes && new Blob([bytes])
}

/** Written aside and renamed, so that another process never reads half of it. */
async function writeSeed(postgres: PGlite, seedFile: string): Promise<void> {
  const dump = await postgres.dumpDataDir("none")
  const partial = `${seedFile}.${process.pid}.${threadId}`
  await writeFile(partial, dump.stream())
  await rename(partial, seedFile)
}

function describe(error: unknown): StatementFailure {
  if (!(error instanceof Error)) return { message: String(error) }
  // PGlite's error carries PostgreSQL's fields under these names; read one by one, absent ones stay undefined.
  const { code, constraint, detail } = error as { code?: string; constraint?: string; detail?: string }
  return { message: error.message, state: code, constraint, detail }
}
