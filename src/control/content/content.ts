/** Kept content as its organization sees it: read, deleted and exported, each recorded in the audit log. */
import type { KeptContent } from "../../contract/content.ts"
import { type CallOf, DocumentStream, type Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { PlatformTable } from "../../contract/platform/table.ts"
import {
  type ContentDeletion,
  type ContentRange,
  type StoredContent,
  deleteContent,
  deleteContents,
  findContent,
  insertDeletion,
  listContentRange,
  openContent,
} from "../../store/content/content.ts"
import { lockOrganization } from "../../store/organizations.ts"
import { acting, change, notFound } from "../audited-change.ts"
import type { ContentControlDeps } from "./parts.ts"

type Names = "getContent" | "deleteContent" | "deleteContents" | "exportContent"

export function contentHandlers(deps: ContentControlDeps): Pick<Handlers<PlatformTable>, Names> {
  return {
    getContent: async (call) => await read(deps, call),
    deleteContent: async (call) => await deleteOne(deps, call),
    deleteContents: async (call) => await deleteMany(deps, call),
    exportContent: async (call) => await exportRange(deps, call),
  }
}

async function read(
  deps: ContentControlDeps,
  call: CallOf<PlatformTable["getContent"]>,
): Promise<KeptContent> {
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

async function deleteOne(
  deps: ContentControlDeps,
  call: CallOf<PlatformTable["deleteContent"]>,
): Promise<void> {
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

const deletedPerStep = 1000

/** What is being stored by any gateway while this runs is deleted too: it reads the deletion under the same lock. */
async function deleteMany(
  deps: ContentControlDeps,
  call: CallOf<PlatformTable["deleteContents"]>,
): Promise<{ deleted: number }> {
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

async function exportRange(
  deps: ContentControlDeps,
  call: CallOf<PlatformTable["exportContent"]>,
): Promise<DocumentStream> {
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
  { range, signal }: { readonly range: Omit<ContentRange, "after">; readonly signal: AbortSignal },
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
