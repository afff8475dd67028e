/** Remembers when keys and sessions were used and writes it in batches, so that no request waits for it. */
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import { touchKeys } from "../store/keys.ts"
import { touchSession } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"

const flushEveryMs = 15_000
const pendingMax = 10_000

export interface LastUsed {
  key(id: string): void
  session(id: string): void
  /** Writes what is pending now. */
  flush(): Promise<void>
  close(): Promise<void>
}

export function openLastUsed(database: Database, clock: Clock, log: Log): LastUsed {
  let keys = new Map<string, number>()
  let sessions = new Map<string, number>()

  const note = (uses: Map<string, number>, id: string): void => {
    // Beyond the bound a use goes unrecorded until the next batch; nothing depends on it.
    if (uses.size < pendingMax || uses.has(id)) uses.set(id, clock.nowMs())
  }
  const flush = async (): Promise<void> => {
    const [usedKeys, usedSessions] = [keys, sessions]
    keys = new Map()
    sessions = new Map()
    await touchKeys(database, new Map([...usedKeys].map(([id, atMs]) => [id, new Date(atMs)])))
    for (const [id, atMs] of usedSessions) await touchSession(database, id, new Date(atMs))
  }
  const flushOrLog = async (): Promise<void> => {
    await flush().catch((error: unknown) => log.warn({ err: error }, "last uses could not be written"))
  }
  const timer = setInterval(() => void flushOrLog(), flushEveryMs).unref()

  return {
    key: (id) => note(keys, id),
    session: (id) => note(sessions, id),
    flush,
    close: async () => {
      clearInterval(timer)
      await flushOrLog()
    },
  }
}
