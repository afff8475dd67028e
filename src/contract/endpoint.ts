/** An endpoint is data: the server mounts it, the OpenAPI document prints it, the client calls it, one place checks it. */
import { z } from "zod"
import type { Membership, Permission, Principal, PrincipalKind, Role } from "./access.ts"
import "./check.ts"
import type { FaultCode } from "./errors.ts"

/** Objects of the wire that have a name in the OpenAPI document. */
export const namedObject = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.object(shape).meta({ id })

/** A field that it does not know is refused. */
export const namedStrictObject = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.strictObject(shape).meta({ id })

/** What a request record says that a request was made by: the endpoint, or the job. */
const callSources = [
  "decisions",
  "systemone",
  "responses",
  "responses_ws",
  "compact",
  "chat_completions",
  "completions",
  "embeddings",
  "messages",
  "count_tokens",
  "rerank",
  "moderations",
  "guardrail",
  "teach",
  "check",
  "shadow",
  "redaction",
] as const
export type CallSource = (typeof callSources)[number]

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** Which conventions a path follows: how errors look, and which status a bad body has. */
export type Surface = "classification" | "openai" | "anthropic" | "platform" | "oauth" | "service" | "mcp"

interface Access {
  /** The kinds that may call; none means that anyone may, with or without credentials. */
  readonly principals: readonly PrincipalKind[]
  readonly permission?: Permission
  /** An organization owner is needed: of sessions only, or of every principal (so that an organization's key is refused). */
  readonly owner?: "sessions" | "everyone"
  /** The handler itself checks the bearer value, which stands for no principal. */
  readonly ownBearer?: true
  /** Sessions of these roles pass without the permission; keys and workload tokens still need it. */
  readonly alsoRoles?: readonly Role[]
}

export interface Endpoint<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
  Reads extends "json" | "bytes" | "stream" = "json" | "bytes" | "stream",
> {
  readonly method: Method
  /** Parameters in braces: `/v1/organizations/{org_id}`. */
  readonly path: `/${string}`
  readonly area: string
  /** In the imperative; what follows a semicolon is told in the description. */
  readonly summary: string
  readonly surface: Surface
  readonly access: Access
  readonly params: Params
  readonly query: Query
  /** `z.undefined()` where a request has no body. */
  readonly body: Body
  /** Bytes, or a stream of them: the handler reads the body itself, and `body` only documents it. */
  readonly reads: Reads
  /** Content types of a body that is not JSON; the handler reads its bytes. */
  readonly consumes?: readonly string[]
  readonly bodyBytesMax: number
  readonly output: Output
  /** Whether a success is wrapped as `{data}` or sent as it is (a page brings its own `data` and `next_cursor`). */
  readonly wrap: "data" | "none"
  /** 303 sends a browser elsewhere: the handler sets the header `location`. */
  readonly status: 200 | 201 | 204 | 303
  /** Some requests are `Accepted`: 202 without a body. */
  readonly accepts?: true
  /** A request may ask for its answer as events. */
  readonly streams?: true
  /** It is answered by changing to the WebSocket protocol. */
  readonly upgrades?: true
  /** Every request is recorded, as this, and the answer names the id of its record in a header. */
  readonly callSource?: CallSource
  /** The content type of an answer that is not JSON: the handler answers a `Document`. */
  readonly produces?: string
  /** Fields of the output that are shown once: null in the answer to a request repeated with its Idempotency-Key. */
  readonly secrets: readonly string[]
  /** Codes of its own, beside those that follow from its access and surface. */
  readonly errors: readonly FaultCode[]
}

const kibibyte = 1024
const bodyBytesMaxOf = {
  platform: 64 * kibibyte,
  classification: 8 * kibibyte * kibibyte,
  openai: 32 * kibibyte * kibibyte,
  anthropic: 32 * kibibyte * kibibyte,
} as const

/** Fills in what most endpoints have in common. */
export function endpoint<
  Output extends z.ZodType,
  Params extends z.ZodType = z.ZodObject<{}>,
  Query extends z.ZodType = z.ZodObject<{}>,
  Body extends z.ZodType = z.ZodUndefined,
  Reads extends "json" | "bytes" | "stream" = "json",
>(
  given: Pick<Endpoint, "method" | "path" | "area" | "summary" | "surface" | "access"> & {
    readonly output: Output
    readonly params?: Params
    readonly query?: Query
    readonly body?: Body
    readonly reads?: Reads
  } & Partial<
      Pick<
        Endpoint,
        | "bodyBytesMax"
        | "consumes"
        | "wrap"
        | "status"
        | "accepts"
        | "secrets"
        | "errors"
        | "streams"
        | "upgrades"
        | "callSource"
        | "produces"
      >
    >,
): Endpoint<Params, Query, Body, Output, Reads> {
  const { surface } = given
  return {
    bodyBytesMax:
      surface === "classification" || surface === "openai" || surface === "anthropic"
        ? bodyBytesMaxOf[surface]
        : bodyBytesMaxOf.platform,
    wrap: surface === "platform" ? "data" : "none",
    status: 200,
    secrets: [],
    errors: [],
    ...given,
    // The defaults of the type parameters are exactly these values, so what is left out has its type.
    reads: (given.reads ?? "json") as Reads,
    params: (given.params ?? z.object({})) as Params,
    query: (given.query ?? z.object({})) as Query,
    body: (given.body ?? z.undefined()) as Body,
  }
}

