/** A typed client made from the table of endpoints; the console, the CLI and the tests share it. */
import type { z } from "zod"
import { Document, type Endpoint } from "./endpoint.ts"
import type { OperatorTable } from "./operator.ts"
import { type Table, table } from "./table.ts"

type Given<Schema extends z.ZodType, Key extends string> =
  z.input<Schema> extends undefined
    ? {}
    : {} extends z.input<Schema>
      ? { readonly [K in Key]?: z.input<Schema> }
      : { readonly [K in Key]: z.input<Schema> }

type Request<E extends Endpoint> = Given<E["params"], "params"> &
  Given<E["query"], "query"> &
  Given<E["body"], "body"> &
  CallOptions

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly headers?: Record<string, string>
  /** Told of the headers of the answer, also of a refusal, before the call ends. */
  readonly onHeaders?: (headers: Headers) => void
}

type ClientOf<Endpoints extends Record<string, Endpoint>> = {
  readonly [Name in keyof Endpoints]: (
    ...given: {} extends Request<Endpoints[Name]>
      ? [request?: Request<Endpoints[Name]>]
      : [request: Request<Endpoints[Name]>]
  ) => Promise<z.output<Endpoints[Name]["output"]>>
}

export type Client = ClientOf<Table>
export type OperatorClient = ClientOf<OperatorTable>

/** As much of `fetch` as a client needs. */
export type Fetcher = (url: URL, request: RequestInit) => Promise<Response>

/** What the server refused, with its stable code. */
export class ClientError extends Error {
  override readonly name = "ClientError"
  readonly status: number
  readonly code: string | null
  readonly body: unknown
  /** How long to wait before trying again, where the server says so. */
  readonly retryAfterMs: number | null

  constructor(
    status: number,
    code: string | null,
    message: string,
    body: unknown,
    retryAfterMs: number | null = null,
  ) {
    super(message)
    this.status = status
    this.code = code
    this.body = body
    this.retryAfterMs = retryAfterMs
  }
}

/** `baseUrl` is the address without `/v1`; `headers` carry the bearer value. */
export function createClient(
  baseUrl: string,
  headers: Record<string, string>,
  fetcher: Fetcher = fetch,
): Client {
  return clientOf(table, { baseUrl, headers, fetcher })
}

interface Connection {
  readonly baseUrl: string
  readonly headers: Record<string, string>
  readonly fetcher: Fetcher
}

export function clientOf<Endpoints extends Record<string, Endpoint>>(
  endpoints: Endpoints,
  connection: Connection,
): ClientOf<Endpoints> {
  const entries = Object.entries(endpoints).map(([name, endpoint]) => [
    name,
    (request: LooseRequest = {}) => call(endpoint, connection, request),
  ])
  // Every name of the table is present, and `call` answers what its endpoint says or throws.
  return Object.fromEntries(entries) as ClientOf<Endpoints>
}

interface LooseRequest extends CallOptions {
  readonly params?: Record<string, unknown>
  readonly query?: Record<string, unknown>
  readonly body?: unknown
}

async function call(
  endpoint: Endpoint,
  { baseUrl, headers, fetcher }: Connection,
  request: LooseRequest,
): Promise<unknown> {
  const response = await fetcher(addressOf(endpoint, baseUrl, request), {
    method: endpoint.method,
    headers: {
      ...(request.body === undefined ? {} : { "content-type": endpoint.consumes?.[0] ?? "application/json" }),
      ...headers,
      ...request.headers,
    },
    ...(request.body === undefined ? {} : { body: bodyOf(endpoint, request.body) }),
    ...(request.signal ? { signal: request.signal } : {}),
  })
  request.onHeaders?.(response.headers)
  if (response.ok && endpoint.produces) return new Document(new Uint8Array(await response.arrayBuffer()))
  const body = parsed(await response.text(), response.status)
  if (!response.ok) throw refusalOf(response, body)
  // The server wraps what its endpoint says that it wraps.
  return endpoint.wrap === "data" && endpoint.status !== 204 ? (body as { data: unknown }).data : body
}

/** What the server says of a request that it refused. */
export function refusalOf({ status, headers }: Response, body: unknown): ClientError {
  // Where something else answers for the server, neither field is there.
  const { error } = (body ?? {}) as { error?: { code?: string; message?: string } }
  const message = error?.message ?? `The server answered ${status}`
  return new ClientError(status, error?.code ?? null, message, body, retryAfterMsOf(headers))
}

/** The schema of a body that is not JSON is a text. */
const bodyOf = ({ consumes }: Endpoint, body: unknown): string =>
  consumes ? String(body) : JSON.stringify(body)

export function retryAfterMsOf(headers: Headers): number | null {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : null
}

/** What stands in front of a server may answer for it, and not in JSON. */
function parsed(text: string, status: number): unknown {
  try {
    return text === "" ? null : JSON.parse(text)
  } catch {
    throw new ClientError(status, null, `The server answered ${status} with something that is not JSON`, text)
  }
}

function addressOf(endpoint: Endpoint, baseUrl: string, request: LooseRequest): URL {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(request.params?.[name])),
  )
  const url = new URL(baseUrl.replace(/\/$/, "") + path)
  for (const [name, value] of Object.entries(request.query ?? {}))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined) url.searchParams.append(name, String(one))
  return url
}
