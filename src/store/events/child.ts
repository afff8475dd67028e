/** The analytics process: owns the events, works at low priority, and ends when the gateway does. */
import { mkdir } from "node:fs/promises"
import { setPriority } from "node:os"
import { join } from "node:path"
import { lockDirectory } from "../directory-lock.ts"
import { type EventEngine, EventEngineError } from "./engine.ts"
import { findSequence } from "./lookup.ts"
import type { Ask, Place, Reply, Work, WorkKind } from "./protocol.ts"
import { overview, timeseries } from "./reports.ts"
import { exportFile, holdings, importFile, sumCharged, takeJournal } from "./upkeep.ts"

/** Dashboards and exports give way to requests. */
const niceness = 5
/** The process before this one may still be ending. */
const lockAttemptsMax = 50
const lockRetryMs = 200

let engine: EventEngine | undefined

setPriority(niceness)
process.on("message", (ask: Ask) => void answer(ask))
// What was acknowledged is on disk; what was not is sent again. Native threads are not waited for.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"))
// The gateway decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
process.on("SIGINT", () => undefined)
process.on("SIGTERM", () => undefined)

const workers: {
  readonly [Kind in WorkKind]: (input: Work[Kind]["input"]) => Promise<Work[Kind]["output"]>
} = {
  open: async (place) => {
    engine = await openEngine(place)
    return null
  },
  overview: async (question) => await overview(opened(), question),
  timeseries: async (question) => await timeseries(opened(), question),
  sequence: async (lookup) => await findSequence(opened(), lookup),
  take: async (part) => await takeJournal(opened(), part),
  import: async ({ file }) => await importFile(opened(), file),
  export: async ({ file, ...excerpt }) => await exportFile(opened(), excerpt, file),
  prune: async ({ beforeMs }) => {
    await opened().prune(beforeMs)
    return null
  },
  sums: async (excerpt) => await sumCharged(opened(), excerpt),
  holdings: async () => await holdings(opened()),
  close: async () => {
    await engine?.close()
    return null
  },
}

async function answer(ask: Ask): Promise<void> {
  // The kind of an ask decides the type of its input, in the protocol as here.
  const work = workers[ask.kind] as (input: unknown) => Promise<unknown>
  let reply: Reply
  try {
    reply = { id: ask.id, output: await work(ask.input) }
  } catch (error) {
    reply = { id: ask.id, failure: error instanceof Error ? error.message : String(error) }
  }
  process.send?.(reply)
}

/** Engines are loaded where they are used: no machine has all of them. */
async function openEngine(place: Place): Promise<EventEngine> {
  switch (place.engine) {
    case "clickhouse": {
      const { openClickhouse } = await import("./clickhouse-engine.ts")
      return await openClickhouse(place.url)
    }
    case "chdb": {
      await own(place.directory)
      const { openChdb } = await import("./chdb-engine.ts")
      return await openChdb(join(place.directory, "chdb"))
    }
    case "duckdb": {
      await own(place.directory)
      const { openDuckdb } = await import("./duckdb-engine.ts")
      return await openDuckdb(join(place.directory, "events.duckdb"))
    }
    default:
      return place satisfies never
  }
}

async function own(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (let attempt = 1; ; attempt++) {
    try {
      await lockDirectory(directory)
      return
    } catch (error) {
      if (attempt >= lockAttemptsMax) throw error
      await new Promise((resolve) => setTimeout(resolve, lockRetryMs))
    }
  }
}

function opened(): EventEngine {
  if (!engine) throw new EventEngineError("Cannot use the events: they are not open")
  return engine
}
