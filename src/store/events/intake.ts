/** Takes events from the journal and from files, and knows which of them cannot be there yet. */
import { createReadStream } from "node:fs"
import { open } from "node:fs/promises"
import { DuckDBInstance } from "@duckdb/node-api"
import { z } from "zod"
import { parsedJson } from "../../base/json.ts"
import { virtualModelLimits } from "../../contract/platform/virtual-models.ts"
import { SequenceAttempt, attemptsMax, principalKinds } from "../../contract/sequences.ts"
import { tagKeyForm, tagLimits } from "../../contract/tags.ts"
import { type JournalPosition, isBefore, lineBytesMax } from "../journal/journal.ts"
import type { SequenceRecord } from "../journal/record.ts"
import { readJournal } from "../journal/segments.ts"
import { readLines } from "../lines.ts"
import { column } from "../rows.ts"
import { type EventEngine, EventEngineError } from "./engine.ts"
import {
  type EventBatch,
  packEvents,
  unpackEvents,
  eventFrom,
  type EventRow,
  eventOf,
  resultNames,
  addedColumnNames,
  columnNames,
  columns,
} from "./event.ts"

/** One insert: enough for a second of a busy gateway, little enough to be held in memory several times over. */
const batchBytesMax = 4 * 1024 * 1024
const importRowsPerInsert = 20_000

export interface JournalPart {
  /** Names the gateway in the tokens of inserts. */
  readonly gatewayId: string
  readonly directory: string
  readonly from: JournalPosition
  /** The end of the journal; it is never before one that was given earlier. */
  readonly until: JournalPosition
  /** Whether other gateways are to get the events too. */
  readonly share?: boolean
}

export interface Taken {
  readonly next: JournalPosition
  readonly events: number
  readonly damaged: number
  /** Where it is shared and there is something to share. */
  readonly batch: EventBatch | null
}

/** The journal that was taken from last; nothing at `end` or after it was ever given to the engine. */
interface TakenJournal {
  readonly gatewayId: string
  readonly directory: string
  readonly end: JournalPosition
}

export class Intake {
  readonly #engine: EventEngine
  #journal: TakenJournal | null = null
  /** No event that began later was imported. */
  #newestImportedMs = -Infinity

  constructor(engine: EventEngine) {
    this.#engine = engine
  }

  /** Takes the next batch of the journal; resolves when it is kept. */
  async take(part: JournalPart): Promise<Taken> {
    const { gatewayId, directory, from, until } = part
    const { records, next, damages } = await readJournal(directory, from, { until, bytesMax: batchBytesMax })
    const damaged = damages.filter(({ kind }) => kind === "line").length
    const rows = distinct(records.map((record) => eventOf(record)))
    if (rows.length > 0) {
      const token = `${gatewayId}:${from.segment}.${from.offset}-${next.segment}.${next.offset}`
      const areNew =
        this.#pass(part, next) &&
        records.every(({ timestamp, may_repeat }) => !may_repeat && timestamp > this.#newestImportedMs)
      await this.#engine.insert(rows, { token, areNew })
    }
    const batch = part.share === true && rows.length > 0 ? await packEvents(rows) : null
    return { next, events: rows.length, damaged, batch }
  }

  /** Takes what another gateway shares; what comes again is not counted twice. */
  async receive(data: Uint8Array, token: string): Promise<null> {
    await this.#insertForeign(await unpackEvents(data), token)
    return null
  }

  /**
   * Takes a file of an export (Parquet), or with one JSON object a line. What was taken before is not counted twice, so it may be
   * repeated. Yields what is to be shared.
   */
  async *import(file: string, share = false): AsyncGenerator<EventBatch, { events: number }> {
    let waiting: EventRow[] = []
    let events = 0
    const flush = async (): Promise<EventRow[]> => {
      const rows = distinct(waiting)
      events += rows.length
      waiting = []
      const token = `import:${rows[0]?.seq_id ?? ""}:${rows.at(-1)?.seq_id ?? ""}:${rows.length}:${events}`
      await this.#insertForeign(rows, token)
      return rows
    }
    for await (const rows of (await isParquet(file)) ? readParquet(file) : readJsonLines(file)) {
      waiting.push(...rows)
      if (waiting.length < importRowsPerInsert) continue
      const taken = await flush()
      if (share) yield await packEvents(taken)
    }
    const last = await flush()
    if (share && last.length > 0) yield await packEvents(last)
    return { events }
  }

  async #insertForeign(rows: readonly EventRow[], token: string): Promise<void> {
    if (rows.length === 0) return
    for (const { timestamp } of rows) this.#newestImportedMs = Math.max(this.#newestImportedMs, timestamp)
    await this.#engine.insert(rows, { token, areNew: false })
  }

  /**
   * Moves the end past a batch; answers whether the batch begins where nothing was taken before. A sequence that
   * may not repeat stands in the journal once, so the rows of such a batch are new. What the process before this one took is not known, but it
   * was given no end after the first that is given here. An insert that fails leaves the end where it is: whatever
   * became of its rows, they are looked for when they come again.
   */
  #pass({ gatewayId, directory, from, until }: JournalPart, next: JournalPosition): boolean {
    const last = this.#journal
    if (last?.gatewayId !== gatewayId || last.directory !== directory) {
      this.#journal = { gatewayId, directory, end: until }
      return false
    }
    if (isBefore(last.end, next)) this.#journal = { gatewayId, directory, end: next }
    return !isBefore(from, last.end)
  }
}

