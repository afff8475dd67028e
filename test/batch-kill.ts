/** A batch over two gateways on one PostgreSQL, both killed while it runs: every line has a result and one charge. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import OpenAI, { toFile } from "openai"
import { expect } from "vitest"
import { derivedId } from "../src/base/ids.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { TestGateway, prepareAccount, readBooks, readRecords, requestTicks, tokenTicks } from "./gateways.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { bootstrapKey } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

const balanceTicks = 1_000_000_000_000n
/** 100 tokens, as the other tests of money have it. */
const evidenceTokens = 100
/** As `gateway/batches` cuts an input. */
const linesPerPart = 32

interface Scene {
  readonly database: FreshDatabase
  /** `more` is for this one alone. */
  start(name: string, more?: Record<string, string>): Promise<TestGateway>
  directoryOf(name: string): string
  close(): Promise<void>
}

export async function batchScene(env: Record<string, string> = {}): Promise<Scene> {
  const database = await freshDatabase()
  const folder = await mkdtemp(join(tmpdir(), "umpire-batch-kill-"))
  const running: TestGateway[] = []
  const directoryOf = (name: string): string => join(folder, name)
  return {
    database,
    directoryOf,
    start: async (name, more = {}) => {
      const gateway = await TestGateway.start({
        databaseUrl: database.url,
        dataDirectory: directoryOf(name),
        env: { ...env, ...more },
      })
      running.push(gateway)
      return gateway
    },
    close: async () => {
      for (const gateway of running) await gateway.end("SIGKILL")
      await database.drop()
      await rm(folder, { recursive: true })
    },
  }
}

export const clientOf = ({ url }: TestGateway): OpenAI =>
  new OpenAI({ apiKey: bootstrapKey, baseURL: `${url}/v1`, maxRetries: 0 })

export async function createBatch(client: OpenAI, lines: number): Promise<OpenAI.Batch> {
  const content = Array.from({ length: lines }, (_, n) =>
    JSON.stringify({
      custom_id: `row-${n}`,
      method: "POST",
      url: "/v1/decisions",
      body: {
        model: "test",
        input: `row ${n} `.padEnd(evidenceTokens, "x"),
        questions: [{ type: "predicate", instructions: "?" }],
      },
    }),
  ).join("\n")
  const file = await client.files.create({
    file: await toFile(Buffer.from(content), "rows.jsonl"),
    purpose: "batch",
  })
  // The client's types know OpenAI's own endpoints only.
  const endpoint = "/v1/decisions" as "/v1/embeddings"
  return await client.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" })
}

export async function untilEnded(client: OpenAI, id: string, timeout: number): Promise<OpenAI.Batch> {
  let batch: OpenAI.Batch | undefined
  await expect
    .poll(async () => (batch = await client.batches.retrieve(id)).status, { timeout, interval: 100 })
    .toMatch(/^(completed|failed|expired|cancelled)$/)
  return batch as OpenAI.Batch
}

export async function idsIn(client: OpenAI, fileId: string | null | undefined): Promise<string[]> {
  if (!fileId) return []
  const text = await (await client.files.content(fileId)).text()
  return text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)
}

async function untilPartsRun(url: string, id: string, done: number): Promise<void> {
  const database = await openPostgres({ url, connectionsMax: 1 })
  try {
    await expect
      .poll(
        async () => {
          const [found] = await row({ completed: column.integer, running: column.integer }).all(
            database,
          )`SELECT completed, (SELECT count(*)::int FROM batch_parts
            WHERE batch_id = b.id AND state = 'running') AS running
            FROM batches b WHERE id = ${id}`
          return (found?.completed ?? 0) >= done && (found?.running ?? 0) > 0
        },
        { interval: 5 },
      )
      .toBe(true)
  } finally {
    await database.close()
  }
}

const pollIntervalMs = 10

/**
 * Kills a gateway in the middle of a part, with lines of it charged already, which must run again elsewhere. It is stopped
 * while it is looked at, so that what is seen is what the kill meets. Returns how many such lines there are.
 */
