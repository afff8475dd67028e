/** Endpoints below one path that share their area, their surface and who may call them. */
import { z } from "zod"
import { type Endpoint, endpoint } from "./endpoint.ts"
import { PathId, idForm, pageOf, pageQuery } from "./platform/field-schemas.ts"

type Access = Endpoint["access"]

const sessionsAndKeys = ["session", "key"] as const
export const everyPrincipal = ["session", "key", "workload"] as const
export const apiRead = { principals: sessionsAndKeys, permission: "api-read" } as const
export const apiWrite = { principals: sessionsAndKeys, permission: "api-write" } as const
export const apiAdmin = { principals: sessionsAndKeys, permission: "api-admin" } as const
/** Of sessions only those of organization owners. */
export const ownersAdmin = { ...apiAdmin, owner: "sessions" } as const
export const inference = { principals: everyPrincipal, permission: "inference" } as const
export const sessionOnly = { principals: ["session"] } as const
export const anyone = { principals: [] } as const
/** What anyone may call can still be sent with credentials, which must then be good. */
export const openErrors = ["missing_credentials", "invalid_credentials", "store_unavailable"] as const

interface Shared {
  readonly area: string
  /** The Platform API's unless told. */
  readonly surface?: Endpoint["surface"]
  /** Who may call what reads (GET; `apiRead` unless told) and what writes; an endpoint with an access of its own names it. */
  readonly read?: Access
  readonly write: Access
}

type Shapes = "output" | "query" | "body" | "reads"
type Described<Output, Query, Body, Reads> = Pick<Endpoint, "summary"> &
  Partial<Omit<Endpoint, "method" | "path" | "area" | "surface" | "params" | Shapes>> & {
    readonly output: Output
    readonly query?: Query
    readonly body?: Body
    readonly reads?: Reads
  }

type Describe<Params extends z.ZodRawShape> = <
  Output extends z.ZodType,
  Query extends z.ZodType = z.ZodObject<{}>,
  Body extends z.ZodType = z.ZodUndefined,
  Reads extends "json" | "bytes" | "stream" = "json",
>(
  given: Described<Output, Query, Body, Reads>,
) => Endpoint<z.ZodObject<Params>, Query, Body, Output, Reads>

interface Listed<Item, Filters> extends Partial<Pick<Endpoint, "errors" | "access">> {
  readonly summary: string
  readonly of: Item
  /** The form of a cursor; where cursors are ids, their prefix. */
  readonly cursor: string | RegExp
  readonly filters?: Filters
}

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never

/** What the braces of a path name are ids, unless `Forms` has another form for them. */
type ParamsIn<Path extends string, Forms extends z.ZodRawShape> = {
  readonly [Name in NamesIn<Path>]: Name extends keyof Forms ? Forms[Name] : typeof PathId
}

interface EndpointGroup<Params extends z.ZodRawShape> {
  /** What lies further down, for the same callers. */
  at<Path extends string, Forms extends z.ZodRawShape = {}>(
    path: Path,
    forms?: Forms,
  ): EndpointGroup<Params & ParamsIn<Path, Forms>>
  readonly get: Describe<Params>
  readonly post: Describe<Params>
  readonly put: Describe<Params>
  readonly patch: Describe<Params>
  readonly delete: Describe<Params>
  /** A deletion that answers nothing. */
  remove(
    given: Pick<Endpoint, "summary"> & Partial<Pick<Endpoint, "errors" | "access">>,
  ): Endpoint<z.ZodObject<Params>, z.ZodObject<{}>, z.ZodUndefined, z.ZodVoid, "json">
  /** A list that comes in pages. */
  list<Item extends z.ZodType, Filters extends z.ZodRawShape = {}>(
    given: Listed<Item, Filters>,
  ): Endpoint<
    z.ZodObject<Params>,
    ReturnType<typeof filteredPage<Filters>>,
    z.ZodUndefined,
    ReturnType<typeof pageOf<Item>>,
    "json"
  >
}

export function endpointGroup<Path extends `/${string}`>(
  path: Path,
  shared: Shared,
): EndpointGroup<ParamsIn<Path, {}>> {
  // The names are those that the type reads from the same path.
  return groupAt(path, shared, paramsIn(path) as ParamsIn<Path, {}>)
}

const paramsIn = (path: string, forms: z.ZodRawShape = {}): z.ZodRawShape =>
  Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, forms[name] ?? PathId]))

function groupAt<Params extends z.ZodRawShape>(
  path: `/${string}`,
  shared: Shared,
  shape: Params,
): EndpointGroup<Params> {
  const { area, surface = "platform", read = apiRead, write } = shared
  const params = z.object(shape)
  const on =
    (method: Endpoint["method"]): Describe<Params> =>
    (given) =>
      endpoint({
        access: method === "GET" ? read : write,
        ...given,
        method,
        path,
        area,
        surface,
        params,
      })
  return {
    at: (more, forms) =>
      groupAt(`${path}${more}`, shared, {
        ...shape,
        // As above.
        ...(paramsIn(more, forms) as ParamsIn<typeof more, NonNullable<typeof forms>>),
      }),
    get: on("GET"),
    post: on("POST"),
    put: on("PUT"),
    patch: on("PATCH"),
    delete: on("DELETE"),
    remove: (given) => on("DELETE")({ ...given, output: z.void(), status: 204 }),
    list: ({ of: item, cursor, filters, ...given }) =>
      on("GET")({ ...given, query: filteredPage(cursor, filters), output: pageOf(item), wrap: "none" }),
  }
}

const filteredPage = <Filters extends z.ZodRawShape>(
  cursor: string | RegExp,
  // Without filters their type has no fields.
  filters = {} as Filters,
) => pageQuery(typeof cursor === "string" ? idForm(cursor) : cursor).extend(filters)
