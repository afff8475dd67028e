/** Two gateways on one PostgreSQL: content that one deletes by id is not stored by the other, whenever it comes. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import { ContentApplier, contentConsumer } from "../src/gateway/content/applier.ts"
import { DroppedCounts } from "../src/gateway/content/dropped.ts"
import type { ContentRecord } from "../src/store/content/journal.ts"
import { type Journal, openJournal } from "../src/store/journal/journal.ts"
import { migrate } from "../src/store/migrate.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { cipher } from "./kept-content.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"

let fresh: FreshDatabase
let directory: string
/** The one that is asked to delete, and the store of the other. */
let platform: Platform
let elsewhere: Database
let journal: Journal<ContentRecord>
let applier: ContentApplier
let organizations: string[]
let bearer: string

beforeAll(async () => {
  fresh = await freshDatabase()
  directory = mkdtempSync(join(tmpdir(), "umpire-content-gateways-"))
  const here = await openPostgres({ url: fresh.url })
  elsewhere = await openPostgres({ url: fresh.url })
  await migrate(here)
  platform = await startPlatform(here)
  const { ids } = platform
  const seed = seeder(platform)
  organizations = [
    await seed.organization("Deletes", await seed.billingAccount()),
    await seed.organization("Keeps", await seed.billingAccount()),
  ]
  const owner = await seed.user("owner@content.test")
  await seed.member(organizations[0] ?? "", owner, "owner")
  bearer = await seed.session(owner)
  journal = await openJournal<ContentRecord>({
    directory,
    consumers: [contentConsumer],
    newGatewayId: () => ids.next("gw"),
  })
  applier = await ContentApplier.open({
    database: elsewhere,
    journal,
    dropped: new DroppedCounts(systemClock),
    onRedacting: () => undefined,
    clock: systemClock,
    ids,
    log: silentLog,
  })
})
afterAll(async () => {
  await journal.close()
  await platform.close()
  await platform.database.close()
  await elsewhere.close()
  await fresh.drop()
  rmSync(directory, { recursive: true })
})

/** As the other gateway answered it: in its journal, and in no database. */
async function answerElsewhere(organizationId: string): Promise<string> {
  const seqId = platform.ids.next("seq")
  await journal.append({
    seq_id: seqId,
    organization_id: organizationId,
    api_key_id: null,
    at: Date.now(),
    expires_at: Date.now() + 3_600_000,
    level: "answers",
    reference_hash: null,
    redact_with: null,
    review: null,
    sealed: cipher.seal({ organizationId, seqId }, "{}").toString("base64"),
  })
  return seqId
}

const remove = async (seqId: string): Promise<number> =>
  (
    await platform.send("DELETE", `/v1/organizations/${organizations[0]}/sequences/${seqId}/content`, {
      bearer,
    })
  ).status
const rowOf = async (seqId: string): Promise<unknown> =>
  (
    await elsewhere.query("SELECT state, sealed IS NULL AS emptied FROM content WHERE seq_id = $1", [seqId])
  )[0]

test("content in the journal of another gateway is deleted by its id when it comes, and that of others is not", async () => {
  const [org = "", other = ""] = organizations
  const [deleted, kept, foreign] = [
    await answerElsewhere(org),
    await answerElsewhere(org),
    await answerElsewhere(other),
  ]
  // Nothing is stored yet: the answer is that of an id that is not there.
  expect([await remove(deleted), await remove(deleted), await remove(foreign)]).toEqual([404, 404, 404])
  await applier.drain()
  expect(await rowOf(deleted)).toEqual({ state: "deleted", emptied: true })
  expect(await rowOf(kept)).toEqual({ state: "kept", emptied: false })
  expect(await rowOf(foreign)).toEqual({ state: "kept", emptied: false })
  const log = await platform.send("GET", `/v1/organizations/${org}/audit_log?action=content.delete`, {
    bearer,
  })
  expect(log.body.data.map(({ resource }: { resource: { id: string } }) => resource.id)).toEqual([
    foreign,
    deleted,
  ])
  expect(await remove(kept)).toBe(204)
})

test("content that is deleted while the other gateway stores it is deleted, whoever comes first", async () => {
  const [org = ""] = organizations
  for (let round = 0; round < 20; round++) {
    const seqId = await answerElsewhere(org)
    await Promise.all([remove(seqId), applier.drain()])
    expect(await rowOf(seqId)).toEqual({ state: "deleted", emptied: true })
  }
})
