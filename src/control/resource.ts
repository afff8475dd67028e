/** What an organization has several of, as data: its table, its words in errors and in the audit log, how many there may be. */
import type { Ids } from "../base/ids.ts"
import type { Call } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Change } from "../store/changes.ts"
import { lockOrganization } from "../store/organizations.ts"
import type { ResourceRow, ResourceTable } from "../store/resources.ts"
import type { PageRequest } from "../store/pages.ts"
import {
  type AuditedViews,
  type ChangeScope,
  type ControlDeps,
  acting,
  change,
  difference,
  found,
  notFound,
  toList,
} from "./audited-change.ts"
import { checkVersion, etag, toWire } from "./to-wire.ts"

interface Resource<Item extends ResourceRow, View, New, Changes> {
  /** In the audit log; its actions are `type.create`, `type.update` and `type.delete`. */
  readonly type: string
  /** In errors. */
  readonly noun: string
  readonly idPrefix: Parameters<Ids["next"]>[0]
  readonly table: ResourceTable<Item, New, Changes>
  /** How many an organization may have. */
  readonly limit?: number
  readonly versionOf: (item: Item) => bigint
  readonly toView: (item: Item) => View
  /** What the audit log compares: nothing that changes by itself, and no secret. */
  readonly audited: (item: Item) => Readonly<Record<string, unknown>>
  /** What caches invalidate when it changes. */
  readonly invalidates?: (item: Item) => Change
}

/** Infers the types of a description. */
export const resource = <Item extends ResourceRow, View, New, Changes>(
  description: Resource<Item, View, New, Changes>,
): Resource<Item, View, New, Changes> => description

type CallAt = Pick<Call, "principal" | "membership" | "request" | "idempotency" | "header">

/** The handlers of a resource; what one of them checks of its own stands in the functions that it is given. */
export function handlersOf<Item extends ResourceRow, View, New, Changes>(
  deps: ControlDeps,
  described: Resource<Item, View, New, Changes>,
) {
  const { table, noun, toView } = described
  const show = (call: CallAt, item: Item): View => {
    call.header("etag", etag(described.versionOf(item)))
    return toView(item)
  }
  const find = async (call: CallAt, id: string): Promise<Item> =>
    found(await table.find(deps.database, acting(call).organizationId, id), noun)
  const lock = async ({ sql }: ChangeScope, call: CallAt, id: string): Promise<Item> =>
    found(await table.lock(sql, acting(call).organizationId, id), noun)
  return {
    find,
    lock,
    show,
    list: async (call: CallAt & { readonly query: PageRequest }) =>
      toList(await table.page(deps.database, acting(call).organizationId, call.query), toView),
    get: async (call: CallAt, id: string): Promise<View> => show(call, await find(call, id)),
    /** `fields` runs in the transaction, before the limit is looked at. */
    create: async (call: CallAt, fields: (scope: ChangeScope) => Promise<New>): Promise<View> =>
      await change(deps, call, async (scope) => {
        const { organizationId } = acting(call)
        const id = deps.ids.next(described.idPrefix)
        return show(call, await add(scope, described, { id, organizationId, fields }))
      }),
    /** `changes` is given the item as it is, at the version that If-Match names. */
    update: async (
      call: CallAt,
      id: string,
      changes: (scope: ChangeScope, before: Item) => Promise<Changes>,
    ): Promise<View> =>
      await change(deps, call, async (scope) => {
        const before = await lock(scope, call, id)
        checkVersion(call.request, described.versionOf(before))
        return show(call, await replace(scope, described, { before, changes: await changes(scope, before) }))
      }),
    remove: async (
      call: CallAt,
      id: string,
      prepare: (scope: ChangeScope, item: Item) => Promise<void> = async () => {},
    ): Promise<void> =>
      await change(deps, call, async (scope) => {
        const item = await lock(scope, call, id)
        await prepare(scope, item)
        await remove(scope, described, item)
      }),
  }
}

interface Addition<New> {
  readonly id: string
  readonly organizationId: string
  readonly fields: (scope: ChangeScope) => Promise<New>
}

export async function add<Item extends ResourceRow, New, Changes>(
  scope: ChangeScope,
  described: Resource<Item, unknown, New, Changes>,
  { id, organizationId, fields }: Addition<New>,
): Promise<Item> {
  const { sql, now } = scope
  const { table, noun, limit, audited } = described
  // Two that create at once are counted one after the other.
  if (!(await lockOrganization(sql, organizationId))) throw notFound("organization")
  const given = await fields(scope)
  if (limit !== undefined && (await table.count(sql, organizationId)) >= limit)
    throw new Fault("conflict", `Cannot create the ${noun}: there are ${limit} already`)
  const item = await table.insert(sql, { id, organizationId, createdAt: now, updatedAt: now }, given)
  await record(scope, described, { verb: "create", item, views: { after: audited(item) } })
  return item
}

export async function replace<Item extends ResourceRow, New, Changes>(
  scope: ChangeScope,
  described: Resource<Item, unknown, New, Changes>,
  { before, changes, verb = "update" }: { before: Item; changes: Changes; verb?: string },
): Promise<Item> {
  const { table, noun, audited } = described
  const after = found(await table.update(scope.sql, before.id, { ...changes, updatedAt: scope.now }), noun)
  await record(scope, described, { verb, item: after, views: difference(audited(before), audited(after)) })
  return after
}

export async function remove<Item extends ResourceRow, New, Changes>(
  scope: ChangeScope,
  described: Resource<Item, unknown, New, Changes>,
  item: Item,
): Promise<void> {
  await described.table.remove(scope.sql, item.id, scope.now)
  await record(scope, described, { verb: "delete", item, views: { before: described.audited(item) } })
}

async function record<Item extends ResourceRow, New, Changes>(
  scope: ChangeScope,
  { type, invalidates }: Resource<Item, unknown, New, Changes>,
  { verb, item, views }: { verb: string; item: Item; views: AuditedViews },
): Promise<void> {
  await scope.audit(`${type}.${verb}`, item, views)
  if (invalidates) scope.invalidate(invalidates(item))
}

/** The fields that a request gives; what is left out stays as it is. */
export const given = <Body extends object>(
  body: Body,
): { [Field in keyof Body]: Exclude<Body[Field], undefined> } =>
  // Only fields without a value are taken out.
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Body]: Exclude<Body[Field], undefined>
  }

/** When and by whom it was made and changed, on the wire. */
export const changeView = (
  item: Pick<ResourceRow, "createdAt" | "updatedAt"> & {
    readonly createdBy: string | null
    readonly version: bigint
  },
) => toWire(item, "createdBy", "createdAt", "updatedAt", "version")