async function killInPart(
  scene: Scene,
  name: string,
  gateway: TestGateway,
  batchId: string,
): Promise<number> {
  for (;;) {
    const stoppedMs = performance.now()
    gateway.process.kill("SIGSTOP")
    const charged = await chargedInRunningParts(scene, name, batchId)
    if (charged > 0) {
      await gateway.end("SIGKILL")
      return charged
    }
    gateway.process.kill("SIGCONT")
    // As long as it stood still, so that it gets on and keeps its leases also where a look takes long.
    await wait(pollIntervalMs + (performance.now() - stoppedMs))
  }
}

async function chargedInRunningParts(scene: Scene, name: string, batchId: string): Promise<number> {
  const database = await openPostgres({ url: scene.database.url, connectionsMax: 1 })
  try {
    const parts = await row({ first_line: column.integer, started_at: column.timestamp }).all(
      database,
    )`SELECT first_line, started_at FROM batch_parts WHERE batch_id = ${batchId} AND state = 'running'`
    const running = new Set(
      parts.flatMap(({ first_line, started_at }) =>
        Array.from({ length: linesPerPart }, (_, n) =>
          derivedId("seq", started_at.getTime(), `${batchId}:${first_line + n}`),
        ),
      ),
    )
    const records = await readRecords(scene.directoryOf(name))
    return records.filter(({ seq_id }) => running.has(seq_id)).length
  } finally {
    await database.close()
  }
}

export interface Killed {
  /** Lines that were charged when their gateway was killed in the middle of their part. */
  readonly hit: number
  /** Lines that ran twice, as far as the journals still say so. */
  readonly again: number
}

/** Until both are killed: so slow that parts run however long this process is kept from looking. */
const slowly = (lines: number): Record<string, string> => ({
  TEST_WORK_MS: String(Math.max(30, Math.ceil(slowLinesMs / lines))),
})
const slowLinesMs = 800_000

export async function killBothGateways(lines: number, timeoutMs: number): Promise<Killed> {
  const scene = await batchScene({ TEST_WORK_MS: "30" })
  try {
    let first = await scene.start("a", slowly(lines))
    await prepareAccount(scene.database.url, balanceTicks)
    let second = await scene.start("b", slowly(lines))
    const batch = await createBatch(clientOf(first), lines)
    await untilPartsRun(scene.database.url, batch.id, Math.floor(lines / 8))
    let hit = await killInPart(scene, "a", first, batch.id)
    await untilPartsRun(scene.database.url, batch.id, Math.floor(lines / 4))
    hit += await killInPart(scene, "b", second, batch.id)
    first = await scene.start("a")
    second = await scene.start("b")
    const done = await untilEnded(clientOf(second), batch.id, timeoutMs)
    expect(done).toMatchObject({
      status: "completed",
      error_file_id: null,
      request_counts: { total: lines, completed: lines, failed: 0 },
    })
    const named = await idsIn(clientOf(first), done.output_file_id)
    const expected = Array.from({ length: lines }, (_, n) => `row-${n}`)
    expect(named.length === lines && named.every((id, at) => id === expected[at])).toBe(true)
    await first.end("SIGTERM")
    await second.end("SIGTERM")
    return { hit, again: await checkCharges(scene, lines, hit) }
  } finally {
    await scene.close()
  }
}

async function checkCharges(scene: Scene, lines: number, hit: number): Promise<number> {
  const books = await readBooks(scene.database.url)
  const records = [
    ...(await readRecords(scene.directoryOf("a"))),
    ...(await readRecords(scene.directoryOf("b"))),
  ].filter(({ cost_ticks }) => cost_ticks !== "0")
  const again = records.length - new Set(records.map(({ seq_id }) => seq_id)).size
  console.log(
    `${lines} lines, both gateways killed: ${books.charges.size} charges, ${hit} lines charged in parts that were lost, ${again} run again`,
  )
  expect(books.charges.size).toBe(lines)
  expect([...books.charges.values()].every((ticks) => ticks === requestTicks)).toBe(true)
  expect(tokenTicks * BigInt(evidenceTokens)).toBe(requestTicks)
  expect(books.balanceTicks).toBe(balanceTicks - BigInt(lines) * requestTicks)
  expect([books.ledgerTicks, books.heldTicks]).toEqual([books.balanceTicks, 0n])
  return again
}