/** The last of several of one sequence counts. */
const distinct = (rows: readonly EventRow[]): EventRow[] => [
  ...new Map(rows.map((row) => [row.seq_id, row])).values(),
]

async function* readJsonLines(file: string): AsyncGenerator<EventRow[]> {
  let number = 0
  for await (const line of readLines(createReadStream(file))) {
    number++
    if (line.trim() !== "") yield [eventOf(readLine(line, number))]
  }
}

const Text = z.string().nullable().default(null)
const Count = z.number().min(0).default(0)
const KnownCount = z.number().min(0).nullable().default(null)

const ImportedStage = z.object({
  model: z.string().max(256),
  result: z.string().max(64),
  region: z.string().max(64).nullable(),
  questions: KnownCount,
  input_tokens: Count,
  cached_input_tokens: Count,
  output_tokens: Count,
  ms: Count,
  cost_ticks: z.string().regex(/^\d{1,18}$/),
})

/** A line of an imported file: what a sequence must have, and what it may lack. */
const ImportedRecord = z.object({
  seq_id: z.string().min(1).max(256),
  timestamp: z.int().min(1),
  organization_id: z.string().min(1).max(256),
  billing_account_id: Text,
  model: z.string(),
  call_source: z.string(),
  inference_type: z.enum(["generation", "embedding"]).default("generation"),
  result: z.enum(resultNames),
  input_tokens: Count,
  cached_input_tokens: Count,
  output_tokens: Count,
  execution_ms: Count,
  gateway_latency_ms: Count,
  seq_duration_ms: Count,
  tool_calls: z.array(z.string()).default([]),
  api_key_id: Text,
  client_ip: Text,
  client_ua: Text,
  error_code: Text,
  error_message: Text,
  request_id: Text,
  stop_reason: Text,
  region: Text,
  cost_ticks: z
    .string()
    .regex(/^\d{1,18}$/)
    .default("0"),
  principal_kind: z.enum(principalKinds).nullable().default(null),
  principal_id: z.string().max(256).nullable().default(null),
  question_set_id: z.string().max(256).nullable().default(null),
  question_set: z.string().max(256).nullable().default(null),
  question_set_version: KnownCount,
  questions: KnownCount,
  abstained: KnownCount,
  tags: z
    .record(
      z.string().regex(tagKeyForm),
      z
        .string()
        .min(1)
        .max(2 * tagLimits.valueCharactersMax),
    )
    .default({}),
  attempts: z.array(SequenceAttempt).max(attemptsMax).default([]),
  queue_ms: KnownCount,
  route_ms: KnownCount,
  engine_ms: KnownCount,
  virtual_model: z.string().max(256).nullable().default(null),
  stages: z.array(ImportedStage).max(virtualModelLimits.modelsMax).default([]),
  language: z.string().max(16).nullable().default(null),
})

function readLine(line: string, number: number): SequenceRecord {
  if (line.length > lineBytesMax)
    throw new EventEngineError(`Cannot import line ${number}: it has more than ${lineBytesMax} characters`)
  const value = parsedJson(line)
  if (value === undefined) throw new EventEngineError(`Cannot import line ${number}: it is not JSON`)
  const parsed = ImportedRecord.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new EventEngineError(
    `Cannot import line ${number}: ${issue?.path.join(".") || "its top"}: ${issue?.message ?? "invalid"}`,
  )
}

const magic = "PAR1"

async function isParquet(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(magic.length), 0, magic.length, 0)
    return buffer.toString("latin1", 0, bytesRead) === magic
  } finally {
    await handle.close()
  }
}

/** A file that `umpire analytics export` wrote, of every version, in groups of some thousand. */
async function* readParquet(file: string): AsyncGenerator<EventRow[]> {
  const instance = await DuckDBInstance.create(":memory:", {
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  })
  const connection = await instance.connect()
  try {
    // ClickHouse, which version 0.1 wrote with, does not say of bytes that they are text.
    const source = `read_parquet('${file.replaceAll("'", "''")}', binary_as_string = true)`
    const described = await connection.runAndReadAll(`SELECT column_name FROM (DESCRIBE FROM ${source})`)
    const present = new Set(column.text.readAll(described.getRowObjectsJS()))
    const missing = columnNames.find((name) => !present.has(name) && !isAdded(name))
    if (missing) throw new EventEngineError(`Cannot import the file: it has no column ${missing}`)
    const chosen = columnNames.filter((name) => present.has(name)).map(selected)
    const result = await connection.stream(`SELECT ${chosen.join(", ")} FROM ${source}`)
    for await (const rows of result.yieldRowObjectJs()) yield rows.map((row) => eventFrom(row))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

const isAdded = (name: keyof EventRow): boolean => addedColumnNames.some((added) => added === name)

function selected(name: keyof EventRow): string {
  switch (columns[name]) {
    case "text":
    case "name":
      return `coalesce(CAST(${name} AS VARCHAR), '') AS ${name}`
    case "texts":
      return `coalesce(CAST(${name} AS VARCHAR[]), []) AS ${name}`
    case "count":
    case "instant":
    case "ticks":
    case "known count":
      return `CAST(${name} AS BIGINT) AS ${name}`
    case "known ms":
      return `CAST(${name} AS DOUBLE) AS ${name}`
  }
}
