/** The thread that runs PGlite: answers one request after the other and forwards notifications. */
import { readFile, rename, writeFile } from "node:fs/promises"
import { parentPort, threadId, workerData, type MessagePort } from "node:worker_threads"
import { PGlite } from "@electric-sql/pglite"
import { valueParsers, type EncodedValue } from "./values.ts"

export interface WorkerSettings {
  /** Where the files are; in memory when absent. */
  readonly directory?: string
  /** A dump of a freshly created cluster, used instead of creating one; written when it does not exist. */
  readonly seedFile?: string
}

export type WorkerRequest =
  | {
      readonly id: number
      readonly kind: "query"
      readonly text: string
      readonly values: readonly EncodedValue[]
    }
  | { readonly id: number; readonly kind: "script"; readonly text: string }
  | { readonly id: number; readonly kind: "close" }

export type WorkerReply =
  | { readonly kind: "ready" }
  | { readonly kind: "unusable"; readonly message: string }
  | { readonly kind: "rows"; readonly id: number; readonly rows: object[] }
  | { readonly kind: "failure"; readonly id: number; readonly failure: WorkerFailure }
  | { readonly kind: "notification"; readonly channel: string; readonly payload: string }

export interface WorkerFailure {
  readonly message: string
  /** Absent when the failure did not come from PostgreSQL. */
  readonly state?: string | undefined
  readonly constraint?: string | undefined
  readonly detail?: string | undefined
}

if (parentPort === null) throw new Error("Cannot run here: this module is the entry of a worker thread")
// True because only pglite.ts starts this file, with these settings.
await serve(parentPort, workerData as WorkerSettings)

async function serve(port: MessagePort, settings: WorkerSettings): Promise<void> {
  const reply = (message: WorkerReply): void => port.postMessage(message)
  let postgres: PGlite
  try {
    postgres = await start(settings)
  } catch (error) {
    reply({ kind: "unusable", message: String(error) })
    return
  }
  postgres.onNotification((channel, payload) => reply({ kind: "notification", channel, payload }))
  // PGlite queues what it is given in order, so requests may overlap here.
  port.on("message", (request: WorkerRequest) => {
    void answer(postgres, request).then(reply)
  })
  reply({ kind: "ready" })
}

async function start({ directory, seedFile }: WorkerSettings): Promise<PGlite> {
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

async function answer(postgres: PGlite, request: WorkerRequest): Promise<WorkerReply> {
  const { id } = request
  try {
    switch (request.kind) {
      case "query": {
        const { rows } = await postgres.query<object>(request.text, [...request.values])
        return { kind: "rows", id, rows }
      }
      case "script": {
        const results = await postgres.exec(request.text)
        return { kind: "rows", id, rows: results.map(({ command }) => ({ command })) }
      }
      case "close":
        await postgres.close()
        return { kind: "rows", id, rows: [] }
    }
  } catch (error) {
    return { kind: "failure", id, failure: describe(error) }
  }
}

function describe(error: unknown): WorkerFailure {
  if (!(error instanceof Error)) return { message: String(error) }
  // PGlite's error carries PostgreSQL's fields under these names; read one by one, absent ones stay undefined.
  const { code, constraint, detail } = error as { code?: string; constraint?: string; detail?: string }
  return { message: error.message, state: code, constraint, detail }
}
