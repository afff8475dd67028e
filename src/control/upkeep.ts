/** Removes what has expired, now and then. */
import type { Clock } from "../base/clock.ts"
import { expireContents, purgeContentRemains, purgeTombstones } from "../store/content/content.ts"
import { purgeIdempotencyKeys } from "../store/idempotency.ts"
import { purgeRateBuckets } from "../store/rate-buckets.ts"
import { purgeCancellations } from "../store/response-cancellations.ts"
import { purgeStoredResponses } from "../store/responses.ts"
import { purgeSessions } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"
import type { PeriodicTask } from "./periodic.ts"

const everyMs = 10 * 60_000
/** Per round and kind, so that no statement holds many locks for long. */
const purgedMax = 1000
/** Of what may be as many as requests; what is left after so many waits for the next time. */
const roundsMax = 1000

export function purgeTask(database: Database, clock: Clock): PeriodicTask {
  return { name: "expired.purge", everyMs, run: () => purgeExpired(database, new Date(clock.nowMs())) }
}

export async function purgeExpired(database: Database, now: Date): Promise<void> {
  await purgeSessions(database, now, purgedMax)
  await purgeContentRemains(database, now, purgedMax)
  const purges = [
    () => purgeIdempotencyKeys(database, now, purgedMax),
    () => purgeRateBuckets(database, purgedMax),
    () => purgeCancellations(database, purgedMax),
    () => purgeStoredResponses(database, now),
    () => expireContents(database, now, purgedMax),
    () => purgeTombstones(database, now, purgedMax),
  ]
  for (const purge of purges) for (let round = 0; round < roundsMax && (await purge()) > 0; round++);
}
