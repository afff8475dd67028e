/** Answers a repeated write again instead of doing it again: the Idempotency-Key of the Platform API. */
import { createHash } from "node:crypto"
import type { Principal } from "../contract/access.ts"
import { type Attempt, EncodedJson, type Endpoint, type RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { isWrite } from "../contract/implied-errors.ts"

interface RepeatedRequest {
  readonly scope: string
  readonly key: string
  /** SHA-256 of the body. */
  readonly requestHash: Uint8Array
}

/** What remembers the answers; the composition root brings it. */
export interface Repeats {
  /** Waits for one that runs; refuses another body under the same key. */
  claim(request: RepeatedRequest): Promise<{ readonly attemptId: string } | { readonly body: string | null }>
  /** Unless the transaction of the work has done so. */
  complete(attempt: Attempt, output: unknown): Promise<void>
  /** After a failure that changed nothing. */
  release(attempt: Attempt): Promise<void>
}

const replayedHeader = "idempotent-replayed"
const keyForm = /^[\x21-\x7e]{1,255}$/

/** One write, as far as repeating it is concerned. */
interface Write {
  readonly endpoint: Endpoint
  readonly principal: Principal | null
  readonly path: string
  readonly body: unknown
  readonly request: RequestFacts
  header(name: string, value: string): void
}

/** Runs `work` unless an answer to the same request is remembered. */
export async function once(
  repeated: RepeatedRequest,
  write: Pick<Write, "endpoint" | "header">,
  repeats: Repeats,
  work: (attempt: Attempt) => Promise<unknown>,
): Promise<unknown> {
  const claim = await repeats.claim(repeated)
  if (!("attemptId" in claim)) {
    write.header(replayedHeader, "true")
    return new EncodedJson(claim.body ?? "")
  }
  const { scope, key } = repeated
  const attempt: Attempt = {
    scope,
    key,
    attemptId: claim.attemptId,
    encode: (output) => encode(write.endpoint, output),
  }
  const output = await work(attempt).catch(async (error: unknown) => {
    // A key that cannot be released now is released by time; the caller must hear of the first failure.
    await repeats.release(attempt).catch(() => undefined)
    throw error
  })
  await repeats.complete(attempt, output)
  return output
}

/** Null where nothing is remembered: reads, other surfaces, callers without a name, requests without a key. */
export function repeatedRequest({ endpoint, principal, path, body, request }: Write): RepeatedRequest | null {
  const key = request.header("idempotency-key")
  if (key === null || principal === null || !isWrite(endpoint) || endpoint.surface !== "platform") return null
  if (!keyForm.test(key))
    throw new Fault(
      "invalid_header",
      "Cannot use the Idempotency-Key: it needs 1 to 255 printable characters without spaces",
    )
  const text = JSON.stringify(body) ?? ""
  const requestHash = new Uint8Array(createHash("sha256").update(text).digest())
  return { scope: `${principal.kind}:${principal.id} ${endpoint.method} ${path}`, key, requestHash }
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
