/** Takes events from the journal and from files, and knows which of them cannot be there yet. */
import { createReadStream } from "node:fs"
import { z } from "zod"
import { SequenceAttempt, attemptsMax, principalKinds } from "../../contract/sequences.ts"
import { virtualModelLimits } from "../../contract/platform/virtual-models.ts"
import { tagKeyForm, tagLimits } from "../../contract/tags.ts"
import { type JournalPosition, isBefore, lineBytesMax } from "../journal/journal.ts"
import type { SequenceRecord } from "../journal/record.ts"
import { readJournal } from "../journal/segments.ts"
import { readLines } from "../lines.ts"
import { type EventEngine, EventEngineError } from "./engine.ts"
import { type EventRow, eventOf, resultNames } from "./event.ts"

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
}

export interface Taken {
  readonly next: JournalPosition
  readonly events: number
  readonly damaged: number
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
    const rows = distinct(records)
    if (rows.length > 0) {
      const token = `${gatewayId}:${from.segment}.${from.offset}-${next.segment}.${next.offset}`
      const areNew =
        this.#pass(part, next) &&
        records.every(({ timestamp, may_repeat }) => !may_repeat && timestamp > this.#newestImportedMs)
      await this.#engine.insert(rows, { token, areNew })
    }
    return { next, events: rows.length, damaged }
  }

  /** Takes a file with one JSON object a line. What was taken before is not counted twice, so it may be repeated. */
  async import(file: string): Promise<{ events: number }> {
    const lines = readLines(createReadStream(file))
    let waiting: SequenceRecord[] = []
    let number = 0
    let events = 0
    const flush = async (): Promise<void> => {
      const rows = distinct(waiting)
      const token = `import:${rows[0]?.seq_id ?? ""}:${rows.at(-1)?.seq_id ?? ""}:${rows.length}:${number}`
      for (const { timestamp } of rows) this.#newestImportedMs = Math.max(this.#newestImportedMs, timestamp)
      await this.#engine.insert(rows, { token, areNew: false })
      events += rows.length
      waiting = []
    }
    for await (const line of lines) {
      number++
      if (line.trim() === "") continue
      waiting.push(readLine(line, number))
      if (waiting.length >= importRowsPerInsert) await flush()
    }
    if (waiting.length > 0) await flush()
    return { events }
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

/** The last of several records of one sequence counts. */
function distinct(records: readonly SequenceRecord[]): EventRow[] {
  const rows = new Map<string, EventRow>()
  for (const record of records) rows.set(record.seq_id, eventOf(record))
  return [...rows.values()]
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
})

function readLine(line: string, number: number): SequenceRecord {
  if (line.length > lineBytesMax)
    throw new EventEngineError(`Cannot import line ${number}: it has more than ${lineBytesMax} characters`)
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new EventEngineError(`Cannot import line ${number}: it is not JSON`)
  }
  const parsed = ImportedRecord.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new EventEngineError(
    `Cannot import line ${number}: ${issue?.path.join(".") || "its top"}: ${issue?.message ?? "invalid"}`,
  )
}
