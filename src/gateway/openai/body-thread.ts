/** The thread that reads large bodies of the OpenAI-compatible endpoints. */
import { servePeer } from "../../base/peer/connection.ts"
import { returnMemoryWhenIdle } from "../../base/thread-memory.ts"
import { lowerThreadPriority } from "../../base/thread-priority.ts"
import { type BodyService, readBody } from "./body.ts"

lowerThreadPriority()
returnMemoryWhenIdle()
servePeer<BodyService>({ read: readBody })
