import { createHash } from "node:crypto"
import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { idleSequence } from "../../../test/idle-sequence.ts"
import { catalogOf, catalogResolver, routerTo } from "../../../test/in-memory-gateway.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import type { Principal } from "../../contract/access.ts"
import { type QuestionSetContent, questionSetLimits } from "../../contract/question-sets/content.ts"
import type { ScoreEngine } from "../../engine/engine.ts"
import { contentKeyBytes, createContentCipher } from "../../store/content/cipher.ts"
import { insertExamples, sealInput } from "../../store/question-sets/examples.ts"
import { findJob, insertJob, smallSetExamplesMax } from "../../store/question-sets/jobs.ts"
import { encodeContent, findSet, insertSet, insertVersion } from "../../store/question-sets/sets.ts"
import type { Database } from "../../store/sql.ts"
import { type JobDeps, startJobs } from "./jobs.ts"

const ids = createIds(systemClock)
const now = new Date("2026-05-01T00:00:00Z")
const cipher = createContentCipher([new Uint8Array(contentKeyBytes)])
let database: Database

beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(async () => await database.close())

const content: QuestionSetContent = {
  model: "m",
  calibration: null,
  questions: [
    {
      type: "predicate",
      name: "urgent",
      instructions: "Is it urgent?",
      threshold: null,
      below: "abstain",
      target_accuracy: null,
      calibration: null,
    },
  ],
}

const inputs = {
  teach: { version: 1, questions: null, target_accuracy: null },
  compare: { from: 1, to: 1 },
  distil: { version: 1, model: "m", questions: null, budget_usd: "1" },
}

/** A set with examples and a job that teaches it, compares its version with itself, or distils. */
async function insertTeaching(latest = 1, kind: keyof typeof inputs = "teach") {
  const { organizationId } = await insertAccount(database, ids, now)
  const [setId, jobId] = [ids.next("qs"), ids.next("job")]
  const times = { createdAt: now, updatedAt: now }
  const set = { id: setId, organizationId, name: "mail", description: "", latest, createdBy: null }
  await insertSet(database, { ...set, ...times })
  const { text, hash } = encodeContent(content)
  const version = { setId, number: 1, hash, content: text, note: "", createdBy: null, createdAt: now }
  await insertVersion(database, version)
  const examples = Array.from({ length: 12 }, (_, at) => {
    const place = { id: ids.next("ex"), setId }
    return {
      ...place,
      ...sealInput(cipher, place, `text ${at}`),
      inputHash: createHash("sha256").update(String(at)).digest("hex"),
      split: "train" as const,
      labels: JSON.stringify({ urgent: at % 2 === 0 }),
      teacherLabels: "{}",
      source: "added" as const,
      ...times,
    }
  })
  await insertExamples(database, examples)
  const principal: Principal = {
    kind: "key",
    id: "key_1",
    userId: null,
    organizationId,
    role: null,
    permissions: null,
    rateLimit: null,
  }
  await insertJob(database, {
    id: jobId,
    setId,
    organizationId,
    kind,
    input: JSON.stringify(
      kind === "distil"
        ? {
            ...inputs.distil,
            texts: sealInput(cipher, { id: jobId, setId }, JSON.stringify(["text 100", "text 101"])),
          }
        : inputs[kind],
    ),
    principal: JSON.stringify(principal),
    createdAt: now,
  })
  return { organizationId, setId, jobId }
}

/** Says yes to texts with an even number. */
const scorer: Pick<ScoreEngine, "score"> = {
  score: async ({ evidence, branches }, { admit }) => {
    await admit(1)
    const margin = Number(evidence.slice(-1)) % 2 === 0 ? 2 : -2
    return { margins: new Float64Array(branches.length).fill(margin), inputTokens: 1 }
  },
}

const sequence = idleSequence()

function partsOf(changes: Partial<JobDeps> & { readonly scorer?: typeof scorer }): JobDeps {
  return {
    database,
    cipher,
    models: catalogResolver(catalogOf()),
    router: routerTo(changes.scorer ?? scorer),
    meter: { begin: () => sequence },
    ids,
    clock: systemClock,
    log: silentLog,
    timeoutMs: 60_000,
    hasRowSpace: () => true,
    changed: () => undefined,
    ...changes,
  }
}

/** Runs jobs until one has ended, or the gateway is said to be dead. */
async function runOne(
  store: Database,
  died?: Promise<void>,
  changes: Parameters<typeof partsOf>[0] = {},
): Promise<void> {
  const ended = Promise.withResolvers<void>()
  const jobs = await startJobs(partsOf({ database: store, changed: () => ended.resolve(), ...changes }))
  await Promise.race([ended.promise, ...(died ? [died] : [])])
  await jobs.close()
}

test("an organization whose jobs do not end keeps no other waiting, and its jobs go back at a stop", async () => {
  const stuck = [await insertTeaching(), await insertTeaching(1, "compare")]
  const { hanging, begun, slow } = hangingFor(stuck)
  const jobs = await startJobs(partsOf({ scorer: slow }))
  await expect.poll(() => begun, { interval: 10 }).toEqual(hanging)
  for (const kind of ["teach", "compare"] as const) {
    const { setId, jobId } = await insertTeaching(1, kind)
    await expect
      .poll(async () => (await findJob(database, setId, jobId))?.state, { interval: 10 })
      .toBe("succeeded")
  }
  await jobs.close()
  for (const { setId, jobId } of stuck)
    expect(await findJob(database, setId, jobId)).toMatchObject({ state: "queued", attempts: 0 })
  await database.query("DELETE FROM question_set_jobs")
})

