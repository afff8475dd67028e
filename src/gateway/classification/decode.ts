/** Decodes the bodies of both classification endpoints: small ones at once, large ones in a thread. */
import { threadChannel } from "../../base/peer/channels.ts"
import { createPool } from "../../base/peer/pool.ts"
import { type Classification, type Wire, composeClassification } from "./classification.ts"
import { decodeDecisions } from "./decode-decisions.ts"
import { type SystemOneCompatibility, decodeSystemOne } from "./decode-systemone.ts"

/** What the thread serves. */
export interface DecodeService {
  decode: { input: DecodeJob; output: Decoded }
}

interface DecodeJob {
  readonly wire: Wire
  readonly bytes: Uint8Array
  readonly compatibility: SystemOneCompatibility
}

/** What a thread sends back: branches repeat their question's text, and are written anew from it for less. */
type Decoded = Omit<Classification, "branches">

/** `owner` is who waits when it sends several large ones at once. */
export type Decode = (
  wire: Wire,
  bytes: Uint8Array,
  owner: string,
  signal: AbortSignal,
) => Promise<Classification>

/**
 * Millions of tiny values take some 75 ms for each MiB, during which nobody else is answered. At this size that is 5 ms,
 * and the way to a thread and back costs less than a part of one.
 */
export const decodedApartBytesMin = 64 * 1024

export function createDecode(compatibility: SystemOneCompatibility): Decode {
  const pool = createPool<DecodeService>({
    spawn: () => threadChannel(new URL("./decode-thread.ts", import.meta.url)),
  })
  return async (wire, bytes, owner, signal) => {
    const job = { wire, bytes, compatibility }
    if (bytes.byteLength < decodedApartBytesMin) return decodeBody(job)
    return composeClassification(await pool.run(owner, "decode", job, signal))
  }
}

export function decodeBody({ wire, bytes, compatibility }: DecodeJob): Classification {
  switch (wire) {
    case "decisions":
      return decodeDecisions(bytes)
    case "systemone":
      return decodeSystemOne(bytes, compatibility)
  }
}
