/** The thread that reads the journal for the ledger, so that requests are answered meanwhile. */
import { answerJobs } from "../../base/thread-entry.ts"
import { type DigestJob, digestStretch, stretchBytesMax } from "./digest.ts"

answerJobs((job: DigestJob) => digestStretch(job, stretchBytesMax))
