/** What batches do when a caller, the storage or another organization fails them: over a real store and real files. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest"
import { everyBatchPath } from "../../../test/every-batch-path.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { givenOrganization, nextId } from "../../../test/store/conformance-fixtures.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import type { Principal } from "../../contract/access.ts"
import type { Call } from "../../contract/endpoint.ts"
import { type Batch, cancelBatch, findBatch, insertBatch, listParts } from "../../store/batches/batches.ts"
import { findFile, insertFile, placeBlob, sweepFiles } from "../../store/files/files.ts"
import { type FileStorage, openDirectoryStorage } from "../../store/files/storage.ts"
import { readLines } from "../../store/lines.ts"
import type { Database } from "../../store/sql.ts"
import { LiveTraffic } from "../routing/queue.ts"
import type { BatchCaller, LineEndpoint } from "./run-line.ts"
import { type BatchRunner, type RunnerDeps, startBatchRunner } from "./runner.ts"

let database: Database
let directory: string
let storage: FileStorage
let runner: BatchRunner | null = null
const ids = createIds()

beforeAll(async () => {
  database = await openTestDatabase()
  directory = await mkdtemp(join(tmpdir(), "umpire-runner-"))
  storage = await openDirectoryStorage(directory, Date.now())
})
afterEach(async () => {
  await runner?.close()
  runner = null
  await database.query("DELETE FROM batches")
})
afterAll(async () => {
  await database.close()
  await rm(directory, { recursive: true })
})

type LineCall = Call<{}, {}, Uint8Array>

const lineNumber = ({ body }: LineCall): number =>
  (JSON.parse(Buffer.from(body).toString()) as { n: number }).n

/** Four lines at once: loops with one and two of them, and one that is spare. */
async function start(answer: LineEndpoint["handler"], changes: Partial<RunnerDeps> = {}): Promise<void> {
  const endpoint = { surface: "classification", handler: answer } as const
  runner = await startBatchRunner({
    database,
    storage,
    clock: systemClock,
    ids,
    log: silentLog,
    liveTraffic: new LiveTraffic(systemClock, { batchShare: 1 }),
    callerNow: async (caller) => caller,
    errorBody: (_, { code }) => ({ code }),
    timeoutMs: 600_000,
    linesMax: 1_000,
    concurrency: 4,
    fileExpiryMs: hourMs,
    endpoints: everyBatchPath(endpoint),
    ...changes,
  })
}

const hourMs = 3_600_000

async function givenBatch(organizationId: string, lines: number, windowMs = hourMs): Promise<string> {
  const text = Array.from({ length: lines }, (_, n) =>
    JSON.stringify({ custom_id: `row-${n}`, method: "POST", url: "/v1/decisions", body: { n } }),
  ).join("\n")
  const blob = await storage.stage(pieces(text))
  const createdAt = new Date()
  const expiresAt = new Date(createdAt.getTime() + windowMs)
  const caller = {
    principal: { kind: "key", id: "key_1" },
    standing: { organizationId, role: "member", permissions: ["inference"] },
  }
  const file = { id: nextId("file"), organizationId, filename: "in", purpose: "batch" as const }
  await placeBlob(database, storage, organizationId, blob, createdAt)
  const { id } = await database.transaction(async (sql) => {
    const { storage: storageId, sha256 } = await insertFile(
      sql,
      storage,
      { ...file, createdAt, expiresAt: new Date(createdAt.getTime() + hourMs) },
      blob,
    )
    return await insertBatch(sql, {
      id: nextId("batch"),
      organizationId,
      principal: JSON.stringify(caller),
      endpoint: "/v1/decisions",
      inputFileId: file.id,
      storage: storageId,
      inputSha256: sha256,
      completionWindow: "1h",
      metadata: null,
      createdAt,
      expiresAt,
    })
  })
  await blob.discard()
  runner?.invalidate({ table: "batches", id })
  return id
}

// oxlint-disable-next-line require-await -- what stores it takes a stream
async function* pieces(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

const organization = async (): Promise<string> => (await givenOrganization(database)).id

async function until(organizationId: string, id: string, status: Batch["status"]): Promise<Batch> {
  return await vi.waitFor(
    async () => {
      const batch = await findBatch(database, organizationId, id)
      if (batch?.status !== status) throw new Error(`The batch is ${batch?.status}`)
      return batch
    },
    { interval: 10, timeout: 60_000 },
  )
}

async function codesIn(batch: Batch): Promise<(string | undefined)[]> {
  const { organizationId, errorFileId } = batch
  const file = await findFile(database, organizationId, errorFileId ?? "", new Date())
  const codes: (string | undefined)[] = []
  for await (const line of readLines(storage.read({ organizationId, sha256: file?.sha256 ?? "" })))
    codes.push((JSON.parse(line) as { error: { code: string } | null }).error?.code)
  return codes
}

/** Never answers; ends when the gateway stops. */
const hang = async ({ request: { signal } }: LineCall): Promise<never> =>
  await new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    else signal.addEventListener("abort", stop, { once: true })
  })

