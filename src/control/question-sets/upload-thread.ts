/** The thread that reads uploaded files. */
import { servePeer } from "../../base/peer/connection.ts"
import { returnMemoryWhenIdle } from "../../base/thread-memory.ts"
import { readFile } from "./file.ts"
import { type UploadService, readRows } from "./upload.ts"

returnMemoryWhenIdle()
servePeer<UploadService>({ rows: (job) => readRows(job), set: (yaml) => readFile(yaml) })
