/** A gateway that only records: appends events to a journal, exports them, and says which ones are acknowledged. */
import { writeSync } from "node:fs"
import { join } from "node:path"
import { systemClock } from "../../src/base/clock.ts"
import { silentLog } from "../../src/base/log.ts"
import { openEvents } from "../../src/store/events/events.ts"
import { analyticsConsumer, openExporter } from "../../src/store/events/exporter.ts"
import { openJournal } from "../../src/store/journal/journal.ts"
import { Chance, makeRecord } from "../analytics-samples.ts"

const [, , directory = "", first = "0"] = process.argv
const perTurn = 50

const journal = await openJournal({
  directory: join(directory, "journal"),
  consumers: [analyticsConsumer],
  newGatewayId: () => "gw_test",
  segmentBytesMax: 64 * 1024,
  keepMs: 0,
})
const events = openEvents({
  place: { engine: "duckdb", directory: join(directory, "analytics") },
})
const exporter = await openExporter({
  events,
  journal,
  positionFile: join(directory, "exported.json"),
  clock: systemClock,
  log: silentLog,
})

const chance = new Chance(Number(first))
let index = Number(first)
// Each line is written whole, before anything else is done: what the reader sees is acknowledged.
for (;;) {
  const records = Array.from({ length: perTurn }, () => makeRecord(chance, index++))
  await Promise.all(
    records.map(async (record) => {
      await journal.append(record)
      writeSync(1, `${record.seq_id}\n`)
    }),
  )
  await exporter.flush().catch(() => undefined)
  if (process.argv.includes("--once")) break
}
await exporter.close()
await events.close()
await journal.close()
