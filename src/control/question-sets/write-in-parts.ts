/** Writes many rows of a question set in parts: an embedded database runs one transaction at a time, and those of others go between. */
import { nextTurn } from "../../base/turns.ts"
import type { CallOf } from "../../contract/endpoint.ts"
import type { SetQuestion } from "../../contract/question-sets/content.ts"
import type { exampleTable } from "../../contract/question-sets/examples.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import { lockOrganization } from "../../store/organizations.ts"
import { type PlacedText, sealInput } from "../../store/question-sets/examples.ts"
import { decodeContent, type QuestionSet } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { type ChangeScope, acting, change, notFound } from "../audited-change.ts"
import type { QuestionSetDeps } from "./content.ts"
import { lockReadSet, readSet, readVersion } from "./view.ts"

export type SetCall = Pick<
  CallOf<(typeof exampleTable)["addQuestionSetExamples"]>,
  "principal" | "membership" | "params" | "request" | "idempotency"
>

/** What a part is written to. */
interface PartScope {
  readonly sql: Sql
  readonly now: Date
  readonly set: QuestionSet
  readonly questions: readonly SetQuestion[]
}

type Part<Row> = readonly PreparedText<Row>[]

interface RowWriter<Row, Found, Result> {
  readonly rows: readonly Row[]
  readonly idPrefix: "ex" | "case"
  /** Before the first of several parts: what has no room at the end is refused whole. */
  checkRoom(scope: Omit<PartScope, "now">, parts: readonly Part<Row>[]): Promise<void>
  /** In a transaction, which may be run again: what it finds counts once the part is written. */
  write(scope: PartScope, part: Part<Row>): Promise<Found>
  /** A part is written that is not the last. */
  written(found: Found): void
  /** In the transaction of the last part. */
  end(scope: PartScope & ChangeScope, found: Found): Promise<Result>
  /** For the audit log, where parts are written and a later one is not. */
  readonly action: string
  soFar(): Readonly<Record<string, number>>
}

export async function writeInParts<Row extends { readonly input: string }, Found, Result>(
  deps: QuestionSetDeps,
  call: SetCall,
  writer: RowWriter<Row, Found, Result>,
): Promise<Result> {
  const { database, clock } = deps
  const { membership, organizationId } = acting(call)
  const { signal } = call.request
  const named = await readSet(database, membership, call.params.set_id)
  const { rows, idPrefix } = writer
  const parts = partsOf(await prepareTexts(deps, { rows, idPrefix, setId: named.id, signal }))
  if (parts.length > 1) await writer.checkRoom(await scopeOf(database, named), parts)
  const partScope = async (sql: Sql, now: Date): Promise<PartScope> => {
    // Two that add to sets of the same organization are measured one after the other.
    await lockOrganization(sql, organizationId)
    const set = await lockReadSet(sql, membership, call.params.set_id)
    // A set that was deleted meanwhile may have a successor of the same name, for which the texts are not encrypted.
    if (set.id !== named.id) throw notFound("question set")
    return { ...(await scopeOf(sql, set)), now }
  }
  let partsWritten = 0
  try {
    for (const part of parts.slice(0, -1)) {
      signal.throwIfAborted()
      const now = new Date(clock.nowMs())
      writer.written(
        await database.transaction(async (sql) => await writer.write(await partScope(sql, now), part)),
      )
      partsWritten++
    }
    return await change(deps, call, async (scope) => {
      const last = await partScope(scope.sql, scope.now)
      const found = await writer.write(last, parts.at(-1) ?? [])
      return await writer.end({ ...scope, ...last }, found)
    })
  } catch (error) {
    // Where the store is away the first error says more.
    if (partsWritten > 0)
      await change(deps, { ...call, idempotency: null }, async ({ audit }) => {
        await audit(writer.action, named, { after: { ...writer.soFar(), is_complete: false } })
      }).catch(() => undefined)
    throw error
  }
}

async function scopeOf(sql: Sql, set: QuestionSet): Promise<Omit<PartScope, "now">> {
  const { content } = await readVersion(sql, set, "latest")
  return { sql, set, questions: decodeContent(content).questions }
}

/** Some tens of milliseconds of a transaction. */
const partMax = { rows: 500, bytes: 1024 * 1024 }

/** A text beyond the bytes is a part of its own. */
function partsOf<Row extends { readonly input: string }>(rows: readonly Row[]): Row[][] {
  const parts: Row[][] = []
  let bytes = 0
  for (const row of rows) {
    const own = Buffer.byteLength(row.input)
    const part = parts.at(-1)
    if (part && part.length < partMax.rows && bytes + own <= partMax.bytes) {
      part.push(row)
      bytes += own
    } else {
      parts.push([row])
      bytes = own
    }
  }
  return parts
}

export type PreparedText<Row> = Row & { readonly hash: string; readonly stored: PlacedText }

/** Some milliseconds of work, also with the longest texts. */
const preparedBytesPerTurn = 256 * 1024

/** Before the transaction, which holds an embedded database: texts are hashed and encrypted while others have their turns. */
async function prepareTexts<Row extends { readonly input: string }>(
  { ids, content }: QuestionSetDeps,
  given: {
    readonly rows: readonly Row[]
    readonly setId: string
    readonly idPrefix: "ex" | "case"
    readonly signal: AbortSignal
  },
): Promise<PreparedText<Row>[]> {
  const { rows, setId, idPrefix, signal } = given
  const prepared: PreparedText<Row>[] = []
  let sinceTurn = 0
  for (const row of rows) {
    const place = { id: ids.next(idPrefix), setId }
    const stored = { ...place, ...sealInput(content.cipher, place, row.input) }
    prepared.push({ ...row, hash: rowHash(row.input), stored })
    sinceTurn += row.input.length + perTextBytes
    if (sinceTurn < preparedBytesPerTurn) continue
    sinceTurn = 0
    await nextTurn()
    signal.throwIfAborted()
  }
  return prepared
}

/** What a short text costs beside its bytes, in bytes. */
const perTextBytes = 2048
