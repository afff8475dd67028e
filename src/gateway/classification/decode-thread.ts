/** The thread that decodes large bodies, so that the others are answered meanwhile. */
import { servePeer } from "../../base/peer/connection.ts"
import { returnMemoryWhenIdle } from "../../base/thread-memory.ts"
import { lowerThreadPriority } from "../../base/thread-priority.ts"
import { type DecodeService, decodeBody } from "./wire.ts"

lowerThreadPriority()
returnMemoryWhenIdle()
servePeer<DecodeService>({
  decode: (job) => {
    const { branches: _, ...decoded } = decodeBody(job)
    return decoded
  },
})
