/** Removes what has expired, now and then; any gateway may do it, and several at once do no harm. */
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import { purgeIdempotencyKeys } from "../store/idempotency.ts"
import { purgeStoredResponses } from "../store/responses.ts"
import { purgeSessions } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"

const everyMs = 10 * 60_000
/** Per round and kind, so that no statement holds many locks for long. */
const purgedMax = 1000
/** Of stored responses, which may be as many as requests; what is left after so many waits for the next time. */
const roundsMax = 1000

interface Upkeep {
  close(): Promise<void>
}

export function startUpkeep(database: Database, clock: Clock, log: Log): Upkeep {
  let running: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    running = purgeExpired(database, new Date(clock.nowMs())).catch((error: unknown) =>
      log.warn({ err: error }, "expired rows could not be removed"),
    )
  }, everyMs).unref()
  return {
    close: async () => {
      clearInterval(timer)
      await running
    },
  }
}

export async function purgeExpired(database: Database, now: Date): Promise<void> {
  await purgeIdempotencyKeys(database, now, purgedMax)
  await purgeSessions(database, now, purgedMax)
  for (let round = 0; round < roundsMax; round++)
    if ((await purgeStoredResponses(database, now)) === 0) return
}