test("a short teaching does not wait behind two long ones of other organizations", async () => {
  const long = [await insertTeaching(), await insertTeaching()]
  for (const { setId } of long) await insertMoreExamples(setId)
  const { hanging, begun, slow } = hangingFor(long)
  const jobs = await startJobs(partsOf({ scorer: slow }))
  await expect.poll(() => begun, { interval: 10, timeout: 60_000 }).toEqual(hanging)
  const { setId, jobId } = await insertTeaching()
  await expect
    .poll(async () => (await findJob(database, setId, jobId))?.state, { interval: 10, timeout: 60_000 })
    .toBe("succeeded")
  await jobs.close()
  await database.query("DELETE FROM question_set_jobs")
})

/** One more than a small set has. */
async function insertMoreExamples(setId: string): Promise<void> {
  await database.query(
    `INSERT INTO question_set_examples (id, set_id, input, input_hash, split, labels, teacher_labels, source,
      created_at, updated_at, sealed)
     SELECT e.set_id || n, e.set_id, 'more ' || n, 'more ' || n, e.split, e.labels, e.teacher_labels, e.source,
      e.created_at, e.updated_at, false
     FROM (SELECT * FROM question_set_examples WHERE set_id = $1 LIMIT 1) e, generate_series(1, $2) n`,
    [setId, smallSetExamplesMax],
  )
}

/** A scorer that does not end for these organizations; `begun` are those that it was asked for. */
function hangingFor(organizations: readonly { readonly organizationId: string }[]) {
  const hanging = new Set(organizations.map(({ organizationId }) => organizationId))
  const begun = new Set<string>()
  const slow: typeof scorer = {
    score: async (work, call) => {
      if (!hanging.has(work.organizationId)) return await scorer.score(work, call)
      begun.add(work.organizationId)
      return await never(call.signal)
    },
  }
  return { hanging, begun, slow }
}

async function never(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted()
  return await new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  )
}

test("what was taught is saved as a new version", async () => {
  const { organizationId, setId, jobId } = await insertTeaching()
  await runOne(database)
  expect(await findJob(database, setId, jobId)).toMatchObject({ state: "succeeded", error: null })
  expect((await findSet(database, organizationId, setId))?.latest).toBe(2)
})

test.each([
  ["with room for its answers asks and keeps them", true, "succeeded", ["text 100", "text 101"]],
  ["without room on the disk asks nothing", false, "failed", []],
] as const)("a distilling job %s", async (_, hasRoom, state, texts) => {
  const { setId, jobId } = await insertTeaching(1, "distil")
  const asked: string[] = []
  const counting: typeof scorer = {
    score: async (work, call) => {
      asked.push(work.evidence)
      return await scorer.score(work, call)
    },
  }
  await runOne(database, undefined, { scorer: counting, hasRowSpace: () => hasRoom })
  const job = await findJob(database, setId, jobId)
  expect([job?.state, job?.error ?? ""]).toEqual([state, hasRoom ? "" : expect.stringContaining("the disk")])
  expect(asked.toSorted()).toEqual(texts)
})

test("teaching makes the last version that a set may have, and none after it", async () => {
  const { versionsMax } = questionSetLimits
  for (const latest of [versionsMax - 1, versionsMax]) {
    const { organizationId, setId, jobId } = await insertTeaching(latest)
    await runOne(database)
    expect((await findJob(database, setId, jobId))?.state).toBe(latest < versionsMax ? "succeeded" : "failed")
    expect((await findSet(database, organizationId, setId))?.latest).toBe(versionsMax)
  }
})

/** What a gateway does with the store beside transactions. */
const shared: Omit<Database, "transaction"> = {
  query: async (text, values) => await database.query(text, values),
  script: async (text) => await database.script(text),
  listen: async (channel, listener) => await database.listen(channel, listener),
  close: async () => undefined,
}

test("a gateway that lost its job to another saves nothing", async () => {
  const { organizationId, setId, jobId } = await insertTeaching()
  const suspended: Database = {
    ...shared,
    // The lease ended while this gateway was about to save.
    transaction: async (work, options) => {
      await database.query("UPDATE question_set_jobs SET attempts = attempts + 1 WHERE id = $1", [jobId])
      return await database.transaction(work, options)
    },
  }
  await runOne(suspended)
  expect((await findSet(database, organizationId, setId))?.latest).toBe(1)
  expect(await findJob(database, setId, jobId)).toMatchObject({ state: "running", attempts: 2 })
})

test("a gateway that dies right after it saved leaves nothing that would be saved again", async () => {
  const { organizationId, setId, jobId } = await insertTeaching()
  const died = Promise.withResolvers<void>()
  let isDead = false
  const dying: Database = {
    ...shared,
    query: async (text, values) => {
      if (isDead) throw new Error("this gateway is gone")
      return await database.query(text, values)
    },
    transaction: async (work, options) => {
      const saved = await database.transaction(work, options)
      isDead = true
      died.resolve()
      return saved
    },
  }
  await runOne(dying, died.promise)
  const job = await findJob(database, setId, jobId)
  expect(job).toMatchObject({ state: "succeeded", attempts: 1, progress: 1, leasedUntil: null })
  expect(JSON.parse(job?.result ?? "null")).toMatchObject({ version: 2, questions: [{ name: "urgent" }] })
  expect((await findSet(database, organizationId, setId))?.latest).toBe(2)
})
