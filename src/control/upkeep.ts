/** Removes what has expired, now and then; any gateway may do it, and several at once do no harm. */
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import { expireContents, purgeContentRemains, purgeTombstones } from "../store/content/content.ts"
import { purgeIdempotencyKeys } from "../store/idempotency.ts"
import { purgeRateBuckets } from "../store/rate-buckets.ts"
import { purgeCancellations } from "../store/response-cancellations.ts"
import { purgeStoredResponses } from "../store/responses.ts"
import { purgeSessions } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"

const everyMs = 10 * 60_000
/** Per round and kind, so that no statement holds many locks for long. */
const purgedMax = 1000
/** Of what may be as many as requests; what is left after so many waits for the next time. */
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
  for (let round = 0; round < roundsMax; round++)
    if ((await purgeIdempotencyKeys(database, now, purgedMax)) === 0) break
  await purgeSessions(database, now, purgedMax)
  await purgeContentRemains(database, now, purgedMax)
  for (let round = 0; round < roundsMax; round++)
    if ((await purgeRateBuckets(database, purgedMax)) === 0) break
  for (let round = 0; round < roundsMax; round++)
    if ((await purgeCancellations(database, purgedMax)) === 0) break
  for (let round = 0; round < roundsMax; round++) if ((await purgeStoredResponses(database, now)) === 0) break
  for (let round = 0; round < roundsMax; round++)
    if ((await expireContents(database, now, purgedMax)) === 0) break
  for (let round = 0; round < roundsMax; round++)
    if ((await purgeTombstones(database, now, purgedMax)) === 0) break
}
