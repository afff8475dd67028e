/** The free space of a disk, of which a part is kept for the journal: what callers store is written only into the rest. */
import { statfsSync } from "node:fs"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"

const mebibyte = 1024 * 1024

/** How long an answer of the system counts; what is claimed meanwhile is taken from it. */
const freshMs = 1_000

/** Null where it cannot be told. */
type FreeBytes = (directory: string) => number | null

export class DiskSpace {
  readonly reservedBytes: number
  readonly #directory: string
  readonly #clock: Clock
  readonly #read: FreeBytes
  #free: number | null = null
  #readMs = -Infinity

  constructor(
    { directory, reservedBytes }: { directory: string; reservedBytes: number },
    clock: Clock,
    read: FreeBytes = readFreeBytes,
  ) {
    this.#directory = directory
    this.reservedBytes = reservedBytes
    this.#clock = clock
    this.#read = read
  }

  /** As far as it is known. */
  get freeBytes(): number | null {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#readMs >= freshMs) {
      this.#free = this.#read(this.#directory)
      this.#readMs = nowMs
    }
    return this.#free
  }

  /** Whether so many bytes may be written without the reserve; they count as written. A disk that cannot be asked has room. */
  claim(bytes: number): boolean {
    const free = this.freeBytes
    if (free === null) return true
    if (free - bytes < this.reservedBytes) return false
    this.#free = free - bytes
    return true
  }
}

/** Of the disk that a directory is on, by default the server's own. */
export const diskOf = (
  { journal, data_dir }: Pick<Config, "journal" | "data_dir">,
  clock: Clock,
  directory: string = data_dir,
): DiskSpace => new DiskSpace({ directory, reservedBytes: journal.disk_free_min_mib * mebibyte }, clock)

function readFreeBytes(directory: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(directory)
    return bavail * bsize
  } catch {
    return null
  }
}
