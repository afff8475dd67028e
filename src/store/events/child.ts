/** The analytics process: owns the events, works at low priority, and ends when the gateway does. */
import { readdirSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { getPriority, setPriority } from "node:os"
import { servePeer } from "../../base/peer/serve.ts"
import { lockDirectory } from "../directory-lock.ts"
import { type EventEngine, EventEngineError } from "./engine.ts"
import { Intake } from "./intake.ts"
import { openEngine } from "./open-engine.ts"
import { overview, timeseries } from "./reports.ts"
import { findSequence, findSequenceFacts, listSequences } from "./request-log.ts"
import type { AnalyticsService } from "./events.ts"
import { exportFile, holdings, sumCharged, sumSpendByTag } from "./upkeep.ts"

/** Dashboards and exports give way to requests: on a busy processor they get a thirtieth of what the model gets. */
const niceness = 15
/** The process before this one may still be ending. */
const lockAttemptsMax = 50
const lockRetryMs = 200

let engine: EventEngine | undefined
let intake: Intake | undefined

// Exports and copies hold what only the owner of the data directory may read.
process.umask(0o077)
giveWay()
servePeer<AnalyticsService>({
  open: async (place) => {
    if ("directory" in place) await own(place.directory)
    engine = await openEngine(place)
    intake = new Intake(engine)
    return null
  },
  overview: async (question) => await overview(opened(engine), question),
  timeseries: async (question) => await timeseries(opened(engine), question),
  sequence: async (lookup) => await findSequence(opened(engine), lookup),
  requests: async (question) => await listSequences(opened(engine), question),
  request: async (lookup) => await findSequenceFacts(opened(engine), lookup),
  take: async (part) => await opened(intake).take(part),
  receive: async ({ data, token }) => await opened(intake).receive(data, token),
  import: ({ file, share }) => opened(intake).import(file, share),
  export: async ({ file, ...excerpt }) => await exportFile(opened(engine), excerpt, file),
  copy: async ({ file }) => {
    await opened(engine).copy(file)
    return null
  },
  prune: async ({ beforeMs }) => {
    await opened(engine).prune(beforeMs)
    return null
  },
  sums: async (excerpt) => await sumCharged(opened(engine), excerpt),
  spendByTag: async (question) => await sumSpendByTag(opened(engine), question),
  holdings: async () => await holdings(opened(engine)),
  close: async () => {
    await engine?.close()
    return null
  },
})

/**
 * Linux keeps a priority for each thread: those that Node has started are told here, and later ones inherit it. A
 * gateway that is itself started lower stays there, for only root may go up.
 */
function giveWay(): void {
  const lower = Math.max(getPriority(), niceness)
  setPriority(lower)
  if (process.platform !== "linux") return
  for (const thread of readdirSync("/proc/self/task")) setPriority(Number(thread), lower)
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

function opened<Part extends EventEngine | Intake>(part: Part | undefined): Part {
  if (!part) throw new EventEngineError("Cannot use the events: they are not open")
  return part
}
