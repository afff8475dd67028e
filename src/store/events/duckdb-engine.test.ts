import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as endOfTurn } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { Chance, makeRecord } from "../../../test/analytics-samples.ts"
import { sequenceRecord } from "../../../test/sequence-record.ts"
import type { EventEngine } from "./engine.ts"
import { StoredRow, columnNames, eventOf } from "./event.ts"
import { openEngine } from "./open-engine.ts"

/** More than two chunks of DuckDB. */
const rowsCount = 5000

describe("DuckDB", () => {
  let directory: string
  let engine: EventEngine

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "umpire-duckdb-"))
    engine = await openEngine({ engine: "duckdb", directory })
  })
  afterEach(async () => {
    await engine.close()
    await rm(directory, { recursive: true, force: true })
  })

  /** In the order of the file. */
  const keptRows = async (): Promise<StoredRow[]> =>
    StoredRow.readAll(
      await engine.query({ text: `SELECT ${columnNames.join(", ")} FROM sequences`, values: {} }),
    )

  test.each([true, false])(
    "rows in no order of time are kept whole and in order (known to be new: %s)",
    async (areNew) => {
      const chance = new Chance(3)
      const rows = Array.from({ length: rowsCount }, (_, index) => eventOf(makeRecord(chance, index)))
      await engine.insert(rows, { token: "a", areNew })
      const kept = await keptRows()
      const times = kept.map(({ timestamp }) => timestamp)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      // Queries answer 64-bit integers as numbers.
      const given = rows.map((row) => ({ ...row, cost_ticks: Number(row.cost_ticks) }))
      expect(kept.toSorted(bySeqId)).toEqual(given.toSorted(bySeqId))
    },
  )

  test.each([
    ["are not looked for when they are known to be new", true, 2],
    ["count once otherwise", false, 1],
  ])("rows that come again %s", async (_, areNew, times) => {
    const rows = [eventOf(sequenceRecord({ seq_id: "seq_1" }))]
    for (const token of ["a", "b"]) await engine.insert(rows, { token, areNew })
    expect(await keptRows()).toHaveLength(times)
  })

  test.each([true, false])(
    "an insert that fails half way leaves nothing, then or later (known to be new: %s)",
    async (areNew) => {
      const rows = Array.from({ length: rowsCount }, (_, index) =>
        // The last of them has no place in a column of whole numbers.
        eventOf(
          sequenceRecord({ seq_id: `seq_${index}`, timestamp: index === rowsCount - 1 ? 1e6 + 0.5 : index }),
        ),
      )
      await expect(engine.insert(rows, { token: "a", areNew })).rejects.toThrow(RangeError)
      await collectGarbage()
      expect(await keptRows()).toHaveLength(0)
      await engine.insert(rows.slice(0, -1), { token: "b", areNew })
      expect(await keptRows()).toHaveLength(rowsCount - 1)
    },
  )
})

const bySeqId = (a: { seq_id: string }, b: { seq_id: string }): number => (a.seq_id < b.seq_id ? -1 : 1)

/** What DuckDB's client holds is given back in the turns after a collection. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc")
  // The flag is what makes it a function.
  const collect = runInNewContext("gc") as () => void
  for (let turn = 0; turn < 10; turn++) {
    collect()
    await endOfTurn()
  }
}
