/** Kept content as its organization sees it: read, deleted and exported, each recorded in the audit log. */
import { DocumentStream, type Handlers, type Handle } from "../../contract/endpoint.ts"
import type { KeptContent } from "../../contract/content.ts"
import { Fault } from "../../contract/errors.ts"
import type { PlatformTable } from "../../contract/table.ts"
import {
  type ContentDeletion,
  type ContentRange,
  type StoredContent,
  deleteContent,
  deleteContents,
  findContent,
  insertDeletion,
  listContentRange,
  listNewestContents,
  openContent,
} from "../../store/content/content.ts"
import { lockOrganization } from "../../store/organizations.ts"
import { acting, change, notFound } from "../audited-change.ts"
import { excerptOf, search } from "../search.ts"
import type { ContentControlDeps } from "./settings.ts"

type Names = "getContent" | "searchContent" | "deleteContent" | "deleteContents" | "exportContent"

export function contentHandlers(deps: ContentControlDeps): Pick<Handlers<PlatformTable>, Names> {
  return {
    getContent: async (call) => await read(deps, call),
    searchContent: async (call) => await searchKept(deps, call),
    deleteContent: async (call) => await deleteOne(deps, call),
    deleteContents: async (call) => await deleteMany(deps, call),
    exportContent: async (call) => await exportRange(deps, call),
  }
}

const read: Handle<ContentControlDeps, PlatformTable["getContent"]> = async (deps, call) => {
  const { organizationId } = acting(call)
  await deps.content.settle(organizationId)
  return await change(deps, call, async ({ sql, now, audit }) => {
    const stored = await findContent(sql, organizationId, call.params.seq_id, now)
    if (!stored) throw notFound("content")
    const content = openContent(deps.content.cipher, stored)
    if (!content)
      throw new Fault(
        "conflict",
        "Cannot decrypt the content: it was encrypted with a key that the installation no longer has",
      )
    await audit("content.read", { organizationId, id: call.params.seq_id })
    return content
  })
}

const deleteOne: Handle<ContentControlDeps, PlatformTable["deleteContent"]> = async (deps, call) => {
  const { organizationId } = acting(call)
  const { seq_id } = call.params
  await deps.content.settle(organizationId)
  // A repeated deletion answers 404 in any case.
  const found = await change(deps, { ...call, idempotency: null }, async ({ sql, now, audit }) => {
    // A gateway that is storing it reads the deletion under the same lock.
    if (!(await lockOrganization(sql, organizationId))) throw notFound("organization")
    const state = await deleteContent(sql, organizationId, seq_id, now)
    if (state !== "gone") await audit("content.delete", { organizationId, id: seq_id })
    return state
  })
  if (found !== "deleted") throw notFound("content")
}

const searchKept: Handle<ContentControlDeps, PlatformTable["searchContent"]> = async (deps, call) => {
  const { organizationId } = acting(call)
  const { database, clock, content } = deps
  const { text, limit, cursor = null } = call.body
  await content.settle(organizationId)
  const now = new Date(clock.nowMs())
  const page = await search(
    { limit, cursor },
    {
      stepRows: exportedPerStep,
      read: async (step) => {
        const items = await listNewestContents(database, organizationId, positionOf(step.cursor), {
          now,
          limit: step.limit,
        })
        const last = items.length < step.limit ? undefined : items.at(-1)
        return { items, nextCursor: last ? cursorOf(last) : null }
      },
      cursorOf,
      match: (stored) => {
        const opened = openContent(content.cipher, stored)
        const excerpt = opened && excerptOfContent(opened, text)
        const found = opened && excerpt !== null ? { ...opened, excerpt } : null
        return { found, characters: stored.sealed.byteLength }
      },
      signal: call.request.signal,
    },
  )
  // Not remembered with an idempotency key: that answer would not be encrypted.
  if (page.items.length > 0)
    await change(deps, { ...call, idempotency: null }, async ({ audit }) => {
      const sequences = page.items.map(({ seq_id }) => seq_id)
      await audit("content.search", { organizationId, id: null }, { after: { sequences } })
    })
  return {
    data: page.items.map(({ seq_id, at, endpoint, model, excerpt }) => ({
      seq_id,
      at,
      endpoint,
      model,
      excerpt,
    })),
    next_cursor: page.nextCursor,
  }
}

