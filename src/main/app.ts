/** What every module is opened with, and the list that modules are folded into. */
import { type Clock, systemClock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { type Ids, createIds } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import { threads } from "../base/peer/threads.ts"
import { Metrics, type Tracer } from "../base/telemetry.ts"
import type { PeriodicTask } from "../control/periodic.ts"
import type { Change } from "../store/changes.ts"
import { type DiskSpace, diskOf } from "../store/disk-space.ts"
import { addDiskMetrics } from "./metrics.ts"
import { openTelemetry } from "./telemetry.ts"

/** A part of the server as the rest of it sees it; what else it has is for those that are opened with it. */
interface Module {
  readonly tasks?: readonly PeriodicTask[]
  addMetrics?(metrics: Metrics): void
  /** Told of changes that this process makes, so that the next request sees them. */
  invalidate?(change: Change): void
  close?(): Promise<void>
}

/** Told what the start waits for. */
export type Progress = (step: string) => void

export interface App {
  readonly config: Config
  readonly log: Log
  readonly progress: Progress
  readonly clock: Clock
  readonly ids: Ids
  readonly metrics: Metrics
  /** Of the data directory. */
  readonly disk: DiskSpace
  /** Whether so many bytes may be added to the database; on PostgreSQL its own disk says that. */
  readonly hasRowSpace: (bytes: number) => boolean
  /** Undefined where traces go nowhere. */
  readonly tracer: Tracer | undefined
  /** Whether it stops, and its address as browsers see it, which is known once it listens. */
  readonly state: { stopping: boolean; url: string }
  readonly publicUrl: () => string
  /** Adds a module. When the server stops it is closed after those that are added later. */
  readonly use: <Added extends Module>(module: Added) => Added
  readonly invalidate: (change: Change) => void
  tasks(): readonly PeriodicTask[]
  close(): Promise<void>
}

export async function openApp(config: Config, log: Log, progress: Progress): Promise<App> {
  const modules: Module[] = []
  const metrics = new Metrics()
  const state = { stopping: false, url: config.server.public_url ?? "" }
  const use = <Added extends Module>(module: Added): Added => {
    modules.push(module)
    module.addMetrics?.(metrics)
    return module
  }
  // First, so that it is closed last: what is written when others close may need a thread.
  use(threads)
  const disk = diskOf(config, systemClock)
  addDiskMetrics(metrics, disk)
  const { tracer } = use(await openTelemetry(config, "umpire", { log }))
  return {
    config,
    log,
    progress,
    clock: systemClock,
    ids: createIds(systemClock),
    metrics,
    disk,
    hasRowSpace: (bytes) => config.database.url !== undefined || disk.claim(bytes),
    tracer,
    state,
    publicUrl: () => state.url,
    use,
    invalidate: (change) => {
      for (const module of modules) module.invalidate?.(change)
    },
    tasks: () => modules.flatMap(({ tasks = [] }) => tasks),
    close: async () => {
      for (const module of modules.splice(0).toReversed()) await module.close?.()
    },
  }
}
