/** Removes what has expired, now and then. */
import type { Clock } from "../base/clock.ts"
import type { ContentCipher } from "../store/content/cipher.ts"
import { purgeCascadeDays } from "../store/cascade-days.ts"
import { expireContents, purgeContentRemains, purgeTombstones } from "../store/content/content.ts"
import { sealStoredTexts } from "../store/content/seal-stored.ts"
import { purgeIdempotencyKeys } from "../store/idempotency.ts"
import { sealStoredInputs } from "../store/question-sets/examples.ts"
import { purgeChallenges } from "../store/passkeys.ts"
import { purgeRateBuckets } from "../store/rate-buckets.ts"
import { purgeConversations } from "../store/conversations.ts"
import { purgeCancellations, purgeStoredResponses } from "../store/responses.ts"
import { purgeSessions } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"
import type { PeriodicTask } from "./periodic.ts"

const everyMs = 10 * 60_000
/** Per round and kind, so that no statement holds many locks for long. */
const purgedMax = 1000
/** Of what may be as many as requests; what is left after so many waits for the next time. */
const roundsMax = 1000
const cascadeDaysKept = 400
const dayMs = 24 * 3_600_000

export function purgeTask(database: Database, clock: Clock): PeriodicTask {
  return { name: "expired.purge", everyMs, run: () => purgeExpired(database, new Date(clock.nowMs())) }
}

/** So many texts at once hold the event loop for some milliseconds. */
const sealedMax = 50

/** Encrypts what was stored before the installation had a key; once that is done, all that is written is encrypted. */
export function sealTask(database: Database, cipher: ContentCipher): PeriodicTask {
  let isDone = false
  const run = async (): Promise<void> => {
    if (isDone) return
    while ((await sealStoredInputs(database, cipher, sealedMax)) > 0);
    await sealStoredTexts(database, cipher, sealedMax)
    isDone = true
  }
  return { name: "examples.seal", everyMs, run }
}

export async function purgeExpired(database: Database, now: Date): Promise<void> {
  await purgeSessions(database, now, purgedMax)
  await purgeContentRemains(database, now, purgedMax)
  const purges = [
    () => purgeIdempotencyKeys(database, now, purgedMax),
    () => purgeRateBuckets(database, purgedMax),
    () => purgeChallenges(database, now, purgedMax),
    () => purgeCascadeDays(database, new Date(now.getTime() - cascadeDaysKept * dayMs), purgedMax),
    () => purgeCancellations(database, purgedMax),
    () => purgeStoredResponses(database, now),
    () => purgeConversations(database, now),
    () => expireContents(database, now, purgedMax),
    () => purgeTombstones(database, now, purgedMax),
  ]
  for (const purge of purges) for (let round = 0; round < roundsMax && (await purge()) > 0; round++);
}