type ParamsOf<E extends Endpoint> = z.output<E["params"]>
type QueryOf<E extends Endpoint> = z.output<E["query"]>
type BodyOf<E extends Endpoint> = E["reads"] extends "bytes"
  ? Uint8Array
  : E["reads"] extends "stream"
    ? BodyStream
    : z.output<E["body"]>
export type OutputOf<E extends Endpoint> = z.output<E["output"]>

/** Names the sequence that an answer belongs to, also where the request failed after its sequence began. */
export const sequenceHeader = "x-umpire-sequence"
/** What a request for decisions cost, in USD. */
export const costHeader = "x-umpire-cost"

/** One call, as a handler sees it: parsed, authenticated and allowed. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params
  readonly query: Query
  /** The parsed body, or its bytes or the stream of them where the endpoint reads those. */
  readonly body: Body
  /** Null only where the endpoint is open to anyone. */
  readonly principal: Principal | null
  /** What the principal is in the organization of the path; null where the path names none. */
  readonly membership: Membership | null
  readonly request: RequestFacts
  /** Set when the request carries an Idempotency-Key; the transaction of the change completes it. */
  readonly idempotency: IdempotentRun | null
  /** Adds a header to the response. */
  header(name: string, value: string): void
}

/** A body that is read while it comes: once, within the endpoint's limit, and no slower than any other body may come. */
export interface BodyStream {
  readonly contentType: string
  /** Null when the client does not say. */
  readonly contentLength: number | null
  readonly pieces: AsyncIterable<Uint8Array>
}

export interface RequestFacts {
  readonly id: string
  readonly ip: string
  readonly userAgent: string | null
  /** Unix milliseconds at which the head of the request was read. */
  readonly startedMs: number
  header(name: string): string | null
  /** Aborted when the client goes away or the deadline passes. */
  readonly signal: AbortSignal
  /**
   * Of a line of a batch and of a request with an Idempotency-Key: what its sequence is called when it has succeeded or cost
   * anything, so that it is charged once however often it runs.
   */
  readonly sequenceId?: string
  /**
   * Unix milliseconds of the day and month that its sequence is charged to, where they are not those of `startedMs`: an
   * attempt that takes over from one that died has the time of the first.
   */
  readonly chargedMs?: number
  /** A line of a batch: it lets all others go first. */
  readonly isBatch?: true
}

/** The one run of a request that may be repeated under the same Idempotency-Key. */
export interface IdempotentRun {
  /** Who, what method, what path. */
  readonly scope: string
  readonly key: string
  readonly attemptId: string
  /** When the first attempt began; the same for the attempt that takes over from one that died. */
  readonly claimedMs: number
  encode(output: unknown): IdempotentAnswer
}

/** What a repeated request is answered. */
export interface IdempotentAnswer {
  readonly status: number
  /** The output with its secrets null. */
  readonly body: string | null
  /** Those that the handler of an endpoint with a call source set; of others none, because cookies and the like are not kept. */
  readonly headers: Readonly<Record<string, string>>
}

/** A response body that is already JSON text. */
export class EncodedJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** JSON that is the same for every caller while the process runs: written once, and not sent again to who has it by its ETag. */
export class ConstantJson {
  readonly bytes: Uint8Array
  readonly etag: string

  constructor(bytes: Uint8Array, etag: string) {
    this.bytes = bytes
    this.etag = etag
  }
}

/** An event of a streamed answer: a JSON value, under a name where the surface names its events. */
export interface StreamEvent {
  readonly name: string | null
  readonly value: unknown
}

/** An answer that comes as events. What fails before the first event is an ordinary error. */
export class EventStream {
  readonly events: AsyncIterable<StreamEvent>
  /** What stands after the last event, as it is; null for nothing. */
  readonly ending: string | null

  constructor(events: AsyncIterable<StreamEvent>, ending: string | null) {
    this.events = events
    this.ending = ending
  }
}

/** A response body that is not JSON, of the content type that its endpoint produces. */
export class Document {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/** A document that is sent piece by piece, no faster than the client reads it. */
export class DocumentStream {
  readonly pieces: AsyncIterable<string | Uint8Array>

