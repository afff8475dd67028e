/** Reads an HTTP request: the facts of its head, and its parts by the endpoint's schemas. */
import type { IncomingMessage } from "node:http"
import { z } from "zod"
import { clientAddress, type TrustedProxies } from "../base/addresses.ts"
import { checkJson, checkJsonBounds, JsonError } from "../base/json.ts"
import { keysOf } from "../base/lists.ts"
import { ownBuffers } from "../base/own-buffer.ts"
import { task, threadBytesMin, threads } from "../base/peer/threads.ts"
import { check, problemsMax } from "../contract/check.ts"
import { type Endpoint, refusesUnknownQuery, type RequestFacts } from "../contract/endpoint.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"
import { type EndpointName, table } from "../contract/table.ts"
import type { BodyReader } from "./body.ts"

export function parseParams(
  endpoint: Endpoint,
  params: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (asksNothing(endpoint.params)) return nothing
  const parsed = endpoint.params.safeParse(params)
  // An id that cannot exist is an id that is not visible; the store cannot even be asked about U+0000.
  if (!parsed.success || Object.values(params).some((value) => value.includes("\u0000")))
    throw new Fault("not_found", "Cannot find the resource: no such id is visible to this principal")
  // Path parameters are strings, and no schema of one makes anything else of it.
  return parsed.data as Readonly<Record<string, string>>
}

export function parseQuery(endpoint: Endpoint, search: URLSearchParams): unknown {
  if (search.size > 0 && refusesUnknownQuery(endpoint)) checkNames(endpoint, search)
  if (asksNothing(endpoint.query) || !(endpoint.query instanceof z.ZodObject)) return nothing
  const values: Record<string, string | string[]> = {}
  for (const [name, schema] of Object.entries(endpoint.query.shape)) {
    // Some clients write lists as PHP does.
    const given = [...search.getAll(name), ...(acceptsList(schema) ? search.getAll(`${name}[]`) : [])]
    if (given.length === 0) continue
    if (given.some((value) => value.includes("\u0000"))) throw badQuery(name, "holds U+0000")
    if (acceptsList(schema)) values[name] = given
    else if (given.length === 1 && given[0] !== undefined) values[name] = given[0]
    else throw badQuery(name, "is given more than once")
  }
  return checkPart(endpoint.query, values, { code: "invalid_query", part: "query", bytes: search.size })
}

function checkNames({ query }: Endpoint, search: URLSearchParams): void {
  const shape = query instanceof z.ZodObject ? query.shape : {}
  for (const name of search.keys()) {
    if (Object.hasOwn(shape, name.replace(/\[\]$/, ""))) continue
    const shown = name.slice(0, shownCharactersMax)
    throw new Fault("unknown_parameter", `Cannot use the query: ${shown} is no such parameter`, {
      param: shown,
    })
  }
}

/** Of a name that an error quotes. */
const shownCharactersMax = 64

const nothing: Readonly<Record<string, never>> = Object.freeze({})

/** Whether a schema has no fields, as those of most endpoints for inference: then there is nothing to be read. */
const asksNothing = memoised(
  (schema) => schema instanceof z.ZodObject && Object.keys(schema.shape).length === 0,
)

const isAbsent = memoised((schema) => schema instanceof z.ZodUndefined)

export const takesNoBody = ({ body }: Endpoint): boolean => isAbsent(body)

/** By schema: a schema never changes. */
function memoised(test: (schema: z.ZodType) => boolean): (schema: z.ZodType) => boolean {
  const known = new WeakMap<z.ZodType, boolean>()
  return (schema) => {
    let found = known.get(schema)
    if (found === undefined) known.set(schema, (found = test(schema)))
    return found
  }
}

function badQuery(name: string, found: string): Fault {
  return new Fault("invalid_query", `Cannot read the query: ${name} ${found}`, {
    details: [{ path: name, message: found }],
  })
}

function acceptsList(schema: z.core.$ZodType): boolean {
  if (schema instanceof z.ZodArray) return true
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return acceptsList(schema.unwrap())
  return false
}

interface FactsDeps {
  readonly id: string
  readonly trustedProxies: TrustedProxies
  readonly startedMs: number
  readonly signal: AbortSignal
}

export class MessageFacts implements RequestFacts {
  readonly id: string
  readonly ip: string
  readonly userAgent: string | null
  readonly startedMs: number
  readonly signal: AbortSignal
  readonly #message: IncomingMessage

