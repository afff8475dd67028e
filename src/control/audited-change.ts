/** One change to an organization: the work, its audit entries and its Idempotency-Key in one transaction. */
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Principal, Membership } from "../contract/access.ts"
import type { IdempotentRun, RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type NewAuditEntry, appendAudit } from "../store/audit.ts"
import type { Change } from "../store/changes.ts"
import { completeIdempotencyKey } from "../store/idempotency.ts"
import type { Page } from "../store/pages.ts"
import type { Database, Sql } from "../store/sql.ts"

export interface ControlDeps {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  /** Applies a change to the caches of this gateway at once; other gateways are notified by the database. */
  readonly invalidate: (change: Change) => void
}

/** As much of a call as a change needs to know. */
export interface Caller {
  readonly principal: Principal | null
  readonly request: Pick<RequestFacts, "ip" | "userAgent">
  readonly idempotency: IdempotentRun | null
}

/** What an audit entry is about. */
interface AuditedResource {
  readonly organizationId: string
  /** Null for several. */
  readonly id: string | null
  /** Where it is not what the action begins with. */
  readonly resourceType?: string
}

/** What is new has no `before`, what is gone no `after`. */
export interface AuditedViews {
  readonly before?: unknown
  readonly after?: unknown
}

export interface ChangeScope {
  readonly sql: Sql
  readonly now: Date
  /** An entry of the audit log; the action begins with the type of the resource. */
  readonly audit: (action: string, resource: AuditedResource, views?: AuditedViews) => Promise<void>
  /** Names what caches invalidate once the change is committed. */
  readonly invalidate: (change: Change) => void
}

export async function change<Output>(
  deps: ControlDeps,
  caller: Caller,
  work: (scope: ChangeScope) => Promise<Output>,
): Promise<Output> {
  const now = new Date(deps.clock.nowMs())
  const changes: Change[] = []
  const output = await deps.database.transaction(async (sql) => {
    // The transaction may be run again after a deadlock: what the first run changed does not count.
    changes.length = 0
    const result = await work({
      sql,
      now,
      audit: async (
        action,
        { organizationId, id, resourceType = action.split(".", 1)[0] ?? "" },
        views = {},
      ) =>
        void (await appendAudit(sql, {
          ...actorOf(caller),
          id: deps.ids.next("aud"),
          organizationId,
          action,
          resourceType,
          resourceId: id,
          before: redact(views.before ?? null),
          after: redact(views.after ?? null),
          at: now,
        })),
      invalidate: (one) => void changes.push(one),
    })
    if (caller.idempotency) await complete(sql, caller.idempotency, result)
    return result
  })
  for (const one of changes) deps.invalidate(one)
  return output
}

async function complete(sql: Sql, run: IdempotentRun, output: unknown): Promise<void> {
  if (await completeIdempotencyKey(sql, run, run.encode(output))) return
  throw new Fault(
    "conflict",
    "Cannot finish the request: it took too long and a repetition of it has taken over",
  )
}

function actorOf({
  principal,
  request,
}: Caller): Pick<NewAuditEntry, "actorKind" | "actorId" | "ip" | "userAgent"> {
  return {
    actorKind: principal?.kind ?? "system",
    actorId: actorIdOf(principal),
    ip: request.ip || null,
    userAgent: request.userAgent?.slice(0, userAgentCharactersMax).replaceAll("\u0000", "") ?? null,
  }
}

/** A session comes and goes, and the user behind it acted; the operator has no id. */
function actorIdOf(principal: Principal | null): string | null {
  const isNamed = principal?.kind === "key" || principal?.kind === "workload"
  return isNamed ? principal.id : (principal?.userId ?? null)
}

const userAgentCharactersMax = 512
const secretField = /secret$|token$|password|_hash$|credential/i

/** Views hold no secrets; should one ever slip in, the log still does not. */
function redact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redact)
  if (typeof value !== "object" || value === null || value instanceof Date) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, member]) => [
      field,
      secretField.test(field) && member !== null ? "[redacted]" : redact(member),
    ]),
  )
}

/** The fields of two views that differ, for an audit entry that is quick to read. */
export function difference(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): { readonly before: Record<string, unknown>; readonly after: Record<string, unknown> } {
  const fields = Object.keys(after).filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )
  const only = (view: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(fields.map((field) => [field, view[field] ?? null]))
  return { before: only(before), after: only(after) }
}

/** The endpoint table says that a principal with a membership is there; a handler that finds none is our mistake. */
export function acting(call: {
  readonly principal: Principal | null
  readonly membership: Membership | null
}): { readonly principal: Principal; readonly membership: Membership; readonly organizationId: string } {
  const { principal, membership } = call
  if (!principal || !membership)
    throw new Error("Cannot act: the endpoint lets in callers without a membership")
  return { principal, membership, organizationId: membership.organizationId }
}

export function notFound(what: string): Fault {
  return new Fault("not_found", `Cannot find the ${what}: no such id is visible to this principal`)
}

/** What was looked for by its id. */
export function found<Resource>(resource: Resource | null, what: string): Resource {
  if (resource === null) throw notFound(what)
  return resource
}

/** The part of a list that a page is, on the wire. */
export const toList = <Item, View>(
  { items, nextCursor }: Page<Item>,
  toView: (item: Item) => View,
): { data: View[]; next_cursor: string | null } => ({ data: items.map(toView), next_cursor: nextCursor })
