import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { writeSegment } from "../../../test/analytics-samples.ts"
import { sequenceRecord } from "../../../test/sequence-record.ts"
import { type JournalPosition, journalStart } from "../journal/journal.ts"
import type { SequenceRecord } from "../journal/record.ts"
import type { EventEngine, Insertion } from "./engine.ts"
import { Intake } from "./intake.ts"
import { openEngine } from "./open-engine.ts"
import { holdings } from "./upkeep.ts"

const perSegment = 3

/** A batch is at most a segment; the events of a later one are younger. */
const recordsOf = (segment: number): SequenceRecord[] =>
  Array.from({ length: perSegment }, (_, index) =>
    sequenceRecord({ seq_id: `seq_${segment}_${index}`, timestamp: segment * 1000 + index }),
  )

// An engine that recognises what comes again by itself would hide a mistake here: DuckDB does what it is told.
describe("with DuckDB", () => {
  let directory: string
  let engine: EventEngine
  /** What was said of each insert. */
  let saidNew: boolean[]
  let insert: EventEngine["insert"]

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "umpire-intake-"))
    engine = await openEngine({ engine: "duckdb", directory })
    saidNew = []
    insert = async (rows, insertion) => await engine.insert(rows, insertion)
  })
  afterEach(async () => {
    await engine.close()
    await rm(directory, { recursive: true, force: true })
  })

  /** As the analytics process has one from its start to its end. */
  const openIntake = (): Intake =>
    new Intake({
      dialect: engine.dialect,
      query: async (statement) => await engine.query(statement),
      insert: async (rows, insertion: Insertion) => {
        saidNew.push(insertion.areNew)
        await insert(rows, insertion)
      },
      prune: async (beforeMs) => await engine.prune(beforeMs),
      writeParquet: async (statement, file) => await engine.writeParquet(statement, file),
      copy: async (file) => await engine.copy(file),
      close: async () => await engine.close(),
    })

  /** Answers where the next batch begins. */
  async function take(
    intake: Intake,
    from: JournalPosition,
    until: JournalPosition,
  ): Promise<JournalPosition> {
    const { next } = await intake.take({ gatewayId: "gw_1", directory, from, until })
    return next
  }

  const append = (segment: number): Promise<JournalPosition> =>
    writeSegment(directory, segment, recordsOf(segment))

  const countKept = async (): Promise<number> => (await holdings(engine)).events

  test("a batch past all that was taken is not looked for, and is kept once", async () => {
    const intake = openIntake()
    let position = journalStart
    for (const segment of [1, 2, 3]) position = await take(intake, position, await append(segment))
    expect(saidNew).toEqual([false, true, true])
    expect(await countKept()).toBe(3 * perSegment)
  })

  test("whatever an earlier process may have taken is looked for, however many batches it is", async () => {
    const before = openIntake()
    const first = await take(before, journalStart, await append(1))
    const second = await take(before, first, await append(2))
    const after = openIntake()
    // Its position was lost: it begins anew.
    expect(await take(after, journalStart, second)).toEqual(first)
    expect(await take(after, first, second)).toEqual(second)
    expect(await countKept()).toBe(2 * perSegment)
    await take(after, second, await append(3))
    expect(saidNew).toEqual([false, true, false, false, true])
    expect(await countKept()).toBe(3 * perSegment)
  })

  test("a batch that comes again counts once, and so do those after it", async () => {
    const intake = openIntake()
    const first = await take(intake, journalStart, await append(1))
    const second = await take(intake, first, await append(2))
    const third = await take(intake, second, await append(3))
    await take(intake, first, third)
    await take(intake, second, third)
    expect(saidNew).toEqual([false, true, true, false, false])
    expect(await countKept()).toBe(3 * perSegment)
  })

  test.each([
    ["before its rows were kept", false],
    ["after its rows were kept", true],
  ])("a batch that failed %s is taken again and counts once", async (_, isKept) => {
    const intake = openIntake()
    const first = await take(intake, journalStart, await append(1))
    const works = insert
    insert = async (rows, insertion) => {
      if (isKept) await works(rows, insertion)
      throw new Error("the disk is gone")
    }
    const until = await append(2)
    await expect(take(intake, first, until)).rejects.toThrow("the disk is gone")
    insert = works
    const second = await take(intake, first, until)
    await take(intake, second, await append(3))
    expect(saidNew).toEqual([false, true, false, true])
    expect(await countKept()).toBe(3 * perSegment)
  })

  test("events that were imported before they are taken count once, whichever batch has them", async () => {
    const intake = openIntake()
    let position = await take(intake, journalStart, await append(1))
    const file = join(directory, "events.jsonl")
    await writeFile(
      file,
      recordsOf(3)
        .map((record) => JSON.stringify(record))
        .join("\n"),
    )
    expect(await intake.import(file).next()).toEqual({ done: true, value: { events: perSegment } })
    for (const segment of [2, 3, 4]) position = await take(intake, position, await append(segment))
    expect(saidNew).toEqual([false, false, false, false, true])
    expect(await countKept()).toBe(4 * perSegment)
  })

  test("a sequence that may repeat is looked for, and counts once although the journal has it twice", async () => {
    const intake = openIntake()
    const repeated = recordsOf(2).map((record): SequenceRecord => ({ ...record, may_repeat: true }))
    let position = await take(intake, journalStart, await append(1))
    for (const segment of [2, 3])
      position = await take(intake, position, await writeSegment(directory, segment, repeated))
    await take(intake, position, await append(4))
    expect(saidNew).toEqual([false, false, false, true])
    expect(await countKept()).toBe(3 * perSegment)
  })

  test("what is known of one gateway's journal is not believed of another's", async () => {
    const intake = openIntake()
    const until = await append(1)
    await intake.take({ gatewayId: "gw_1", directory, from: journalStart, until })
    await intake.take({ gatewayId: "gw_2", directory, from: journalStart, until })
    const copy = join(directory, "copy")
    const end = await writeSegment(copy, 2, recordsOf(1))
    await intake.take({ gatewayId: "gw_2", directory: copy, from: until, until: end })
    expect(saidNew).toEqual([false, false, false])
    expect(await countKept()).toBe(perSegment)
  })
})
