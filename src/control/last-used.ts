/** Remembers when keys and sessions were used and writes it in batches, so that no request waits for it. */
import type { Log } from "../base/log.ts"
import { touchKeys } from "../store/keys.ts"
import { touchSession } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"

const flushEveryMs = 15_000
const pendingMax = 10_000
/** Uses that follow one another within this time are one. */
const exactMs = 100

export interface LastUsed {
  key(id: string, atMs: number): void
  session(id: string, atMs: number): void
  /** Writes what is pending now. */
  flush(): Promise<void>
  close(): Promise<void>
}

export function openLastUsed(database: Database, log: Log): LastUsed {
  let keys = new Map<string, number>()
  let sessions = new Map<string, number>()

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
    key: (id, atMs) => note(keys, id, atMs),
    session: (id, atMs) => note(sessions, id, atMs),
    flush,
    close: async () => {
      clearInterval(timer)
      await flushOrLog()
    },
  }
}

function note(uses: Map<string, number>, id: string, atMs: number): void {
  const known = uses.get(id)
  if (known !== undefined && atMs - known < exactMs) return
  // Beyond the bound a use goes unrecorded until the next batch; nothing depends on it.
  if (uses.size < pendingMax || known !== undefined) uses.set(id, atMs)
}
