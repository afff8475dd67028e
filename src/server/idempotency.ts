/** Answers a repeated request again instead of doing it again: the Idempotency-Key of writes and of classification. */
import { subtle } from "node:crypto"
import { derivedId } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Principal } from "../contract/access.ts"
import {
  type Call,
  type Endpoint,
  type IdempotentAnswer,
  type IdempotentRun,
  type RequestFacts,
  EncodedJson,
  isRepeatable,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"

interface IdempotentRequest {
  readonly scope: string
  readonly key: string
  /** SHA-256 of the body. */
  readonly requestHash: Uint8Array
  /** Of the body. */
  readonly bytes: number
}

/** What remembers the answers; the composition root brings it. */
export interface IdempotencyStore {
  /** Waits for one that runs; refuses another body under the same key. Null for a new request that may not begin. */
  claim(
    request: IdempotentRequest,
    mayBegin: boolean,
  ): Promise<
    | { readonly attemptId: string; readonly claimedMs: number }
    | Pick<IdempotentAnswer, "body" | "headers">
    | null
  >
  /** What is kept of the body of an answer. */
  seal(request: IdempotentRequest, body: string): string
  /** Unless the transaction of the work has done so. */
  complete(run: IdempotentRun, output: unknown): Promise<void>
  /** After a failure that changed nothing. */
  release(run: IdempotentRun): Promise<void>
}

const replayedHeader = "idempotent-replayed"
const keyForm = /^[\x21-\x7e]{1,255}$/

/** Null where nothing is remembered: endpoints that do not say so, and callers without a name. */
export async function idempotentRequest(
  key: string,
  {
    endpoint,
    principal,
    path,
    body,
  }: {
    readonly endpoint: Endpoint
    readonly principal: Principal | null
    readonly path: string
    /** As it was sent, uncompressed; none where the request has none. */
    readonly body?: Uint8Array
  },
  { membership }: Pick<Call, "membership">,
): Promise<IdempotentRequest | null> {
  if (principal === null || !isRepeatable(endpoint)) return null
  if (!keyForm.test(key))
    throw new Fault(
      "invalid_header",
      "Cannot use the Idempotency-Key: it needs 1 to 255 printable characters without spaces",
    )
  // In a thread of libuv: a body may have 8 MiB.
  const requestHash = new Uint8Array(await subtle.digest("SHA-256", body ?? new Uint8Array()))
  const scope = `${principal.kind}:${principal.id} ${endpoint.method} ${path}`
  // The path of classification names no organization: a session says by a header for which one it asks.
  const known = { key, requestHash, bytes: body?.length ?? 0 }
  if (!endpoint.callSource) return { scope, ...known }
  return { scope: `${scope} ${membership?.organizationId ?? ""}`, ...known }
}

/** Runs `work` unless an answer to the same request is remembered. */
export async function runIdempotent(
  request: IdempotentRequest,
  {
    endpoint,
    header,
    log,
  }: {
    readonly endpoint: Endpoint
    readonly header: Call["header"]
    readonly log: Log
  },
  {
    store,
    hasRowSpace,
    work,
  }: {
    readonly store: IdempotencyStore
    /** Whether so many bytes may be added to the database. */
    readonly hasRowSpace: (bytes: number) => boolean
    readonly work: (run: IdempotentRun, header: Call["header"]) => Promise<unknown>
  },
): Promise<unknown> {
  // What was asked may be asked without end, and its answers be large; a change answers no more than it is.
  const isLarge = endpoint.callSource !== undefined
  const claimed = await store.claim(request, !isLarge || hasRowSpace(request.bytes))
  if (!claimed)
    throw new Fault(
      "storage_full",
      "Cannot take the Idempotency-Key: the disk has no room for an answer to keep; the operator must make some",
    )
  if (!("attemptId" in claimed)) {
    header(replayedHeader, "true")
    for (const [name, value] of Object.entries(claimed.headers)) header(name, value)
    return new EncodedJson(claimed.body ?? "")
  }
  const { scope, key } = request
  const headers: Record<string, string> = {}
  const keepHeader: Call["header"] = (name, value) => {
    headers[name] = value
    header(name, value)
  }
  const run: IdempotentRun = {
    scope,
    key,
    attemptId: claimed.attemptId,
    claimedMs: claimed.claimedMs,
    encode: (output) => {
      const { status, body } = encode(endpoint, output)
      const kept = body === null ? null : store.seal(request, body)
      if (isLarge && !hasRowSpace(kept?.length ?? 0))
        throw new Fault("storage_full", "Cannot keep the answer: the disk has no room for it")
      return { status, body: kept, headers: { ...headers } }
    },
  }
  const output = await work(run, endpoint.callSource ? keepHeader : header).catch(async (error: unknown) => {
    // A key that cannot be released now is released by time; the caller must hear of the first failure.
    await store.release(run).catch(() => undefined)
    throw error
  })
  await store.complete(run, output).catch((error: unknown) => {
    if (!endpoint.callSource) throw error
    // It is charged: the caller gets what was paid for, and a repetition runs again under the same sequence.
    log.warn({ err: error }, "the answer to a request with an Idempotency-Key could not be kept")
  })
  return output
}

/**
 * What a metered request is to its handler: an attempt that takes over from one that died has the same sequence and is
 * charged at the same time, so that the ledger takes its charge once.
 */
export function repeatableFacts(
  facts: RequestFacts,
  request: IdempotentRequest,
  { claimedMs }: IdempotentRun,
): RequestFacts {
  const { id, ip, userAgent, startedMs, signal } = facts
  const header = (name: string): string | null => facts.header(name)
  const sequenceId = sequenceIdOf(request, claimedMs)
  return { id, ip, userAgent, startedMs, signal, header, sequenceId, chargedMs: claimedMs }
}

/** Another body under the same key, once the first is forgotten, is another sequence by its time and hash. */
const sequenceIdOf = ({ scope, key, requestHash }: IdempotentRequest, claimedMs: number): string =>
  derivedId("seq", claimedMs, `${scope} ${key} ${Buffer.from(requestHash).toString("hex")}`)

function encode(endpoint: Endpoint, output: unknown): Omit<IdempotentAnswer, "headers"> {
  const { status, secrets } = endpoint
  if (status === 204) return { status, body: null }
  if (output instanceof EncodedJson) return { status, body: output.text }
  // Endpoints with secrets answer objects.
  const hidden = Object.fromEntries(secrets.map((field) => [field, null]))
  const shown = secrets.length > 0 ? { ...(output as object), ...hidden } : output
  return { status, body: JSON.stringify(endpoint.wrap === "data" ? { data: shown } : shown) }
}
