/** The one encoding of errors between peers: a Fault arrives as the same Fault. */
import { Fault, type FaultCode, faultCatalog } from "../../contract/errors.ts"
import { type EncodedFailure, PeerFailure } from "./peer.ts"

export function encodeFailure(error: unknown): EncodedFailure {
  if (!(error instanceof Error)) return { message: String(error) }
  const { message, stack } = error
  if (!(error instanceof Fault)) return { message, stack }
  const { code, param, retryAfterMs } = error
  return { message, fault: { code, param, retryAfterMs, details: cloneable(error.details) } }
}

export function decodeFailure({ message, fault, stack }: EncodedFailure): Error {
  if (fault === undefined)
    return new PeerFailure(message, stack === undefined ? undefined : { cause: { stack } })
  const { code, param, retryAfterMs, details } = fault
  // A peer of another version may have codes that this one does not know.
  const known = Object.hasOwn(faultCatalog, code) ? (code as FaultCode) : "inference_failed"
  return new Fault(known, message, {
    details,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** A failure must always arrive, whatever it carries. */
function cloneable(details: unknown): unknown {
  try {
    return structuredClone(details)
  } catch {
    return undefined
  }
}

/** The peer answered, and what it said cannot be used. */
export function brokenAnswer(found: string): Fault {
  return new Fault("invalid_worker_response", `Cannot use the answer of a worker: ${found}`)
}
