/** The engines that this machine can run, for suites that hold all of them to the same behaviour. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Events, openEvents, type Place } from "../src/store/events/events.ts"
import { type JournalPosition, journalStart } from "../src/store/journal/journal.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { writeSegment } from "./analytics-samples.ts"
import { startClickhouseOverChdb } from "./clickhouse-over-chdb.ts"

const clickhouseUrl = process.env["UMPIRE_TEST_CLICKHOUSE_URL"]

/** chDB has no build for every processor. */
const hasChdb =
  (process.platform === "linux" && process.arch === "x64") ||
  (process.platform === "darwin" && process.arch === "arm64")

type EngineName = Place["engine"]

export const engineNames: readonly EngineName[] = [
  "duckdb",
  ...(clickhouseUrl !== undefined || hasChdb ? (["clickhouse"] as const) : []),
]

export interface TestEvents {
  readonly events: Events
  readonly directory: string
  /** Writes the records to a journal of their own and takes it. */
  keep(records: readonly SequenceRecord[]): Promise<void>
  close(): Promise<void>
}

export async function openTestEvents(engine: EngineName, onDeath?: () => void): Promise<TestEvents> {
  const directory = await mkdtemp(join(tmpdir(), "umpire-analytics-"))
  const server = engine === "clickhouse" ? await startServer(directory) : null
  const place: Place = server
    ? { engine: "clickhouse", url: server.url }
    : { engine: "duckdb", directory: join(directory, "analytics") }
  const events = openEvents({ place, ...(onDeath ? { onDeath } : {}) })
  let journals = 0
  return {
    events,
    directory,
    keep: async (records) => {
      const journal = join(directory, `journal-${++journals}`)
      const until = await writeSegment(journal, 1, records)
      await takeAll(events, `gateway-${journals}`, journal, until)
    },
    close: async () => {
      await events.close()
      await server?.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function startServer(directory: string): Promise<{ url: string; close(): Promise<void> }> {
  if (clickhouseUrl === undefined) return await startClickhouseOverChdb(join(directory, "server"))
  const { createClient } = await import("@clickhouse/client")
  const client = createClient({ url: clickhouseUrl })
  const database = `umpire_test_${process.pid}_${Date.now()}`
  await client.command({ query: `CREATE DATABASE ${database}` })
  const url = new URL(clickhouseUrl)
  url.pathname = `/${database}`
  return {
    url: url.href,
    close: async () => {
      await client.command({ query: `DROP DATABASE ${database}` })
      await client.close()
    },
  }
}

async function takeAll(
  events: Events,
  gatewayId: string,
  directory: string,
  until: JournalPosition,
): Promise<void> {
  let from = journalStart
  for (;;) {
    const { next } = await events.ask("take", { gatewayId, directory, from, until })
    if (next.segment === from.segment && next.offset === from.offset) return
    from = next
  }
}