  constructor(message: IncomingMessage, { id, trustedProxies, startedMs, signal }: FactsDeps) {
    const { headers, socket } = message
    // Node joins repeated headers of this name with commas.
    const forwarded = headerOf(message, "x-forwarded-for") ?? undefined
    this.id = id
    this.ip = clientAddress(socket.remoteAddress ?? "", forwarded, trustedProxies)
    this.userAgent = headers["user-agent"] ?? null
    this.startedMs = startedMs
    this.signal = signal
    this.#message = message
  }

  header(name: string): string | null {
    return headerOf(this.#message, name)
  }
}

export function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name]
  return typeof value === "string" ? value : null
}

interface RequestTarget {
  readonly path: string
  readonly search: URLSearchParams
}

const noSearch = new URLSearchParams()

/**
 * Path and query of the request target. A target in absolute form, as proxies may send it, also names the host, which
 * then counts instead of the Host header (RFC 9112, section 3.2.2).
 */
export function readTarget(message: IncomingMessage): RequestTarget {
  const { url = "" } = message
  const [absolute, authority] = url.startsWith("/") ? [] : (/^https?:\/\/([^/?#]+)/i.exec(url) ?? [])
  if (authority !== undefined) message.headers.host = authority
  const target = absolute === undefined ? url : url.slice(absolute.length)
  const queryAt = target.indexOf("?")
  const path = queryAt < 0 ? target : target.slice(0, queryAt)
  return {
    path: path === "" ? "/" : path,
    search: queryAt < 0 ? noSearch : new URLSearchParams(target.slice(queryAt + 1)),
  }
}

/** Whether the message names its host more than once; Node keeps only the first (RFC 9112, section 3.2: refused). */
export function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++
  }
  return hosts > 1
}

interface Parser extends Omit<BodyReader, "lease"> {
  /** Whether the bytes are needed afterwards; large ones are empty otherwise. */
  readonly keepsBytes: boolean
}

const names = new Map<Endpoint, EndpointName>(keysOf(table).map((name) => [table[name], name]))

/** 400, 422, after the 415 and 413 of reading. */
export async function parseBody(endpoint: Endpoint, bytes: Uint8Array, parser: Parser): Promise<unknown> {
  if (endpoint.reads === "bytes") return bytes
  const name = names.get(endpoint)
  if (bytes.byteLength < threadBytesMin || name === undefined) return parseJsonBody(endpoint.body, bytes)
  const parsing = parser.keepsBytes ? parseTask : parseTakenTask
  return await threads.run(parser.owner, parsing, { name, bytes }, parser.signal)
}

const parseTask = task(import.meta.url, parseNamed)
const parseTakenTask = task(import.meta.url, parseNamed, ({ bytes }) => ownBuffers(bytes))

/** In a thread, which has the same table. */
export function parseNamed({ name, bytes }: { name: EndpointName; bytes: Uint8Array }): unknown {
  return parseJsonBody(table[name].body, bytes)
}

export function parseJsonBody(schema: z.ZodType, bytes: Uint8Array): unknown {
  const value = parseJson(bytes)
  return checkPart(schema, value, { code: "invalid_body", part: "body", bytes: bytes.byteLength })
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Refuses what JSON.parse lets pass and a store would change (keys given twice, lone surrogates), and far too many values. */
function parseJson(bytes: Uint8Array): unknown {
  let text: string
  let value: unknown
  try {
    checkJsonBounds(bytes)
    text = utf8.decode(bytes)
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof JsonError) throw new Fault("invalid_body", `Cannot use the body: ${error.message}`)
    // The parser's own words quote the body, which may hold a secret.
    throw new Fault("malformed_json", "Cannot read the request: its body is not JSON")
  }
  try {
    checkJson(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new Fault("invalid_body", `Cannot use the body: ${error.message}`)
  }
  return value
}

/** The value that the schema makes of it; a Fault names what is wrong with it. */
function checkPart(
  schema: z.ZodType,
  value: unknown,
  { code, part, bytes }: { readonly code: FaultCode; readonly part: string; readonly bytes: number },
): unknown {
  const parsed = check(schema, value, bytes)
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.slice(0, problemsMax).flatMap(describe).slice(0, problemsMax)
  const first = details[0]
  const found = first ? `${first.path || "its top"}: ${first.message}` : "it does not match the schema"
  throw new Fault(code, `Cannot use the ${part}: ${found}`, {
    details,
    ...(first?.path ? { param: first.path } : {}),
  })
}

function describe(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys
      .slice(0, problemsMax)
      .map((key) => ({ path: [...issue.path, key].join("."), message: "no such field" }))
  return [{ path: issue.path.join("."), message: issue.message }]
}
