/** The thread that reads uploaded rows. */
import { servePeer } from "../../base/peer/connection.ts"
import { type UploadService, parseUpload } from "./upload.ts"

servePeer<UploadService>({ parse: (job) => parseUpload(job) })