const cursorOf = ({ at, seqId }: Pick<StoredContent, "at" | "seqId">): string => `${at.getTime()}.${seqId}`

function positionOf(cursor: string | null | undefined): Pick<StoredContent, "at" | "seqId"> | null {
  if (!cursor) return null
  const [ms = "", seqId = ""] = cursor.split(".")
  return { at: new Date(Number(ms)), seqId }
}

function excerptOfContent({ evidence, input, output }: KeptContent, text: string): string | null {
  const messages = [...(input?.messages ?? []), ...(output ?? [])]
  const texts = [evidence, ...(input?.texts ?? []), ...messages.map(({ content }) => content)]
  for (const one of texts) {
    const excerpt = one === null ? null : excerptOf(one, text)
    if (excerpt !== null) return excerpt
  }
  return null
}

const deletedPerStep = 1000

/** What is being stored by any gateway while this runs is deleted too: it reads the deletion under the same lock. */
const deleteMany: Handle<ContentControlDeps, PlatformTable["deleteContents"]> = async (deps, call) => {
  const { organizationId } = acting(call)
  const { before, reference } = call.body
  const { database, clock, content } = deps
  const now = new Date(clock.nowMs())
  const deletion: ContentDeletion = {
    organizationId,
    // Content of requests to come is not deleted, whatever the time.
    before: new Date(Math.min(now.getTime(), before === undefined ? Infinity : Date.parse(before))),
    referenceHashes:
      reference === undefined ? null : content.cipher.referenceHashes(organizationId, reference),
  }
  // In the log before anything is deleted: the caller may leave before the end.
  await change(deps, { ...call, idempotency: null }, async ({ sql, audit }) => {
    if (!(await lockOrganization(sql, organizationId))) throw notFound("organization")
    await insertDeletion(sql, deletion, now)
    // The reference may name a person, so the log does not have it.
    const filter = { before: before ?? null, by_reference: reference !== undefined }
    await audit("content.delete", { organizationId, id: null }, { after: filter })
  })
  let deleted = 0
  for (let step = deletedPerStep; step === deletedPerStep;) {
    call.request.signal.throwIfAborted()
    step = await database.transaction((sql) => deleteContents(sql, deletion, deletedPerStep))
    deleted += step
  }
  return { deleted }
}

const exportRange: Handle<ContentControlDeps, PlatformTable["exportContent"]> = async (deps, call) => {
  const { organizationId } = acting(call)
  const { from, to } = call.query
  await deps.content.settle(organizationId)
  await change(deps, call, async ({ audit }) => {
    const range = { from: from ?? null, to: to ?? null }
    await audit("content.export", { organizationId, id: null }, { after: range })
  })
  const range = {
    from: from === undefined ? null : new Date(from),
    to: to === undefined ? null : new Date(to),
  }
  return new DocumentStream(linesOf(deps, organizationId, { range, signal: call.request.signal }))
}

/** A record may have some mebibytes. */
const exportedPerStep = 16

/** What cannot be decrypted is a line that says so: the others are not lost for it. */
async function* linesOf(
  { database, clock, content }: ContentControlDeps,
  organizationId: string,
  { range, signal }: { range: Omit<ContentRange, "after">; signal: AbortSignal },
): AsyncGenerator<string> {
  let after: ContentRange["after"] = null
  for (;;) {
    signal.throwIfAborted()
    const step = { now: new Date(clock.nowMs()), limit: exportedPerStep }
    const stored: StoredContent[] = await listContentRange(
      database,
      organizationId,
      { ...range, after },
      step,
    )
    for (const one of stored) {
      const opened = openContent(content.cipher, one)
      const error = "It was encrypted with a key that the installation no longer has"
      yield `${JSON.stringify(opened ?? { seq_id: one.seqId, at: one.at.toISOString(), error })}\n`
    }
    after = stored.at(-1) ?? null
    if (stored.length < exportedPerStep) return
  }
}
