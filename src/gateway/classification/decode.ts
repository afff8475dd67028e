/** Decodes bodies of both classification endpoints: small ones at once, and large ones in a thread; the wires are read in browsers too. */
import { ownBuffers } from "../../base/own-buffer.ts"
import { task, threadBytesMin, threads } from "../../base/peer/threads.ts"
import { type Classification, type Wire, composeClassification } from "./classification.ts"
import type { ReadOptions } from "./read-request.ts"
import { decodeDecisions, decodeSystemOne } from "./wire.ts"

interface DecodeJob {
  readonly wire: Wire
  readonly bytes: Uint8Array
  readonly compatibility: Compatibility
}

/** Departures from the contract that are switched on. */
export interface Compatibility extends ReadOptions {
  /** Decisions take what OpenAI's own take: conversations, tools, JSON, and instructions as parts. */
  readonly decisionsGa: boolean
}

/** What a thread sends back: branches repeat their question's text, and are written anew from it for less. */
type Decoded = Omit<Classification, "branches">

/** Large bodies of one `owner` are decoded one after the other, and are empty afterwards. */
type Decode = (wire: Wire, bytes: Uint8Array, owner: string, signal: AbortSignal) => Promise<Classification>

export function createDecode(compatibility: Compatibility): Decode {
  return async (wire, bytes, owner, signal) => {
    const job = { wire, bytes, compatibility }
    if (bytes.byteLength < threadBytesMin) return decodeBody(job)
    return composeClassification(await threads.run(owner, decodeTask, job, signal))
  }
}

const decodeTask = task(import.meta.url, decodeApart, ({ bytes }) => ownBuffers(bytes))

/** In a thread. */
export function decodeApart(job: DecodeJob): Decoded {
  const { branches: _, ...decoded } = decodeBody(job)
  return decoded
}

/** Every refusal is a Fault with a stable code and the path of what is wrong. */
export function decodeBody({ wire, bytes, compatibility }: DecodeJob): Classification {
  switch (wire) {
    case "decisions":
      return decodeDecisions(bytes, compatibility.decisionsGa)
    case "systemone":
      return decodeSystemOne(bytes, compatibility)
  }
}
