/** The thread that reads the journal for the ledger, so that requests are answered meanwhile. */
import { servePeer } from "../../base/peer/connection.ts"
import { type DigestService, digestStretch, stretchBytesMax } from "./digest.ts"

servePeer<DigestService>({ digest: async (job) => await digestStretch(job, stretchBytesMax) })
