/**
 * Which models of this machine are in memory. A model is loaded when it is first used; it leaves when it was idle for long,
 * or when another one needs its room, the least recently used first. One that is in use finishes what it has before.
 */
import { readFile } from "node:fs/promises"
import type { Clock } from "../base/clock.ts"
import type { EngineReport } from "../contract/fleet-report.ts"
import type { Log } from "../base/log.ts"
import { Fault } from "../contract/errors.ts"
import { CachedModel, type Loadable, type ModelSource, closed } from "./cached-model.ts"

export interface ModelCacheSettings {
  /** What all models may take together; null for no limit. One that is larger than it is loaded alone. */
  readonly memoryBytesMax: number | null
  /** How long a model may be idle; null for ever. */
  readonly idleMsMax: number | null
  readonly clock: Clock
  readonly log: Log
  /** How long a load waits for models that are in use. */
  readonly roomWaitMsMax?: number
  /** Of the process, in bytes; null where that cannot be told. */
  readonly measure?: (pid: number) => Promise<number | null>
}

const roomWaitMsMaxDefault = 30_000
const sweepEveryMs = 1_000
const retryAfterMs = 1_000

export class ModelCache {
  readonly #settings: ModelCacheSettings
  readonly #models = new Set<CachedModel<Loadable>>()
  readonly #sweep: NodeJS.Timeout | undefined
  /** Loads follow one another: each makes its own room. */
  #loads: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(settings: ModelCacheSettings) {
    this.#settings = settings
    if (settings.idleMsMax === null && settings.memoryBytesMax === null) return
    const sweep = async (): Promise<void> =>
      await this.sweep().catch((error: unknown) =>
        settings.log.error({ err: error }, "a model could not be unloaded"),
      )
    this.#sweep = setInterval(() => void sweep(), sweepEveryMs).unref()
  }

  /** Loads nothing yet. */
  add<Engine extends Loadable>(source: ModelSource<Engine>): CachedModel<Engine> {
    const cached = new CachedModel(source, this.#settings.clock, async (one) => await this.#queueLoad(one))
    this.#models.add(cached)
    return cached
  }

  /** Those that are in memory, are on their way there, or were there. */
  report(): EngineReport[] {
    return [...this.#models].flatMap((cached) => cached.report() ?? [])
  }

  /** Measures what is in memory, and unloads what was idle for too long or is too much. */
  async sweep(): Promise<void> {
    const { idleMsMax, memoryBytesMax } = this.#settings
    for (const cached of this.#loaded()) await this.#measure(cached)
    if (idleMsMax !== null)
      for (const cached of this.#idle()) if (cached.idleMs >= idleMsMax) await this.#unload(cached, "idle")
    if (memoryBytesMax === null) return
    // The last one stays, however large it grew.
    while (this.#loaded().length > 1 && this.#memoryBytes() > memoryBytesMax) {
      const [oldest] = this.#idle()
      if (!oldest) return
      await this.#unload(oldest, "the models in memory grew")
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweep)
    await this.#loads
    const ended = await Promise.allSettled([...this.#models].map(async (one) => await one.end(closed())))
    for (const one of ended)
      if (one.status === "rejected")
        this.#settings.log.error({ err: one.reason }, "a model could not be unloaded")
  }

  async #queueLoad(cached: CachedModel<Loadable>): Promise<void> {
    const turn = this.#loads.then(async () => {
      if (!this.#isLoadable(cached)) return
      await this.#makeRoom(cached)
      if (!this.#isLoadable(cached)) return
      await cached.load()
      await this.#measure(cached)
    })
    this.#loads = turn.catch(() => undefined)
    await turn
  }

  /** Those that waited for it may have gone away. Throws when everything is being closed. */
  #isLoadable(cached: CachedModel<Loadable>): boolean {
    if (this.#isClosed) throw closed()
    return cached.isWanted
  }

  async #makeRoom(wanted: CachedModel<Loadable>): Promise<void> {
    const { memoryBytesMax, roomWaitMsMax = roomWaitMsMaxDefault } = this.#settings
    if (memoryBytesMax === null) return
    const needed = await wanted.needed()
    for (;;) {
      if (this.#memoryBytes() + needed <= memoryBytesMax) return
      const oldest = this.#idle()[0] ?? this.#loaded().toSorted(byLastUse)[0]
      // Nothing else is in memory: it is larger than all that is allowed.
      if (!oldest) return
      if (!(await this.#unload(oldest, `room for ${wanted.model}`, roomWaitMsMax))) throw noRoom(wanted.model)
    }
  }

  /** False when those who use it do not end in time; then it stays. */
  async #unload(cached: CachedModel<Loadable>, why: string, waitMsMax?: number): Promise<boolean> {
    const { model, purpose } = cached
    if (!(await cached.unload(waitMsMax))) return false
    this.#settings.log.info({ model, purpose, why }, "a model was unloaded")
    return true
  }

  async #measure(cached: CachedModel<Loadable>): Promise<void> {
    const { pid } = cached
    const bytes = pid === undefined ? null : await (this.#settings.measure ?? processBytes)(pid)
    if (bytes !== null) cached.measured(bytes)
  }

  #memoryBytes(): number {
    return this.#loaded().reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
  }

  #loaded(): CachedModel<Loadable>[] {
    return [...this.#models].filter(({ isLoaded }) => isLoaded)
  }

  /** The least recently used first. */
  #idle(): CachedModel<Loadable>[] {
    return this.#loaded()
      .filter(({ isIdle }) => isIdle)
      .toSorted(byLastUse)
  }
}

const byLastUse = (a: CachedModel<Loadable>, b: CachedModel<Loadable>): number => b.idleMs - a.idleMs

const noRoom = (model: string): Fault =>
  new Fault(
    "overloaded",
    `Cannot load ${model}: the models that take its room (engine.memory_budget_mib) are all in use; try again later`,
    { retryAfterMs },
  )

const kibibyte = 1024

/** As Linux tells it; on other systems a model counts as its estimate. */
async function processBytes(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return kilobytes === undefined ? null : Number(kilobytes) * kibibyte
}