test("an organization whose lines do not end keeps no other one waiting, and can cancel", async () => {
  const [stuck, other] = [await organization(), await organization()]
  let hanging = 0
  await start(async (call) => {
    if (call.membership?.organizationId !== stuck) return {}
    hanging++
    return await hang(call)
  })
  await givenBatch(stuck, 100)
  await expect.poll(() => hanging, { interval: 10 }).toBe(3)
  const done = await until(other, await givenBatch(other, 40), "completed")
  expect(done).toMatchObject({ completed: 40, failed: 0 })
  const waiting = await givenBatch(stuck, 10)
  await until(stuck, waiting, "in_progress")
  await cancelBatch(database, stuck, waiting, new Date())
  const cancelled = await until(stuck, waiting, "cancelled")
  expect([cancelled.completed, cancelled.failed, hanging]).toEqual([0, 10, 3])
})

test("an organization whose batches take long to validate keeps no other one waiting", async () => {
  const [slow, other] = [await organization(), await organization()]
  const gate = Promise.withResolvers<void>()
  let reading = 0
  const large: FileStorage = {
    ...storage,
    async *read(blob, range) {
      if (blob.organizationId === slow) {
        reading++
        await gate.promise
      }
      yield* storage.read(blob, range)
    },
  }
  const waiting: string[] = []
  for (let at = 0; at < 10; at++) waiting.push(await givenBatch(slow, 5))
  await start(async () => ({}), { storage: large })
  await expect.poll(() => reading, { interval: 10 }).toBeGreaterThan(0)
  const done = await until(other, await givenBatch(other, 3), "completed")
  expect(done).toMatchObject({ completed: 3, failed: 0 })
  const statuses = waiting.map(async (id) => (await findBatch(database, slow, id))?.status)
  expect(new Set(await Promise.all(statuses))).toEqual(new Set(["validating"]))
  gate.resolve()
  for (const id of waiting) await until(slow, id, "completed")
})

test("a line runs with what its caller may do by then, and a caller that may do nothing more stops the batch", async () => {
  const id = await organization()
  const seen = new Set<string>()
  let asked = 0
  await start(
    async ({ principal }) => {
      seen.add(principal?.id ?? "")
      return {}
    },
    {
      callerNow: async ({ principal, membership }: BatchCaller) => {
        const now: Principal = { ...principal, id: "key_now" }
        return asked++ < 5 ? { principal: now, membership } : null
      },
    },
  )
  const failed = await until(id, await givenBatch(id, 70), "failed")
  expect(failed.errors).toMatchObject([{ code: "permission_denied" }])
  expect([failed.completed, failed.failed, [...seen]]).toEqual([5, 65, ["key_now"]])
  expect(new Set(await codesIn(failed))).toEqual(new Set(["permission_denied"]))
})

test("a batch whose window ends before it is validated runs nothing, and names each of its lines as expired", async () => {
  const id = await organization()
  let asked = 0
  await start(async () => {
    asked++
    return {}
  })
  const expired = await until(id, await givenBatch(id, 40, 0), "expired")
  expect([expired.total, expired.completed, expired.failed, asked]).toEqual([40, 0, 40, 0])
  expect(await codesIn(expired)).toEqual(Array.from({ length: 40 }, () => "batch_expired"))
})

test("a batch whose input cannot be read until its window ends expires, with no line known", async () => {
  const id = await organization()
  const away: FileStorage = {
    ...storage,
    // oxlint-disable-next-line require-yield -- it fails before
    async *read() {
      throw new Error("access denied")
    },
  }
  await start(async () => ({}), { storage: away })
  const [open, ended] = [await givenBatch(id, 5), await givenBatch(id, 5, 0)]
  const status = async (batchId: string): Promise<string | undefined> =>
    (await findBatch(database, id, batchId))?.status
  await expect.poll(() => status(ended), { interval: 10 }).toBe("finalizing")
  expect(await status(open)).toBe("validating")
  // Without the wait for the next attempt.
  await database.query("UPDATE batches SET leased_until = NULL WHERE id = $1", [ended])
  runner?.invalidate({ table: "batches", id: ended })
  expect(await until(id, ended, "expired")).toMatchObject({ total: 0, errorFileId: null })
})

