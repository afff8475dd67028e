/** The thread that reads lines of batches. */
import { servePeer } from "../../base/peer/connection.ts"
import { returnMemoryWhenIdle } from "../../base/thread-memory.ts"
import { type LineService, readBatchLines } from "./lines.ts"

returnMemoryWhenIdle()
servePeer<LineService>({ read: (job) => readBatchLines(job) })
