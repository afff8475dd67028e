/** Counts content that was to be kept and was not: for the metrics at once, for its organization in the store. */
import type { Clock } from "../../base/clock.ts"
import type { DroppedContent } from "../../store/content/settings.ts"
import { addDropped } from "../../store/content/settings.ts"
import type { Database } from "../../store/sql.ts"

export const dropReasons = [
  /** The journal is full or cannot be written, or its disk is nearly full. */
  "journal",
  "too_large",
  /** It could not be redacted in time. */
  "redaction",
  /** What is to be kept was not known, because the store was away. */
  "settings",
  /** It had to be redacted by a question set and could not be decrypted. */
  "decryption",
] as const
export type DropReason = (typeof dropReasons)[number]

interface Dropped {
  readonly count: number
  readonly lastMs: number
}

export class DroppedCounts {
  readonly #clock: Clock
  readonly #totals = new Map<DropReason, number>()
  /** By organization and reason: what the store does not have yet. */
  readonly #pending = new Map<string, Map<DropReason, Dropped>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(organizationId: string, reason: DropReason): void {
    this.#totals.set(reason, (this.#totals.get(reason) ?? 0) + 1)
    this.#count(organizationId, reason, { count: 1, lastMs: this.#clock.nowMs() })
  }

  /** Since the start. */
  totals(): ReadonlyMap<DropReason, number> {
    return this.#totals
  }

  pending(organizationId: string): DroppedContent[] {
    return [...(this.#pending.get(organizationId) ?? [])].map(([reason, { count, lastMs }]) => ({
      reason,
      count,
      lastAt: new Date(lastMs),
    }))
  }

  /** What cannot be written now stays for the next time. */
  async flush(database: Database): Promise<void> {
    for (const [organizationId, dropped] of this.#pending) {
      const counts = this.pending(organizationId)
      this.#pending.delete(organizationId)
      try {
        await database.transaction(async (sql) => {
          for (const count of counts) await addDropped(sql, organizationId, count)
        })
      } catch (error) {
        for (const [reason, one] of dropped) this.#count(organizationId, reason, one)
        throw error
      }
    }
  }

  #count(organizationId: string, reason: DropReason, { count, lastMs }: Dropped): void {
    const own = this.#pending.get(organizationId) ?? new Map<DropReason, Dropped>()
    this.#pending.set(organizationId, own)
    const known = own.get(reason)
    own.set(reason, { count: (known?.count ?? 0) + count, lastMs: Math.max(known?.lastMs ?? 0, lastMs) })
  }
}
