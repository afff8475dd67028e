/** Answers a repeated write again instead of doing it again: the Idempotency-Key of the Platform API. */
import { createHash } from "node:crypto"
import type { Principal } from "../contract/access.ts"
import { EncodedJson, type Endpoint, type IdempotentRun, type RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { isWrite } from "../contract/implied-errors.ts"

export interface IdempotentRequest {
  readonly scope: string
  readonly key: string
  /** SHA-256 of the body. */
  readonly requestHash: Uint8Array
}

/** What remembers the answers; the composition root brings it. */
export interface IdempotencyStore {
  /** Waits for one that runs; refuses another body under the same key. */
  claim(
    request: IdempotentRequest,
  ): Promise<{ readonly attemptId: string } | { readonly body: string | null }>
  /** Unless the transaction of the work has done so. */
  complete(run: IdempotentRun, output: unknown): Promise<void>
  /** After a failure that changed nothing. */
  release(run: IdempotentRun): Promise<void>
}

const replayedHeader = "idempotent-replayed"
const keyForm = /^[\x21-\x7e]{1,255}$/

/** Null where nothing is remembered: reads, callers without a name, requests without a key. */
export function idempotentRequest(
  {
    endpoint,
    principal,
    path,
    facts,
  }: {
    readonly endpoint: Endpoint
    readonly principal: Principal | null
    readonly path: string
    readonly facts: RequestFacts
  },
  body: unknown,
): IdempotentRequest | null {
  if (principal === null || !isWrite(endpoint)) return null
  const key = facts.header("idempotency-key")
  if (key === null) return null
  if (!keyForm.test(key))
    throw new Fault(
      "invalid_header",
      "Cannot use the Idempotency-Key: it needs 1 to 255 printable characters without spaces",
    )
  const text = JSON.stringify(body) ?? ""
  const requestHash = new Uint8Array(createHash("sha256").update(text).digest())
  return { scope: `${principal.kind}:${principal.id} ${endpoint.method} ${path}`, key, requestHash }
}

/** Runs `work` unless an answer to the same request is remembered. */
export async function runIdempotent(
  request: IdempotentRequest,
  {
    endpoint,
    header,
  }: {
    readonly endpoint: Endpoint
    readonly header: (name: string, value: string) => void
  },
  store: IdempotencyStore,
  work: (run: IdempotentRun) => Promise<unknown>,
): Promise<unknown> {
  const claimed = await store.claim(request)
  if (!("attemptId" in claimed)) {
    header(replayedHeader, "true")
    return new EncodedJson(claimed.body ?? "")
  }
  const { scope, key } = request
  const run: IdempotentRun = {
    scope,
    key,
    attemptId: claimed.attemptId,
    encode: (output) => encode(endpoint, output),
  }
  const output = await work(run).catch(async (error: unknown) => {
    // A key that cannot be released now is released by time; the caller must hear of the first failure.
    await store.release(run).catch(() => undefined)
    throw error
  })
  await store.complete(run, output)
  return output
}

function encode(endpoint: Endpoint, output: unknown): { status: number; body: string | null } {
  const { status, secrets } = endpoint
  if (status === 204) return { status, body: null }
  if (output instanceof EncodedJson) return { status, body: output.text }
  // Endpoints with secrets answer objects.
  const hidden = Object.fromEntries(secrets.map((field) => [field, null]))
  const shown = secrets.length > 0 ? { ...(output as object), ...hidden } : output
  return { status, body: JSON.stringify(endpoint.wrap === "data" ? { data: shown } : shown) }
}
