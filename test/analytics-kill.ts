/** Kills gateways and analytics processes in the middle of an export, and counts what is kept afterwards. */
import { type ChildProcess, spawnSync, spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import { openEvents } from "../src/store/events/events.ts"
import { analyticsConsumer, openExporter } from "../src/store/events/exporter.ts"
import { openJournal } from "../src/store/journal/journal.ts"
import { Chance, epochMs, organizations, spanMs } from "./analytics-samples.ts"

const program = join(import.meta.dirname, "programs", "export-events.ts")
/** Ids of one life never meet those of another. */
const idsPerLife = 1_000_000
/** A life ends after this many acknowledgements and a little more, so that the kill falls on every step of an export. */
const acknowledgedAtLeast = 60
const momentsMax = 40

export function killSuite(kills: number): void {
  test(`no acknowledged event is lost or counted twice after ${kills} kills in the middle of an export`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "umpire-kill-"))
    const chance = new Chance(7)
    const acknowledged = new Set<string>()
    for (let life = 0; life < kills; life++) {
      const child = spawn(process.execPath, [program, directory, String(life * idsPerLife)], {
        stdio: ["ignore", "pipe", "inherit"],
      })
      const ended = new Promise((resolve) => child.once("exit", resolve))
      await hear(child, acknowledged, acknowledgedAtLeast + chance.below(momentsMax * 10))
      // Every third time the analytics process goes first, and the gateway must start another.
      if (life % 3 === 2) {
        for (const pid of childrenOf(child)) process.kill(pid, "SIGKILL")
        await hear(child, acknowledged, acknowledgedAtLeast)
      }
      child.kill("SIGKILL")
      await ended
    }
    const { requests, kept } = await exportRest(directory)
    console.log(`${kills} kills: ${acknowledged.size} acknowledged, ${kept} kept, ${requests} counted`)
    // What was written but not acknowledged may be kept as well; nothing twice.
    expect(requests).toBe(kept)
    expect(kept).toBeGreaterThanOrEqual(acknowledged.size)
    expect(await missing(directory, acknowledged)).toEqual([])
    await rm(directory, { recursive: true, force: true })
  }, 3_000_000)
}

/** Reads acknowledgements until there are so many more. */
async function hear(child: ChildProcess, acknowledged: Set<string>, count: number): Promise<void> {
  let rest = ""
  let heard = 0
  await new Promise<void>((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      const lines = (rest + chunk.toString()).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) acknowledged.add(line)
      heard += lines.length
      if (heard < count) return
      child.stdout?.off("data", listen)
      child.stdout?.resume()
      resolve()
    }
    child.stdout?.on("data", listen)
    child.once("exit", (code) => reject(new Error(`The gateway ended by itself with ${code}`)))
  })
}

function childrenOf({ pid }: ChildProcess): number[] {
  // It fails where there are none: the process may be between two lives of its own.
  const { stdout } = spawnSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" })
  return stdout.split("\n").filter(Boolean).map(Number)
}

/** As the next start does: exports what is left, and answers how many events are counted and how many ids there are. */
async function exportRest(directory: string): Promise<{ requests: number; kept: number }> {
  const journal = await openJournal({
    directory: join(directory, "journal"),
    consumers: [analyticsConsumer],
    newGatewayId: () => "gw_test",
  })
  const events = openEvents({ place: { engine: "duckdb", directory: join(directory, "analytics") } })
  const exporter = await openExporter({
    events,
    journal,
    positionFile: join(directory, "exported.json"),
    clock: systemClock,
    log: silentLog,
  })
  await exporter.flush()
  let requests = 0
  for (const organizationId of organizations) {
    const { summary } = await events.ask("overview", {
      organizationId,
      startMs: epochMs,
      endMs: epochMs + spanMs,
      groupBy: "model",
      metric: "requests",
      buckets: 1,
      limit: 1,
      filters: [],
    })
    requests += summary.requests
  }
  const { events: kept } = await events.ask("export", {
    file: join(directory, "kept.parquet"),
    organizationId: undefined,
    startMs: 0,
    endMs: Number.MAX_SAFE_INTEGER,
  })
  await exporter.close()
  await events.close()
  await journal.close()
  return { requests, kept }
}

/** Acknowledged ids that are not kept, and ids that are kept more than once. */
async function missing(directory: string, acknowledged: ReadonlySet<string>): Promise<string[]> {
  const { DuckDBInstance } = await import("@duckdb/node-api")
  const connection = await (await DuckDBInstance.create()).connect()
  const result = await connection.runAndReadAll("SELECT seq_id FROM read_parquet($file)", {
    file: join(directory, "kept.parquet"),
  })
  const counts = new Map<string, number>()
  // One text column.
  for (const [id] of result.getRowsJS() as [string][]) counts.set(id, (counts.get(id) ?? 0) + 1)
  const lost = [...acknowledged].filter((id) => !counts.has(id))
  const twice = [...counts].filter(([, count]) => count > 1).map(([id]) => id)
  return [...lost, ...twice]
}