  constructor(pieces: AsyncIterable<string | Uint8Array>) {
    this.pieces = pieces
  }
}

/** Taken, with nothing to answer: 202 without a body. */
export class Accepted {
  readonly status = 202
}

export type CallOf<E extends Endpoint> = Call<ParamsOf<E>, QueryOf<E>, BodyOf<E>>

export type Handler<E extends Endpoint> = (call: CallOf<E>) => Promise<HandlerOutput<E>>

/** One that is given what it works with first. */
export type Handle<Deps, E extends Endpoint> = (deps: Deps, call: CallOf<E>) => Promise<HandlerOutput<E>>

/** A page already has its own wrapping; everything else is wrapped as the endpoint says. */
type HandlerOutput<E extends Endpoint> =
  | OutputOf<E>
  | EncodedJson
  | ConstantJson
  | EventStream
  | DocumentStream
  | Accepted

/** A table of endpoints without a handler for each of them does not compile. */
export type Handlers<Table extends Record<string, Endpoint>> = {
  readonly [Name in keyof Table]: Handler<Table[Name]>
}

/** The errors an endpoint can answer: its own, and those that follow from who may call it and how it reads a body. */
export function errorsOf(endpoint: Endpoint): FaultCode[] {
  const codes = new Set<FaultCode>(["internal", ...endpoint.errors])
  if (endpoint.access.principals.length > 0) addAll(codes, accessErrors(endpoint))
  // Every inference request may carry tags in a header.
  if (endpoint.callSource) codes.add("invalid_header")
  if (!(endpoint.body instanceof z.ZodUndefined)) addAll(codes, bodyErrors(endpoint))
  if (refusesUnknownQuery(endpoint)) codes.add("unknown_parameter")
  if (isRepeatable(endpoint)) addAll(codes, ["conflict", "idempotency_key_reused", "invalid_header"])
  if (isRepeatable(endpoint) && endpoint.callSource) codes.add("storage_full")
  if (endpoint.surface === "platform") addAll(codes, platformErrors(endpoint))
  return [...codes]
}

/** Of a body that cannot be read at all; which codes those are follows from the surface (server/input.ts). */
function bodyErrors({ surface, reads, consumes }: Endpoint): FaultCode[] {
  const isClassification = surface === "classification"
  const isInference = isClassification || surface === "openai" || surface === "anthropic"
  return [
    ...(reads === "stream" ? [] : (["over_capacity"] as const)),
    isClassification ? "body_too_large" : "body_over_limit",
    isInference && !consumes ? "unsupported_content_type" : "not_json",
    ...(isInference && !isClassification ? (["unsupported_encoding"] as const) : []),
  ]
}

/** OpenAI and Anthropic refuse what they do not know, in the query as in the body. */
export function refusesUnknownQuery({ surface }: Endpoint): boolean {
  return surface === "openai" || surface === "anthropic"
}

function accessErrors({ access: { principals } }: Endpoint): FaultCode[] {
  return [
    "missing_credentials",
    "invalid_credentials",
    "rate_limited",
    "permission_denied",
    "store_unavailable",
    ...(principals.includes("session") ? (["single_sign_on_required"] as const) : []),
    ...(principals.includes("key") ? (["network_denied"] as const) : []),
    ...(principals.length < 3 ? (["principal_not_accepted"] as const) : []),
  ]
}

function platformErrors(endpoint: Endpoint): FaultCode[] {
  const codes: FaultCode[] = []
  if (isWrite(endpoint) && endpoint.access.principals.includes("session")) codes.push("csrf_refused")
  if (endpoint.path.includes("{")) codes.push("not_found")
  if (endpoint.query instanceof z.ZodObject && Object.keys(endpoint.query.shape).length > 0)
    codes.push("invalid_query")
  if (!(endpoint.body instanceof z.ZodUndefined)) codes.push("malformed_json", "invalid_body")
  if (storesBody(endpoint)) codes.push("storage_full")
  return codes
}

/** Takes an Idempotency-Key: the Platform API's writes and classification, where the caller is known. */
export function isRepeatable(endpoint: Endpoint): boolean {
  const { surface, access } = endpoint
  const isTaken = surface === "platform" || surface === "classification"
  return isTaken && isWrite(endpoint) && access.principals.length > 0
}

/** Whether what is sent is kept and may be large: it is refused where the disk has no room beside what is kept for usage. */
export function storesBody(endpoint: Endpoint): boolean {
  const { surface, bodyBytesMax, callSource } = endpoint
  return surface === "platform" && isWrite(endpoint) && bodyBytesMax > bodyBytesMaxOf.platform && !callSource
}

/** Writes take cookies only from our own pages. */
export function isWrite({ method }: Endpoint): boolean {
  return method !== "GET"
}

function addAll(codes: Set<FaultCode>, more: readonly FaultCode[]): void {
  for (const code of more) codes.add(code)
}
