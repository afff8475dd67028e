/** Removes files that are no longer needed: those that have expired now and then, those of an organization when it is deleted. */
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Change } from "../../store/changes.ts"
import { sweepFiles } from "../../store/files/files.ts"
import type { FileStorage } from "../../store/files/storage.ts"
import type { Database } from "../../store/sql.ts"

interface SweeperDeps {
  readonly database: Database
  readonly storage: FileStorage
  readonly clock: Clock
  readonly log: Log
}

const everyMs = 60_000

export class FileSweeper {
  readonly #deps: SweeperDeps
  #sweeping: Promise<void> = Promise.resolve()

  constructor(deps: SweeperDeps) {
    this.#deps = deps
  }

  /** To be done by one of the gateways that see the storage. */
  get task() {
    return { name: `files.sweep.${this.#deps.storage.id}`, everyMs, run: () => this.#sweep() }
  }

  forget({ table }: Change): void {
    if (table === "organizations") void this.#sweep()
  }

  async close(): Promise<void> {
    await this.#sweeping
  }

  #sweep(): Promise<void> {
    const { database, storage, clock, log } = this.#deps
    const sweep = async (): Promise<void> =>
      await sweepFiles(database, storage, new Date(clock.nowMs())).catch((error: unknown) =>
        log.warn({ err: error }, "files that are no longer needed could not be removed"),
      )
    this.#sweeping = this.#sweeping.then(sweep)
    return this.#sweeping
  }
}
