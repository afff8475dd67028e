/** The thread that reads uploaded files. */
import { servePeer } from "../../base/peer/connection.ts"
import { readFile } from "./file.ts"
import { type UploadService, readRows } from "./upload.ts"

servePeer<UploadService>({ rows: (job) => readRows(job), set: (yaml) => readFile(yaml) })