test("storage that fails for a while takes no attempts and no results away", async () => {
  const id = await organization()
  let isBroken = true
  const failing: FileStorage = {
    ...storage,
    stage: async (content) => {
      if (isBroken) throw new Error("no space left on device")
      return await storage.stage(content)
    },
  }
  await start(async () => ({}), { storage: failing })
  const batchId = await givenBatch(id, 5)
  const attempts = async (): Promise<(number | null)[]> =>
    (await listParts(database, batchId)).map((part) => (part.startedAt ? part.attempts : null))
  await expect.poll(attempts, { interval: 10 }).toEqual([0])
  // As if it had been tried before, and without the wait for the next time.
  await database.query("UPDATE batches SET attempts = 9 WHERE id = $1", [batchId])
  await database.query("UPDATE batch_parts SET leased_until = $1 WHERE batch_id = $2", [new Date(0), batchId])
  isBroken = false
  runner?.invalidate({ table: "batches", id: batchId })
  expect(await until(id, batchId, "completed")).toMatchObject({ completed: 5, failed: 0, errors: null })
})

test("lines whose results are damaged are in the file of errors, and all others keep theirs", async () => {
  const id = await organization()
  const gate = Promise.withResolvers<void>()
  await start(async (call) => {
    // The second part.
    if (lineNumber(call) >= 32) await gate.promise
    return {}
  })
  const batchId = await givenBatch(id, 50)
  const result = async (): Promise<string> => (await listParts(database, batchId))[0]?.resultSha256 ?? ""
  await expect.poll(result, { interval: 10 }).not.toBe("")
  const sha256 = await result()
  await writeFile(join(directory, id, sha256.slice(0, 2), sha256), "+{}\n")
  gate.resolve()
  const done = await until(id, batchId, "completed")
  expect([done.total, done.completed, done.failed]).toEqual([50, 18, 32])
  expect(await codesIn(done)).toEqual(Array.from({ length: 32 }, () => "file_damaged"))
})

const numbered = async (call: LineCall): Promise<object> => ({ n: lineNumber(call) })

test("answers that are more than a file of the storage may hold are cut there, and the batch fails with the rest named", async () => {
  const id = await organization()
  await start(numbered)
  const whole = await until(id, await givenBatch(id, 6), "completed")
  const file = await findFile(database, id, whole.outputFileId ?? "", new Date())
  const fits = Number(file?.bytes)
  await runner?.close()

  await start(numbered, { storage: { ...storage, blobBytesMax: fits } })
  expect(await until(id, await givenBatch(id, 6), "completed")).toMatchObject({ completed: 6, failed: 0 })
  await runner?.close()

  await start(numbered, { storage: { ...storage, blobBytesMax: fits - 1 } })
  const cut = await until(id, await givenBatch(id, 6), "failed")
  expect([cut.completed, cut.failed]).toEqual([5, 1])
  expect(cut.errors).toMatchObject([{ code: "output_too_large" }])
  expect(await codesIn(cut)).toEqual(["output_too_large"])
})

test("what a question set says of a line besides its answers is in the result of the line", async () => {
  const id = await organization()
  await start(async (call) => {
    call.header("x-umpire-region", "paris")
    call.header("x-umpire-question-set", "tickets@2")
    if (lineNumber(call) === 1) call.header("x-umpire-abstained", "angry")
    return {}
  })
  const done = await until(id, await givenBatch(id, 2), "completed")
  const file = await findFile(database, id, done.outputFileId ?? "", new Date())
  const headers: unknown[] = []
  for await (const line of readLines(storage.read({ organizationId: id, sha256: file?.sha256 ?? "" })))
    headers.push((JSON.parse(line) as { response: { headers: unknown } }).response.headers)
  const set = { "x-umpire-question-set": "tickets@2" }
  expect(headers).toEqual([set, { ...set, "x-umpire-abstained": "angry" }])
})

test("bytes that nothing names yet outlive a sweep for an hour, and no longer", async () => {
  const id = await organization()
  const blob = await storage.stage(pieces("placed"))
  const now = new Date()
  await placeBlob(database, storage, id, blob, now)
  await blob.discard()
  const read = async (): Promise<string> => {
    const found: Uint8Array[] = []
    for await (const piece of storage.read({ organizationId: id, sha256: blob.sha256 })) found.push(piece)
    return Buffer.concat(found).toString()
  }
  await sweepFiles(database, storage, new Date(now.getTime() + 3_599_999))
  expect(await read()).toBe("placed")
  await sweepFiles(database, storage, new Date(now.getTime() + 3_600_000))
  await expect(read()).rejects.toThrow()
})
