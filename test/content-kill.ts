/** Kills a gateway that keeps content under load, and then looks for the content of every answer that a client got. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { expect } from "vitest"
import { createContentCipher } from "../src/store/content/cipher.ts"
import { putContentSettings } from "../src/store/content/settings.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { TestGateway, prepareAccount } from "./gateways.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { bootstrapKey } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

const key = Buffer.alloc(32, 9)
const clients = 8
const lifeMsMin = 20
const lifeMsMax = 600
const balanceTicks = 1_000_000_000_000n

export interface ContentScene {
  readonly options: Parameters<typeof TestGateway.start>[0]
  readonly database: Database
  readonly organizationId: string
}

/** A database whose only organization keeps everything. */
export async function withContentKept(work: (scene: ContentScene) => Promise<void>): Promise<void> {
  const fresh: FreshDatabase = await freshDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), "umpire-content-"))
  const env = { UMPIRE_CONTENT_KEYS: key.toString("base64") }
  const options = { databaseUrl: fresh.url, dataDirectory, env }
  const database = await openPostgres({ url: fresh.url, connectionsMax: 1 })
  try {
    const first = await TestGateway.start(options)
    await prepareAccount(fresh.url, balanceTicks)
    await first.end("SIGTERM")
    const [organization] = await row({ id: column.text }).all(database)`SELECT id FROM organizations`
    const organizationId = organization?.id ?? ""
    await putContentSettings(database, {
      organizationId,
      keep: "evidence_and_answers",
      sampleRate: 1,
      retentionDays: 30,
      redactPatterns: [{ name: "number", pattern: "[0-9]{9,}" }],
      redactQuestionSet: null,
      updatedAt: new Date(),
    })
    await work({ options, database, organizationId })
  } finally {
    await database.close()
    await fresh.drop()
    await rm(dataDirectory, { recursive: true })
  }
}

/** Null when the connection broke before the whole answer was there. */
export async function decide(url: string, input: string): Promise<{ status: number; seqId: string } | null> {
  try {
    const response = await fetch(`${url}/v1/decisions`, {
      method: "POST",
      headers: { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "test",
        input,
        questions: [{ type: "predicate", name: "q", instructions: "?" }],
      }),
    })
    await response.text()
    return { status: response.status, seqId: response.headers.get("x-umpire-sequence") ?? "" }
  } catch {
    return null
  }
}

/** By sequence: the evidence that is stored. */
export async function storedEvidence({
  database,
  organizationId,
}: ContentScene): Promise<Map<string, string>> {
  const cipher = createContentCipher([key])
  const rows = await row({ seq_id: column.text, sealed: column.bytes }).all(
    database,
  )`SELECT seq_id, sealed FROM content WHERE state = 'kept'`
  return new Map(
    rows.map(({ seq_id, sealed }) => {
      const text = cipher.open({ organizationId, seqId: seq_id }, sealed)
      return [seq_id, text === null ? "" : (JSON.parse(text) as { evidence: string }).evidence]
    }),
  )
}

export async function countDropped({ database }: ContentScene): Promise<number> {
  const [found] = await row({ count: column.integer }).all(
    database,
  )`SELECT coalesce(sum(count), 0)::int AS count FROM content_dropped`
  return found?.count ?? 0
}

export async function killWhileKeeping(kills: number): Promise<void> {
  await withContentKept(async (scene) => {
    const acknowledged = new Map<string, string>()
    let gateway = await TestGateway.start(scene.options)
    let sent = 0
    const stop = new AbortController()
    const client = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const evidence = `text ${++sent}`
        const reply = await decide(gateway.url, `${evidence} 123456789`)
        if (reply?.status === 200) acknowledged.set(reply.seqId, `${evidence} [number]`)
        // The gateway is gone; a client that hammers on a closed port keeps the next one from starting.
        if (reply === null) await wait(100)
      }
    }
    const load = Array.from({ length: clients }, client)
    for (let kill = 0; kill < kills; kill++) {
      // The moment is the point: any will do, and none is waited for.
      await wait(lifeMsMin + Math.random() * (lifeMsMax - lifeMsMin))
      await gateway.end("SIGKILL")
      gateway = await TestGateway.start(scene.options)
    }
    const before = acknowledged.size
    await expect.poll(() => acknowledged.size).toBeGreaterThan(before)
    stop.abort()
    await Promise.all(load)
    await gateway.end("SIGTERM")
    const stored = await storedEvidence(scene)
    const dropped = await countDropped(scene)
    console.log(
      `${kills} kills: ${sent} sent, ${acknowledged.size} acknowledged, ${stored.size} stored, ${dropped} dropped`,
    )
    expect(acknowledged.size).toBeGreaterThan(0)
    const lost = [...acknowledged].filter(([seqId, evidence]) => stored.get(seqId) !== evidence)
    expect(lost, "answered, and its content is not stored").toEqual([])
    expect(dropped).toBe(0)
  })
}
